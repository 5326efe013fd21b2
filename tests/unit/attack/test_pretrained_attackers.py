"""Attackers on a pretrained speaker network: real weights, saving and loading, refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from made_voices import voice, write_voices
from voxveil.attack.attackers.interface import TrainingSetup, embed_utterances, score_trials
from voxveil.attack.attackers.registry import load_attacker, train_attacker
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Split
from voxveil.pretrained.folder import read_model
from voxveil.runtime.errors import IncompleteInputError, InputError, ParamsError

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]
KINDS = ("pretrained", "pretrained_lda", "pretrained_finetuned")


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return write_voices(tmp_path_factory.mktemp("public"), range(6), 3, seconds=0.8)


@pytest.fixture(scope="module")
def params(imported: Callable[[str], Path]) -> TrainAttackerParams:
    folder = str(imported("campplus"))
    return TrainAttackerParams(
        pretrained=folder, batch=6, crop_seconds=0.6, speeds="1", lda=4, finetune_steps=2
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_attacker_needs_no_file_elsewhere(
    kind: str, public: Split, params: TrainAttackerParams, tmp_path: Path
) -> None:
    attacker = train_attacker(kind, public, TrainingSetup(params, "anonymized", 3)).attacker
    attacker.save(tmp_path)
    again = load_attacker(tmp_path)
    assert (again.name, again.training, list(again.speakers)) == (kind, "anonymized", list(public.speakers))
    assert again.pretrained == read_model(Path(params.pretrained)).facts()
    clip = voice(9, 0, 12_000)
    np.testing.assert_array_equal(attacker.embed(clip, "clip"), again.embed(clip, "clip"))
    assert params.pretrained not in (tmp_path / "model.json").read_text()


def test_further_training_moves_the_network_and_a_resumed_one_ends_equal(
    public: Split, params: TrainAttackerParams, tmp_path: Path
) -> None:
    clip = voice(9, 0, 12_000)
    before = train_attacker("pretrained", public, TrainingSetup(params, "original", 3)).attacker
    (tmp_path / "checkpoints").mkdir()
    setup = TrainingSetup(params, "original", 3, tmp_path / "checkpoints")
    trained = train_attacker("pretrained_finetuned", public, setup)
    again = train_attacker("pretrained_finetuned", public, TrainingSetup(params, "original", 3))
    assert len(trained.curve) == 2
    np.testing.assert_array_equal(trained.attacker.embed(clip, "c"), again.attacker.embed(clip, "c"))
    assert not np.allclose(trained.attacker.embed(clip, "c"), before.embed(clip, "c"))


def test_scores_do_not_depend_on_other_trials(public: Split, params: TrainAttackerParams) -> None:
    """The same ten trials alone, in another order and among others have equal scores."""
    attacker = train_attacker("pretrained", public, TrainingSetup(params, "original", 3)).attacker
    names = [utterance.id for utterance in public]
    enrolments = {name: [name] for name in names[:5]}
    trials = [(enrolment, names[5 + n % 7]) for n, enrolment in enumerate([*enrolments] * 2)]
    more = [(enrolment, name) for enrolment in enrolments for name in names]

    def scores(pairs: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
        items = [name for pair in pairs for name in pair]
        vectors = embed_utterances(attacker, items, public.audio)
        return dict(zip(pairs, score_trials(vectors, enrolments, pairs, attacker.backend), strict=True))

    alone = scores(trials)
    for other in (scores(trials[::-1]), scores([*more, *trials])):
        assert max(abs(other[pair] - alone[pair]) for pair in trials) < 1e-6


def test_constant_embeddings_are_refused(public: Split, params: TrainAttackerParams) -> None:
    attacker = train_attacker("pretrained", public, TrainingSetup(params, "original", 3)).attacker
    clip = public.audio(next(iter(public)).id)
    with pytest.raises(InputError, match="attacker pretrained: the embeddings of all 4 utterances are equal"):
        embed_utterances(attacker, ["a", "b", "c", "d"], lambda _: clip)


def test_a_missing_or_changed_network_is_refused(
    public: Split, params: TrainAttackerParams, tmp_path: Path
) -> None:
    with pytest.raises(ParamsError, match=r"train_attacker\.pretrained: is empty; must be the folder"):
        train_attacker("pretrained", public, TrainingSetup(TrainAttackerParams(), "original", 3))
    absent = TrainAttackerParams(pretrained=str(tmp_path / "absent"))
    with pytest.raises(InputError, match=r"train_attacker\.pretrained: .*absent: no such folder"):
        train_attacker("pretrained_lda", public, TrainingSetup(absent, "original", 3))
    train_attacker("pretrained", public, TrainingSetup(params, "original", 3)).attacker.save(tmp_path)
    (tmp_path / "pretrained/model.safetensors").write_bytes(b"changed")
    with pytest.raises(IncompleteInputError, match="changed since the pretrained model"):
        load_attacker(tmp_path)
