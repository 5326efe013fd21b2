import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from made_voices import write_voices
from voxveil.attack.ecapa import EcapaAttacker
from voxveil.config import parse_params
from voxveil.config.compose import params_text
from voxveil.corpus.split import Split
from voxveil.corpus.trials import draw_trials, write_trials
from voxveil.errors import VoxveilError
from voxveil.metrics.evaluation import read_evaluation
from voxveil.speaker.encoder import EncoderSize, SpeakerEncoder, SpeakerNetwork
from voxveil.stages.run import run_stage
from voxveil.storage.done import finish
from voxveil.training.loop import seeded

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def params(tmp_path_factory: pytest.TempPathFactory) -> Path:
    content = {
        "base": {"threads": 1},
        "systems": {"original": {"kind": "original"}, "anon": {}},
        "train_pitch": {"variants": {"plain": {}}},
        "train_content": {"variants": {"plain": {}}},
        "score": {"rank_inputs": 2},
    }
    path = tmp_path_factory.mktemp("params") / "params.yaml"
    path.write_text(params_text(parse_params(content)))
    return path


def write_attacker(folder: Path, speakers: list[str], system: str = "anon") -> Path:
    (folder / "ecapa").mkdir(parents=True)
    with seeded(1, "test", system):
        encoder = SpeakerEncoder(SpeakerNetwork(EncoderSize(16, 16)))
    centre = np.random.default_rng(1).normal(0, 0.1, 16)
    training = "original" if system == "original" else "anonymized"
    EcapaAttacker(encoder, speakers, training, centre).save(folder / "ecapa")
    finish(folder, "train_attacker", system)
    return folder


@pytest.fixture
def inputs(tmp_path: Path) -> dict[str, Path]:
    private = tmp_path / "private"
    split = write_voices(private / "private", range(30, 34), 4, seconds=0.4)
    write_trials(private / "trials", draw_trials(split, 2, seed=1))
    finish(private, "prepare", None)
    released = tmp_path / "released"
    write_voices(released, range(30, 34), 4, seconds=0.4)
    finish(released, "anonymize", "anon")
    attacker = write_attacker(tmp_path / "attacker", ["s90", "s91"])
    first = write_attacker(tmp_path / "original_attacker", ["s90", "s91"], "original")
    return {"attacker": attacker, "original_attacker": first, "released": released, "private": private}


