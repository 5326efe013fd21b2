"""A first piece of no samples spoilt the loudness filter: long recordings came out silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxveil.audio.loudness import LoudnessMeter, to_loudness
from voxveil.audio.streamed import Spool

pytest.importorskip("pyloudnorm")


@pytest.mark.parametrize("cuts", [[0], [0, 0, 5000], [1, 1, 20_000], []])
def test_pieces_of_any_length_give_the_gain_of_the_whole(cuts: list[int]) -> None:
    audio = np.random.default_rng(1).normal(0, 0.05, 32_000).astype(np.float32)
    meter = LoudnessMeter()
    for piece in np.split(audio, cuts):
        meter.push(piece)
    whole = to_loudness(audio, -23.0)
    assert meter.gain(-23.0) * np.abs(audio).max() == pytest.approx(np.abs(whole).max(), rel=1e-6)


def test_a_spool_that_starts_with_nothing_is_heard(tmp_path: Path) -> None:
    audio = np.random.default_rng(2).normal(0, 0.05, 32_000).astype(np.float32)
    with Spool.beside(tmp_path / "a.flac") as spool:
        for piece in (audio[:0], audio):
            spool.write(piece)
        spool.store(tmp_path / "a.flac", "FLAC", -23.0)
    assert np.std(soundfile.read(tmp_path / "a.flac")[0]) > 0.01
