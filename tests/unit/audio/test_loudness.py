"""Loudness: a constant of the output, whatever the input's."""

from __future__ import annotations

import numpy as np
import pyloudnorm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.audio.loudness import to_loudness


def speechlike(samples: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    envelope = np.abs(np.sin(np.arange(samples) / 2000))
    return (0.1 * envelope * rng.normal(size=samples)).astype(np.float32)


@pytest.mark.parametrize("lufs", [-30.0, -23.0, -16.0])
def test_reaches_the_wanted_loudness(lufs: float) -> None:
    audio = to_loudness(speechlike(32_000), lufs)
    assert pyloudnorm.Meter(16_000).integrated_loudness(audio.astype(float)) == pytest.approx(lufs, abs=0.05)


@settings(max_examples=20, deadline=None)
@given(st.floats(-100, 40), st.sampled_from([1, 40, 3000, 6399, 6400, 20_000]))
def test_does_not_depend_on_the_input_gain(decibel: float, samples: int) -> None:
    audio = speechlike(samples) + np.float32(1e-3)
    scaled = (audio.astype(np.float64) * 10 ** (decibel / 20)).astype(np.float32)
    np.testing.assert_allclose(to_loudness(scaled, -23.0), to_loudness(audio, -23.0), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("samples", [0, 1, 100, 20_000])
def test_silence_stays_silence(samples: int) -> None:
    result = to_loudness(np.zeros(samples, np.float32), -23.0)
    assert result.shape == (samples,)
    assert not result.any()


def test_a_short_clip_is_as_loud_as_its_repetition() -> None:
    clip = speechlike(1600)
    repeated = np.tile(clip, 4)
    np.testing.assert_allclose(to_loudness(clip, -23.0), to_loudness(repeated, -23.0)[:1600], rtol=1e-5)


def test_a_click_in_silence_has_a_finite_level() -> None:
    audio = np.zeros(160_000, np.float32)
    audio[80_000] = 0.5
    assert np.isfinite(to_loudness(audio, -23.0)).all()
