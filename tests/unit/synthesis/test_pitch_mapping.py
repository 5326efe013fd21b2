"""Released pitch to F0: target statistics, unvoiced frames, noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.features.pitch.scale import hz_to_unit
from voxveil.features.speaker.targets import Target
from voxveil.synthesis.synthesizer import convert_pitch, smooth, vocoder_f0

TARGET = Target(np.zeros(4, np.float32), float(np.log(180.0)), 0.1, 0)


def track(seed: int, frames: int = 200) -> np.ndarray:
    rng = np.random.default_rng(seed)
    f0 = 120.0 * np.exp(0.15 * np.cumsum(rng.standard_normal(frames)) / np.sqrt(frames))
    return np.where(rng.random(frames) < 0.3, 0.0, f0).astype(np.float32)


def test_converted_statistics_are_the_targets() -> None:
    converted = convert_pitch(track(1), TARGET)
    logs = np.log(converted[converted > 0])
    assert logs.mean() == pytest.approx(TARGET.log_f0_mean, abs=1e-4)
    assert logs.std() == pytest.approx(TARGET.log_f0_sd, abs=1e-4)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(0.8, 1.5), st.floats(0.5, 1.3))
def test_level_and_spread_of_the_source_do_not_pass(seed: int, factor: float, power: float) -> None:
    """Whatever log-affine change a speaker's F0 undergoes, the converted F0 is the same."""
    f0 = track(seed)
    moved = np.where(f0 > 0, factor * 120.0 * (f0 / 120.0) ** power, 0.0).astype(np.float32)
    np.testing.assert_allclose(convert_pitch(moved, TARGET), convert_pitch(f0, TARGET), rtol=1e-3)


def test_unvoiced_stays_unvoiced_and_flat_goes_to_the_mean() -> None:
    f0 = np.array([0.0, 100.0, 100.0, 0.0], np.float32)
    np.testing.assert_allclose(convert_pitch(f0, TARGET), [0, 180, 180, 0], rtol=1e-5)
    assert not convert_pitch(np.zeros(5, np.float32), TARGET).any()


def test_without_conversion_f0_is_kept() -> None:
    f0 = track(2)
    filled, same = vocoder_f0(hz_to_unit(f0), TARGET, convert=False, noisy=False)
    np.testing.assert_allclose(same, f0, rtol=1e-4)
    np.testing.assert_allclose(filled[f0 > 0], f0[f0 > 0], rtol=1e-4)
    assert (filled > 0).all()


def test_nothing_voiced_gets_the_targets_mean() -> None:
    filled, _ = vocoder_f0(np.zeros(7, np.float32), TARGET, convert=True, noisy=False)
    np.testing.assert_allclose(filled, 180.0, rtol=1e-5)


def test_noisy_pitch_takes_the_targets_statistics_unasked() -> None:
    unit = np.random.default_rng(0).uniform(0.2, 0.9, 300).astype(np.float32)
    filled, _ = vocoder_f0(unit, TARGET, convert=False, noisy=True)
    assert np.log(filled).mean() == pytest.approx(TARGET.log_f0_mean, abs=0.01)
    assert np.abs(np.diff(np.log(filled))).max() < 0.2


def test_smoothing_keeps_constants_and_zeros() -> None:
    f0 = np.array([0, 0, 150, 150, 150, 0, 150, 0], np.float32)
    np.testing.assert_allclose(smooth(f0), f0, rtol=1e-5)


@pytest.mark.parametrize("frames", [1, 2, 14, 15, 16])
def test_short_sequences(frames: int) -> None:
    unit = np.full(frames, 0.5, np.float32)
    filled, moved = vocoder_f0(unit, TARGET, convert=True, noisy=True)
    assert filled.shape == moved.shape == (frames,)
    np.testing.assert_allclose(filled, 180.0, rtol=1e-4)
