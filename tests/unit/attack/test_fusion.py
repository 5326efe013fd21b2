"""Fusion by logistic regression, and the speakers that are kept for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from made_voices import write_voices
from voxveil.attack.attackers.interface import Attacker
from voxveil.attack.backends import Cosine
from voxveil.attack.fusion import Fusion, fit_fusion, fuse_attackers, hold_out
from voxveil.metrics.data import CountTable
from voxveil.metrics.disclosure import independent_bits
from voxveil.metrics.eer import eer
from voxveil.runtime.errors import InputError, ParamsError


def drawn(seed: int, n: int = 4000) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Two representations that each know something else, and one that knows nothing."""
    rng = np.random.default_rng(seed)
    is_target = np.arange(n) < n // 8
    scores = {
        "one": 5 + 0.3 * (rng.normal(0, 1, n) + 1.5 * is_target),
        "two": -100 * (rng.normal(0, 1, n) - 1.2 * is_target),
        "noise": rng.normal(0, 1, n),
    }
    return scores, is_target


def rate(scores: np.ndarray, is_target: np.ndarray) -> float:
    return eer(CountTable.from_scores(scores[is_target], scores[~is_target]))


def test_the_fusion_beats_each_of_its_parts_on_new_scores() -> None:
    fusion = fit_fusion(*drawn(1), 10)
    scores, is_target = drawn(2)
    fused = rate(fusion.apply(scores), is_target)
    assert fused < min(rate(scores["one"], is_target), rate(scores["two"], is_target)) - 0.02
    assert abs(fusion.weights[2]) < 0.1 * abs(fusion.weights[0]), "what knows nothing weighs nothing"


def test_weights_are_those_of_a_general_optimizer() -> None:
    scores, is_target = drawn(3, 400)
    fusion = fit_fusion(scores, is_target, 4)
    rows = np.stack([(scores[k] - fusion.mean[i]) / fusion.scale[i] for i, k in enumerate(fusion.kinds)], 1)
    share = np.where(is_target, 0.5 / is_target.sum(), 0.5 / (~is_target).sum())

    def loss(weights: np.ndarray) -> float:
        signed = np.where(is_target, 1, -1) * (rows @ weights[:-1] + weights[-1])
        return float(share @ np.log1p(np.exp(-signed)) + 0.5e-3 * (weights[:-1] ** 2).sum())

    best = minimize(loss, np.zeros(4), method="BFGS", options={"gtol": 1e-9}).x
    assert np.allclose([*fusion.weights, fusion.bias], best, atol=1e-4)


def test_it_is_stored_and_read_whole(tmp_path: Path) -> None:
    scores, is_target = drawn(4, 200)
    fusion = fit_fusion(scores, is_target, 4)
    assert Fusion.load(tmp_path) is None
    fusion.save(tmp_path)
    again = Fusion.load(tmp_path)
    assert again is not None
    assert np.array_equal(again.apply(scores), fusion.apply(scores))
    (tmp_path / "fusion.json").write_text('{"kinds": ["one"]}')
    with pytest.raises(InputError, match=r"fusion\.json: not the weights of a fusion"):
        Fusion.load(tmp_path)


def test_speakers_held_out_train_nobody(tmp_path: Path) -> None:
    speech = write_voices(tmp_path, range(8), 3, seconds=0.2)
    train, held = hold_out(speech, 4, 1)
    assert not set(train.speakers) & set(held.speakers)
    assert sorted([*train.speakers, *held.speakers]) == list(speech.speakers)
    assert {item.speaker for item in train} == set(train.speakers)
    assert hold_out(speech, 4, 1)[1].speakers == held.speakers
    for count in (3, 7, 9):
        with pytest.raises(ParamsError, match=rf"train_attacker\.fusion_speakers: got {count}"):
            hold_out(speech, count, 1)


class Level:
    """An attacker that knows nothing but the level of one band of time."""

    def __init__(self, name: str, start: int) -> None:
        self.name, self.start, self.speakers, self.training, self.backend = (
            name,
            start,
            (),
            "original",
            Cosine(),
        )

    def embed(self, audio: np.ndarray, name: str) -> np.ndarray:
        part = np.abs(np.fft.rfft(audio[self.start : self.start + 1600]))[:60]
        return (part / np.linalg.norm(part)).astype(np.float32)

    def save(self, folder: Path) -> None:
        raise NotImplementedError


def test_attackers_are_fused_on_every_pair_of_held_out_speakers(tmp_path: Path) -> None:
    speech = write_voices(tmp_path, range(8), 4, seconds=0.4)
    _, held = hold_out(speech, 5, 1)
    attackers: list[Attacker] = [Level("first", 0), Level("later", 3000)]
    fusion = fuse_attackers(attackers, held)
    assert fusion.kinds == ("first", "later")
    assert (fusion.speakers, fusion.trials) == (5, (10, 40))
    assert fusion.weights.sum() > 0


def test_added_bits_are_capped() -> None:
    assert independent_bits([0.5, 0.25], 40) == 0.75
    assert independent_bits([3.0, 3.0], 40) == pytest.approx(np.log2(40))