def score(params: Path, inputs: dict[str, Path], out: Path, key: str = "anon") -> Path:
    run_stage("score", params, inputs, {"scores": out}, key=key)
    return out / "ecapa" / "semi_informed"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_scoring_twice_gives_identical_files_that_the_metrics_read(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    first = score(params, inputs, tmp_path / "one")
    second = score(params, inputs, tmp_path / "two")
    for path in first.iterdir():
        assert path.read_bytes() == (second / path.name).read_bytes()
    evaluation = read_evaluation(
        first / "scores.txt",
        trials=first / "trials.txt",
        utt2spk=first / "utt2spk",
        enrolments=first / "enrol.scp",
        rank=first / "rank.npz",
    )
    assert evaluation.scores.n_speakers == 4
    assert len(evaluation.scores.target) == 8
    assert len(evaluation.scores.nontarget) == 8, "nontargets are of the same sex"
    assert evaluation.ranks.scores.shape == (8, 4)


def test_conditions_say_how_the_attack_was_made(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    content = json.loads((score(params, inputs, tmp_path / "one") / "conditions.json").read_text())
    assert (content["attacker"], content["scenario"]) == ("ecapa", "semi_informed")
    assert content["enrolment"] == content["trial"] == content["training"] == "anonymized"
    assert content["counts"]["short_clips_repeated"] == 16, "0.4 s is below the attacker's minimum"
    inputs = {**inputs, "attacker": inputs["original_attacker"]}
    finish(inputs["released"], "anonymize", "original")
    original = json.loads(
        (score(params, inputs, tmp_path / "two", key="original") / "conditions.json").read_text()
    )
    assert original["enrolment"] == original["trial"] == "original"


def test_the_scores_are_those_of_the_released_audio(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    folder = score(params, inputs, tmp_path / "one")
    encoder = SpeakerEncoder.load(inputs["attacker"] / "ecapa")
    with np.load(inputs["attacker"] / "ecapa" / "centre.npz") as stored:
        centre = stored["centre"]
    released = Split(inputs["released"])

    def vector(item: str) -> np.ndarray:
        moved = encoder.embed(released.audio(item)).astype(float) - centre
        return moved / np.linalg.norm(moved)

    enrolments = {}
    for line in (folder / "enrol.scp").read_text().splitlines():
        name, *items = line.split()
        mean = np.sum([vector(item) for item in items], axis=0)
        enrolments[name] = mean / np.linalg.norm(mean)
    for line in (folder / "scores.txt").read_text().splitlines():
        name, item, value = line.split()
        expected = float(enrolments[name] @ vector(item))
        assert float(value) == pytest.approx(expected, abs=1e-6)


def overlap_in_trials(inputs: dict[str, Path]) -> None:
    folder = inputs["private"] / "trials"
    name, item, *_ = (folder / "enrol.scp").read_text().split()
    with (folder / "trials.txt").open("a") as handle:
        handle.write(f"{name} {item} target\n")
    finish(inputs["private"], "prepare", None)


def attacker_knows_a_private_speaker(inputs: dict[str, Path]) -> None:
    inputs["attacker"] = write_attacker(inputs["attacker"].parent / "other", ["s31", "s90"])


def release_without_an_utterance(inputs: dict[str, Path]) -> None:
    folder = inputs["released"]
    for path in folder.iterdir():
        path.unlink()
    write_voices(folder, range(30, 34), 3, seconds=0.4)
    finish(folder, "anonymize", "anon")


def another_model(inputs: dict[str, Path]) -> None:
    path = inputs["attacker"] / "ecapa" / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "attacker": "plda"}))
    finish(inputs["attacker"], "train_attacker", "anon")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (overlap_in_trials, r"trials\.txt:\d+: utterance s30-\d is also enrolled"),
        (attacker_knows_a_private_speaker, "speaker s31: the attacker was trained on a speaker"),
        (release_without_an_utterance, r"utterance s\d\d-3: not in .*released"),
        (another_model, "not an attacker, its kind is 'plda'; kinds: ecapa, "),
    ],
)
def test_what_would_give_a_wrong_score_is_refused_and_nothing_written(
    params: Path,
    inputs: dict[str, Path],
    tmp_path: Path,
    spoil: Callable[[dict[str, Path]], None],
    reason: str,
) -> None:
    spoil(inputs)
    with pytest.raises(VoxveilError, match=reason):
        score(params, inputs, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_every_scenario_says_what_it_compares(params: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    score(params, inputs, tmp_path / "out")
    found = {}
    for folder in sorted((tmp_path / "out" / "ecapa").iterdir()):
        content = json.loads((folder / "conditions.json").read_text())
        found[folder.name] = tuple(content[name] for name in ("training", "enrolment", "trial"))
    assert found == {
        "ignorant": ("original", "original", "anonymized"),
        "lazy_informed": ("original", "anonymized", "anonymized"),
        "semi_informed": ("anonymized", "anonymized", "anonymized"),
    }


def test_the_original_system_has_one_row_that_no_anonymizer_moves(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    inputs = {**inputs, "attacker": inputs["original_attacker"]}
    finish(inputs["released"], "anonymize", "original")
    out = score(params, inputs, tmp_path / "out", key="original")
    assert [folder.name for folder in out.parent.iterdir()] == ["semi_informed"]


def test_ignorant_enrols_original_speech(params: Path, inputs: dict[str, Path], tmp_path: Path) -> None:
    score(params, inputs, tmp_path / "same")
    # Other released speech: what is enrolled from the originals stays, what is tested moves.
    for path in inputs["released"].iterdir():
        path.unlink()
    write_voices(inputs["released"], range(30, 34), 4, seconds=0.6)
    finish(inputs["released"], "anonymize", "anon")
    score(params, inputs, tmp_path / "other")
    attacker = EcapaAttacker.load(inputs["original_attacker"] / "ecapa")
    private, released = Split(inputs["private"] / "private"), Split(inputs["released"])
    lines = (tmp_path / "other/ecapa/ignorant/scores.txt").read_text().split("\n")[0].split()
    enrolment, utterance, value = lines[0], lines[1], float(lines[2])
    lists = {
        line.split()[0]: line.split()[1:]
        for line in (inputs["private"] / "trials" / "enrol.scp").read_text().splitlines()
    }
    mean = np.mean([attacker.embed(private.audio(i), i).astype(float) for i in lists[enrolment]], axis=0)
    expected = float(mean / np.linalg.norm(mean) @ attacker.embed(released.audio(utterance), utterance))
    assert value == pytest.approx(expected, abs=1e-6)


def test_an_attacker_of_anonymized_speech_is_not_the_original_one(
    params: Path, inputs: dict[str, Path], tmp_path: Path
) -> None:
    wrong = write_attacker(tmp_path / "wrong", ["s90", "s91"])
    finish(wrong, "train_attacker", "original")
    with pytest.raises(VoxveilError, match="was trained on anonymized speech, must be original"):
        score(params, {**inputs, "original_attacker": wrong}, tmp_path / "out")
    assert not (tmp_path / "out").exists()
