"""pYIN against a literal version, and on signals whose pitch is known."""

from __future__ import annotations

import numpy as np
import pytest

from voxveil.attack import pyin
from voxveil.attack.pyin import PITCHES, pitch_values, track_pitches
from voxveil.audio.frames import frame_count

RATE = 16_000


def pulses(hertz: float, seconds: float = 0.5) -> np.ndarray:
    time = np.arange(int(RATE * seconds)) / RATE
    return sum(np.cos(2 * np.pi * k * hertz * time + k * k) / k for k in range(1, 12)) * 0.1


@pytest.mark.parametrize("hertz", [70.0, 98.0, 147.0, 210.0, 333.0, 440.0])
def test_a_steady_voice_has_its_pitch_everywhere(hertz: float) -> None:
    found = track_pitches(pulses(hertz))
    inside = found[8:-8]
    assert (inside >= 0).all()
    # Half a step is 16 cents.
    assert np.abs(12 * np.log2(pitch_values()[inside] / hertz)).max() < 0.32


@pytest.mark.parametrize(
    "audio", [np.zeros(8000), np.random.default_rng(0).normal(0, 0.1, 8000)], ids=["silence", "noise"]
)
def test_what_has_no_pitch_is_unvoiced(audio: np.ndarray) -> None:
    assert (track_pitches(audio) >= 0).mean() < 0.05


@pytest.mark.parametrize("samples", [1, 159, 160, 8001])
def test_it_keeps_the_frame_grid(samples: int) -> None:
    found = track_pitches(pulses(120.0)[:samples])
    assert len(found) == frame_count(samples)
    assert found.min() >= -1
    assert found.max() < PITCHES


def test_the_level_does_not_matter() -> None:
    audio = pulses(160.0)
    assert np.array_equal(track_pitches(audio), track_pitches(0.01 * audio))


def test_the_normalised_difference_is_literal() -> None:
    frames = np.random.default_rng(1).normal(0, 1, (2, pyin.FRAME))
    found = pyin._normalized_difference(frames)
    window = pyin._WINDOW
    for frame, row in zip(frames, found, strict=True):
        difference = [
            ((frame[:window] - frame[lag : lag + window]) ** 2).sum() for lag in range(pyin._LONGEST + 1)
        ]
        assert row[0] == 1
        for lag in (1, 2, 40, 100, pyin._LONGEST):
            assert row[lag] == pytest.approx(difference[lag] / (sum(difference[1 : lag + 1]) / lag), rel=1e-9)


def test_candidates_are_those_of_a_sum_over_thresholds() -> None:
    """The paper draws 100 thresholds; many more approach the integral that is used here."""
    from scipy.stats import beta

    frames = np.stack(
        [pulses(130.0)[:1024] + np.random.default_rng(s).normal(0, 0.05, 1024) for s in range(3)]
    )
    normalized = pyin._normalized_difference(frames)
    found = pyin._probabilities(normalized)
    edges = np.linspace(0, 1, 20_001)
    prior = np.diff(beta(2, 18).cdf(edges))
    for row, observed in zip(normalized, found, strict=True):
        lags = [
            lag
            for lag in range(pyin._SHORTEST, pyin._LONGEST)
            if row[lag] < row[lag - 1] and row[lag] <= row[lag + 1] and row[lag] < 1
        ]
        mass = dict.fromkeys(lags, 0.0)
        lowest = min(lags, key=lambda lag: row[lag])
        for threshold, weight in zip((edges[1:] + edges[:-1]) / 2, prior, strict=True):
            below = [lag for lag in lags if row[lag] < threshold]
            if below:
                mass[below[0]] += weight
            else:
                mass[lowest] += 0.01 * weight
        assert observed.sum() == pytest.approx(sum(mass.values()), abs=1e-3)
        likeliest = max(mass, key=mass.__getitem__)
        assert abs(12 * np.log2(pitch_values()[observed.argmax()] / (RATE / likeliest))) < 1.0
