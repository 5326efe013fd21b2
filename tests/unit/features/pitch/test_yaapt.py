"""F0 tracking on signals whose F0 is known."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from made_hostile import Hostile
from voxveil.audio.files import read_recording
from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.features.pitch.yaapt import F0_MAX, F0_MIN, track_f0
from voxveil.runtime.errors import InputError


def voiced(f0: np.ndarray | float, samples: int, harmonics: int = 12) -> np.ndarray:
    """Return harmonics that fall by 12 dB per octave; ``f0`` in Hz, a number or one per sample."""
    phase = np.cumsum(np.broadcast_to(f0, samples)) / SAMPLE_RATE
    return sum(0.05 / k**2 * np.cos(2 * np.pi * k * phase + k * k) for k in range(1, harmonics))


@pytest.mark.parametrize("hertz", [70.0, 80.0, 110.0, 150.0, 220.0, 300.0, 390.0])
def test_finds_a_steady_pitch(hertz: float) -> None:
    f0 = track_f0(voiced(hertz, 16_000))
    assert (f0 > 0).mean() > 0.9
    # Half a lag: 16000 / f0 is searched in whole samples.
    assert np.median(f0[f0 > 0]) == pytest.approx(hertz, rel=0.6 * hertz / SAMPLE_RATE + 1e-3)


@pytest.mark.parametrize("slope", [-60.0, 60.0])
def test_frame_k_is_centred_at_sample_160_k(slope: float) -> None:
    samples = 32_000
    truth = 200.0 + slope * (np.arange(samples) / SAMPLE_RATE - 1.0)
    f0 = track_f0(voiced(truth, samples))
    frames = np.flatnonzero(f0[20:180]) + 20
    delay = np.median(f0[frames] - truth[frames * HOP]) / slope
    assert len(frames) > 100
    assert abs(delay) < 0.005


def test_silence_between_vowels_is_unvoiced() -> None:
    gap = np.concatenate([voiced(120.0, 8000), np.zeros(8000), voiced(180.0, 8000)])
    f0 = track_f0(gap + np.random.default_rng(0).normal(0, 1e-5, len(gap)))
    assert not f0[58:92].any()
    assert np.median(f0[10:40]) == pytest.approx(120, rel=0.02)
    assert np.median(f0[110:140]) == pytest.approx(180, rel=0.02)


@pytest.mark.parametrize(
    "samples", [1, 2, 159, 160, 161, 800, 1599, 1600, 1601, 2400, 15_999, 16_000, 16_159]
)
@pytest.mark.parametrize("kind", ["noise", "silence", "click", "constant", "tone"])
def test_any_length_and_content_gives_one_value_a_frame(samples: int, kind: str) -> None:
    audio = {
        "noise": np.random.default_rng(samples).normal(0, 0.1, samples),
        "silence": np.zeros(samples),
        "click": np.eye(1, samples, samples // 2)[0],
        "constant": np.full(samples, 0.3),
        "tone": voiced(120.0, samples),
    }[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f0 = track_f0(audio.astype(np.float32))
    assert f0.dtype == np.float32
    assert f0.shape == (frame_count(samples),)
    assert ((f0 == 0) | ((f0 >= F0_MIN) & (f0 <= F0_MAX))).all()
    if kind in ("silence", "click", "constant"):
        assert not f0.any()


@pytest.mark.parametrize("seed", range(4))
def test_white_noise_has_no_pitch(seed: int) -> None:
    assert not track_f0(np.random.default_rng(seed).normal(0, 0.1, 32_000)).any()


def test_whispered_speech_has_hardly_any_pitch(hostile: Hostile) -> None:
    f0 = track_f0(read_recording(hostile.folder / hostile.whispered).audio)
    assert (f0 > 0).mean() < 0.05


def test_the_level_does_not_matter() -> None:
    audio = voiced(140.0, 8000) + np.random.default_rng(1).normal(0, 1e-3, 8000)
    np.testing.assert_array_equal(track_f0(audio), track_f0(audio / 128))


def test_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    track_f0(np.random.default_rng(0).normal(0, 0.1, 2000))
    assert capsys.readouterr() == ("", "")


def test_not_a_number_is_refused() -> None:
    with pytest.raises(InputError, match="finite"):
        track_f0(np.array([0.0, np.nan] * 2000))
