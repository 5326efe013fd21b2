"""Every kind of attacker: train, save, load, embed, and find made voices again."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from made_voices import voice, write_voices
from voxveil.attack.attackers.histograms import fit_codebook, nearest
from voxveil.attack.attackers.interface import Attacker, TrainingSetup, embed_utterances
from voxveil.attack.attackers.registry import (
    attacker_folder,
    find_attackers,
    listed_kinds,
    load_attacker,
    seeds_of,
    train_attacker,
)
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Split
from voxveil.runtime.errors import InputError, ParamsError

pytest.importorskip("torch")
pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

SMALL = TrainAttackerParams(
    channels=16, embedding=24, steps=24, batch=12, crop_seconds=0.5, codebook=24, lda=8, noise=0.3
)
KINDS = ("ecapa", "xvector_plda", "f0_histogram", "phone_histogram", "prosody")


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return write_voices(tmp_path_factory.mktemp("public"), range(8), 4, seconds=0.8)


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return write_voices(tmp_path_factory.mktemp("private"), range(30, 36), 8, seconds=0.8)


@pytest.fixture(scope="module", params=KINDS)
def attacker(request: pytest.FixtureRequest, public: Split) -> Attacker:
    return train_attacker(request.param, public, TrainingSetup(SMALL, "anonymized", 3)).attacker


def test_speakers_it_never_heard_are_found_again(attacker: Attacker, private: Split) -> None:
    vectors = embed_utterances(attacker, [u.id for u in private], private.audio)
    names = private.speakers
    references = [np.stack([vectors[f"{name}-{i}"] for i in range(2)]) for name in names]
    inputs = np.stack([vectors[f"{name}-{i}"] for name in names for i in range(2, 8)])
    ranks = attacker.backend.matrix(inputs, references).argmax(axis=1)
    # Chance is 1 in 6, of 36. Prosody is drawn anew for every utterance of a made voice, but for its pitch.
    wanted = 0.4 if attacker.name == "prosody" else 0.6
    assert (ranks == np.repeat(range(6), 6)).mean() >= wanted


def test_loading_gives_the_same_attacker(attacker: Attacker, tmp_path: Path) -> None:
    attacker.save(tmp_path)
    again = load_attacker(tmp_path)
    assert (again.name, again.training) == (attacker.name, "anonymized")
    assert list(again.speakers) == [f"s{n:02d}" for n in range(8)]
    clip = voice(50, 0, 14_000)
    assert np.array_equal(attacker.embed(clip, "clip"), again.embed(clip, "clip"))
    other = np.stack([voice(51, 1, 9_000), voice(51, 1, 9_000)])
    vectors = np.stack([attacker.embed(row, "row") for row in other])
    assert np.array_equal(
        attacker.backend.matrix(vectors, [vectors]), again.backend.matrix(vectors, [vectors])
    )


def test_a_broken_clip_is_named(attacker: Attacker) -> None:
    with pytest.raises(InputError, match="utterance u1: "):
        attacker.embed(np.zeros(0, np.float32), "utterance u1")
    assert np.isfinite(attacker.embed(np.zeros(9000, np.float32), "silence")).all()


def test_training_twice_gives_the_same_bytes(public: Split, tmp_path: Path) -> None:
    quick = dataclasses.replace(SMALL, steps=4)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        train_attacker("xvector_plda", public, TrainingSetup(quick, "original", 3)).attacker.save(
            tmp_path / name
        )
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def test_the_f0_histogram_is_that_of_the_paper(public: Split, tmp_path: Path) -> None:
    found = train_attacker("f0_histogram", public, TrainingSetup(SMALL, "original", 3)).attacker
    histogram = found.embed(voice(1, 0, 16_000), "voice")
    assert histogram.shape == (107,)
    assert histogram.sum() == pytest.approx(1, abs=1e-5)
    found.save(tmp_path)
    stated = json.loads((tmp_path / "model.json").read_text())["pyin"]
    assert stated == {
        "frame_seconds": 0.064,
        "hop_seconds": 0.01,
        "lowest_hertz": 65.0,
        "highest_hertz": 450.0,
        "pitches": 107,
    }


def test_a_codebook_is_a_local_optimum() -> None:
    rng = np.random.default_rng(2)
    places = np.array([[0, 0], [10, 0], [0, 10], [10, 10]], float)
    frames = (places[:, None] + rng.normal(0, 0.3, (4, 50, 2))).reshape(-1, 2)
    codes = fit_codebook(frames, 4, 1, at_most=1000)
    assert sorted(np.rint(codes).tolist()) == sorted(places.tolist())
    literal = [min(range(4), key=lambda c: ((frame - codes[c]) ** 2).sum()) for frame in frames]
    assert nearest(frames, codes).tolist() == literal
    with pytest.raises(InputError, match="a codebook of 9 codes needs at least as many frames, got 4"):
        fit_codebook(places, 9, 1, at_most=1000)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ecapa,resnet", "no attacker 'resnet'; allowed: ecapa \\(ECAPA-TDNN, cosine\\); xvector_plda"),
        ("", "must name attackers"),
        ("ecapa,ecapa", "each once"),
    ],
)
def test_wrong_kinds_are_named(text: str, reason: str) -> None:
    with pytest.raises(ParamsError, match=reason):
        listed_kinds(text)


@pytest.mark.parametrize("speeds", ["", "1,x", "1,3", "0.9,1.1", "1,1"])
def test_wrong_speeds_are_named(speeds: str, public: Split) -> None:
    params = TrainAttackerParams(channels=8, embedding=8, steps=1, batch=2, crop_seconds=0.5, speeds=speeds)
    with pytest.raises(ParamsError, match=r"train_attacker\.speeds: must"):
        train_attacker("ecapa", public, TrainingSetup(params, "original", 1))


def test_seeds_differ_and_lie_side_by_side(public: Split, tmp_path: Path) -> None:
    quick = TrainAttackerParams(channels=8, embedding=8, steps=2, batch=4, crop_seconds=0.5)
    for number in seeds_of("ecapa", 2):
        folder = tmp_path / attacker_folder("ecapa", number)
        folder.mkdir()
        trained = train_attacker("ecapa", public, TrainingSetup(quick, "original", 3), number)
        trained.attacker.save(folder)
    first, second = find_attackers(tmp_path)["ecapa"]
    clip = voice(1, 0, 9000)
    assert not np.allclose(first.embed(clip, "c"), second.embed(clip, "c"))
    assert list(seeds_of("f0_histogram", 3)) == [1]
    with pytest.raises(InputError, match="holds no attacker"):
        find_attackers(tmp_path / "ecapa")
