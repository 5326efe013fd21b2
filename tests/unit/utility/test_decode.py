"""The best path through the phone loop against an enumeration of all paths."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.runtime.errors import InputError
from voxveil.utility.decode import best_path, decode_phones

PHONES = ("SIL", "A", "B")


def value(path: tuple[int, ...], scores: np.ndarray, penalty: float) -> float:
    changes = sum(a != b for a, b in pairwise(path))
    return float(sum(scores[k, label] for k, label in enumerate(path)) - penalty * changes)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(1, 3), st.floats(0, 5), st.integers(0, 999))
def test_no_path_is_better(frames: int, labels: int, penalty: float, key: int) -> None:
    scores = np.random.default_rng(key).normal(0, 2, (frames, labels))
    best = max(value(path, scores, penalty) for path in product(range(labels), repeat=frames))
    assert value(tuple(best_path(scores, penalty)), scores, penalty) == pytest.approx(best)


def test_without_a_penalty_every_frame_decides_for_itself() -> None:
    scores = np.random.default_rng(0).normal(size=(50, 7))
    assert (best_path(scores, 0.0) == scores.argmax(axis=1)).all()


def posteriors(labels: list[int]) -> np.ndarray:
    result = np.full((len(labels), 3), np.log(0.05))
    result[np.arange(len(labels)), labels] = np.log(0.9)
    return result


def test_runs_become_phones_and_silence_is_dropped() -> None:
    assert decode_phones(posteriors([0] * 6 + [1] * 8 + [2] * 8 + [0] * 6 + [2] * 8), PHONES) == [
        "A",
        "B",
        "B",
    ]


def test_a_flicker_is_no_phone() -> None:
    assert decode_phones(posteriors([1] * 6 + [2] + [1] * 6), PHONES) == ["A"]


def test_no_frames_and_wrong_shapes() -> None:
    assert decode_phones(np.zeros((0, 3)), PHONES) == []
    with pytest.raises(InputError, match="3 phones"):
        decode_phones(np.zeros((4, 2)), PHONES)
