"""What a split may hold is checked when it is written, not only when it is read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from voxveil.audio.files import encode_flac
from voxveil.corpus.split import Split, SplitWriter, Utterance
from voxveil.runtime.errors import IncompleteInputError

UTTERANCE = Utterance("7-1-0001", "7", "F", 1_600)


def track(frame: int, value: float) -> np.ndarray:
    f0 = np.full(UTTERANCE.frames, 120, np.float32)
    f0[frame] = value
    return f0


@pytest.mark.parametrize(
    ("f0", "words"),
    [
        (track(3, np.nan), "F0 of frame 3 is nan; it must be finite and not negative"),
        (track(10, np.inf), "F0 of frame 10 is inf"),
        (track(0, -1.0), "F0 of frame 0 is -1.0"),
        (track(0, 0.0)[:-1], "F0 has 10 frames of 11"),
        (track(0, 0.0)[:, None], "F0 must be a 1-D array of floats, got 2-D"),
        (track(0, 0.0).astype(int), "F0 must be a 1-D array of floats, got 1-D of int64"),
    ],
)
def test_an_f0_that_no_reader_takes_is_refused_by_name(tmp_path: Path, f0: np.ndarray, words: str) -> None:
    flac = encode_flac(np.random.default_rng(0).normal(0, 0.1, UTTERANCE.samples), UTTERANCE.id)[0]
    with pytest.raises(IncompleteInputError) as caught, SplitWriter(tmp_path / "split") as writer:
        writer.add(UTTERANCE, flac, f0=f0)
    assert str(caught.value).startswith(f"utterance 7-1-0001: {words}")
    # Without its tables it is no split.
    assert not (tmp_path / "split/manifest.jsonl").exists()
    with pytest.raises(IncompleteInputError, match=r"no manifest\.jsonl"):
        Split(tmp_path / "split")


def test_a_right_f0_is_read_as_it_was_written(tmp_path: Path) -> None:
    flac = encode_flac(np.random.default_rng(0).normal(0, 0.1, UTTERANCE.samples), UTTERANCE.id)[0]
    with SplitWriter(tmp_path / "split") as writer:
        writer.add(UTTERANCE, flac, f0=track(4, 0.0))
    np.testing.assert_array_equal(Split(tmp_path / "split").f0(UTTERANCE.id), track(4, 0.0))
