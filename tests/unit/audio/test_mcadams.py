"""The McAdams baseline: against a literal frame-by-frame version, and what any transformation must keep."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.signal import lfilter

from made_speech import speak
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.audio.mcadams import ORDER, burg, mcadams, moved_poles

WINDOW, HOP = 320, 160


def literal_burg(frame: np.ndarray) -> np.ndarray:
    """Burg's method as textbooks have it, one order at a time."""
    forward, backward = frame.copy(), frame.copy()
    polynomial = np.array([1.0])
    for _ in range(ORDER):
        f, b = forward[1:], backward[:-1]
        energy = f @ f + b @ b
        reflection = -2 * (f @ b) / energy if energy > 0 else 0.0
        padded = np.append(polynomial, 0.0)
        polynomial = padded + reflection * padded[::-1]
        forward, backward = f + reflection * b, b + reflection * f
    return polynomial


def literal(audio: np.ndarray, coefficient: float) -> np.ndarray:
    """One frame after the other, with numpy's roots and scipy's filters."""
    window = np.sqrt(0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW))
    padded = np.concatenate([np.zeros(HOP), audio.astype(np.float64), np.zeros(2 * WINDOW)])
    result = np.zeros_like(padded)
    for start in range(0, len(audio) + HOP, HOP):
        frame = padded[start : start + WINDOW] * window
        polynomial = literal_burg(frame)
        poles = np.roots(polynomial)
        moved = [
            pole
            if pole.imag == 0
            else abs(pole) * np.exp(1j * np.sign(pole.imag) * min(abs(np.angle(pole)) ** coefficient, np.pi))
            for pole in poles
        ]
        moved += [0.0] * (ORDER - len(moved))
        residual = lfilter(polynomial, [1.0], frame)
        result[start : start + WINDOW] += lfilter([1.0], np.real(np.poly(moved)), residual) * window
    return result[HOP : HOP + len(audio)]


@pytest.mark.parametrize("coefficient", [0.5, 0.8, 1.2])
@pytest.mark.parametrize("samples", [1, 159, 160, 3_200, 5_001])
def test_as_the_literal_version(coefficient: float, samples: int) -> None:
    audio = speak(120.0, samples)[0]
    made = mcadams(audio, coefficient)
    assert made.shape == (samples,) and made.dtype == np.float32
    expected = literal(audio, coefficient)
    np.testing.assert_allclose(made, expected, atol=1e-5 * max(np.abs(expected).max(), 1e-3))


def test_burg_as_the_literal_version() -> None:
    frames = np.random.default_rng(0).standard_normal((WINDOW, 5))
    frames[:, 4] = 0.0
    for column, found in zip(frames.T, burg(frames).T, strict=True):
        np.testing.assert_allclose(found, literal_burg(column), atol=1e-9)


@given(st.integers(1, 4_000), st.floats(0.3, 1.5), st.integers(0, 2**31))
def test_any_noise_stays_finite_and_as_long(samples: int, coefficient: float, seed: int) -> None:
    audio = np.random.default_rng(seed).standard_normal(samples)
    made = mcadams(audio, coefficient)
    assert made.shape == (samples,)
    assert np.isfinite(made).all()


def test_one_changes_nothing() -> None:
    audio = speak(150.0, 8_000)[0]
    np.testing.assert_allclose(mcadams(audio, 1.0), audio, atol=1e-6)


def test_more_frames_than_a_block_are_as_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    audio = speak(150.0, 20_000)[0]
    whole = mcadams(audio, 0.7)
    monkeypatch.setattr("voxveil.audio.mcadams._BLOCK", 16)
    np.testing.assert_allclose(mcadams(audio, 0.7), whole, atol=1e-6)


@pytest.mark.parametrize("audio", [np.zeros(4_000), np.full(4_000, 0.5), np.eye(1, 4_000, 2_000)[0]])
def test_silence_constants_and_clicks_stay_finite(audio: np.ndarray) -> None:
    made = mcadams(audio, 0.6)
    assert np.isfinite(made).all()
    assert made.any() == audio.any()


def test_a_formant_moves_where_its_angle_goes() -> None:
    rng = np.random.default_rng(1)
    pole = 0.98 * np.exp(2j * np.pi * 800 / SAMPLE_RATE)
    audio = lfilter([1.0], np.real(np.poly([pole, pole.conjugate()])), rng.standard_normal(32_000))
    spectrum = np.abs(np.fft.rfft(mcadams(audio, 0.8).reshape(-1, 640), axis=1)).mean(axis=0)
    expected = (2 * np.pi * 800 / SAMPLE_RATE) ** 0.8 * SAMPLE_RATE / (2 * np.pi)
    assert abs(spectrum.argmax() * SAMPLE_RATE / 640 - expected) < 60


def test_poles_keep_their_radius_and_real_ones_their_place() -> None:
    poles = np.array([[0.9, -0.5, 0.8j, -0.8j, 0.5 * np.exp(3.1j), 0.5 * np.exp(-3.1j)]])
    moved = moved_poles(poles, 1.3)
    np.testing.assert_allclose(np.abs(moved), np.abs(poles))
    np.testing.assert_array_equal(moved[0, :2], poles[0, :2])
    np.testing.assert_allclose(moved[0, 2::2], np.conj(moved[0, 3::2]), atol=1e-12)
    assert (np.abs(np.angle(moved)) <= np.pi).all()
