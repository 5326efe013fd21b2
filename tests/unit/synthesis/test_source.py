"""The excitation: against the sum of cosines it stands for."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.audio.mel import log_mel
from voxveil.synthesis.source import fill_unvoiced, harmonic_source, noise_source, to_samples

pytestmark = pytest.mark.torch


def literal_source(f0: np.ndarray, samples: int) -> np.ndarray:
    """The definition, one sample and one harmonic at a time."""
    result = np.zeros(samples)
    cycles = 0.0
    for n in range(samples):
        k, rest = divmod(n, HOP)
        following = f0[min(k + 1, len(f0) - 1)]
        hertz = f0[k] + (following - f0[k]) * rest / HOP
        cycles += hertz / SAMPLE_RATE
        harmonic = 1
        while harmonic * hertz < SAMPLE_RATE / 2:
            result[n] += np.cos(2 * np.pi * harmonic * cycles)
            harmonic += 1
        result[n] *= hertz / (SAMPLE_RATE / 2)
    return result


@pytest.mark.parametrize("f0", [60.0, 100.0, 123.4, 400.0])
def test_equals_the_sum_of_harmonics(f0: float) -> None:
    samples = 800
    track = f0 * np.linspace(1.0, 1.2, frame_count(samples))
    got = harmonic_source(torch.tensor(track[None]), torch.ones(1, len(track)), samples)[0]
    np.testing.assert_allclose(got.numpy(), literal_source(track, samples), atol=2e-5)


def test_nothing_where_unvoiced_and_silent_between() -> None:
    voicing = torch.zeros(1, 11)
    assert not harmonic_source(torch.full((1, 11), 150.0), voicing, 1600).any()


def test_is_band_limited() -> None:
    """A 399 Hz train ends at 7980 Hz; an unlimited one would fold back between its harmonics."""
    samples = SAMPLE_RATE
    train = harmonic_source(torch.full((1, 101), 399.0), torch.ones(1, 101), samples)[0].numpy()
    power = np.abs(np.fft.rfft(train * np.hanning(samples))) ** 2
    hertz = np.arange(len(power))
    near = np.abs(hertz - 399 * np.round(hertz / 399)) <= 4
    assert power[~near].sum() < 1e-6 * power.sum()


def test_both_sources_have_mean_magnitude_near_one() -> None:
    samples = 2 * SAMPLE_RATE
    noise = log_mel(torch.from_numpy(noise_source(samples))[None])[0, 5:-5]
    assert abs(float(torch.exp(noise).mean()) - 1.0) < 0.05
    for f0 in (80.0, 120.0, 200.0):
        train = harmonic_source(torch.full((1, 201), f0), torch.ones(1, 201), samples)
        assert 0.6 < float(torch.exp(log_mel(train)[0, 5:-5, 10:]).mean()) < 1.4


def test_noise_depends_on_the_sample_count_alone() -> None:
    np.testing.assert_array_equal(noise_source(500), noise_source(500))
    assert not np.array_equal(noise_source(500), noise_source(501)[:500])


@pytest.mark.parametrize("samples", [1, 159, 160, 161, 15_999, 16_000, 16_001, 16_159])
def test_every_sample_count(samples: int) -> None:
    frames = frame_count(samples)
    assert to_samples(torch.rand(2, frames), samples).shape == (2, samples)
    source = harmonic_source(torch.full((1, frames), 100.0), torch.ones(1, frames), samples)
    assert source.shape == (1, samples)
    assert torch.isfinite(source).all()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.one_of(st.just(0.0), st.floats(60, 400)), min_size=1, max_size=40))
def test_filling_keeps_voiced_frames_and_leaves_no_gap(values: list[float]) -> None:
    f0 = np.array(values, dtype=np.float32)
    filled = fill_unvoiced(f0, 150.0)
    assert (filled > 0).all()
    np.testing.assert_allclose(filled[f0 > 0], f0[f0 > 0], rtol=1e-5)
    if not (f0 > 0).any():
        assert (filled == 150.0).all()
    else:
        assert filled.max() <= f0.max() * 1.00001
        assert filled.min() >= f0[f0 > 0].min() * 0.99999
