"""McAdams anonymization (VoicePrivacy's baseline B2), signal processing without a privacy guarantee.

Patino, Tomashenko, Todisco, Nautsch and Evans, "Speaker anonymisation using the McAdams coefficient",
Interspeech 2021. Frames of 20 ms, half overlapping, under the root of a Hann window; linear prediction
of order 20 by Burg's method; each complex pole keeps its radius, its angle phi becomes phi^alpha;
the residual of the old filter drives the new one. VoicePrivacy 2024 draws alpha from [0.5, 0.9] for
each utterance. Every frame of a block is computed at once, time along the first axis.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE

__all__ = ["ORDER", "burg", "mcadams", "moved_poles"]

#: Order of the linear prediction.
ORDER = 20
_WINDOW = SAMPLE_RATE // 50
_HOP = _WINDOW // 2
#: Frames computed at once: bounds memory, and fits a cache.
_BLOCK = 512

Array = NDArray[np.float64]


def mcadams(audio: NDArray[np.floating], coefficient: float) -> NDArray[np.float32]:
    """Shift the formants of a recording by the McAdams coefficient.

    Args:
        audio: (n,) finite samples at 16 kHz.
        coefficient: alpha > 0; 1 changes nothing, below 1 formants under 2.5 kHz rise and others fall.

    Returns:
        (n,) float32; may pass full scale. Silence stays silence.
    """
    samples = len(audio)
    # A periodic Hann window at half overlap sums to 1: with its root at analysis and at synthesis,
    # alpha = 1 gives the input back.
    window = np.sin(np.pi * np.arange(_WINDOW) / _WINDOW)[:, None]
    frames = samples // _HOP + 2
    padded = np.zeros((frames + 1) * _HOP)
    padded[_HOP : _HOP + samples] = audio
    views = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::_HOP]
    result = np.zeros_like(padded)
    for start in range(0, frames, _BLOCK):
        block = np.ascontiguousarray(views[start : start + _BLOCK].T) * window
        synthesized = _respoken(block, coefficient) * window
        # Frames of even number lie end to end, those of odd number half a frame later.
        for odd in (0, 1):
            piece = synthesized[:, odd::2].T.reshape(-1)
            first = (start + odd) * _HOP
            result[first : first + len(piece)] += piece
    return result[_HOP : _HOP + samples].astype(np.float32)


def _respoken(frames: Array, coefficient: float) -> Array:
    """Return windowed frames (window, F) with their poles moved."""
    before = burg(frames)
    after = _polynomial(moved_poles(_poles(before), coefficient))
    count = frames.shape[1]
    residual = frames.copy()
    for lag in range(1, ORDER + 1):
        residual[lag:] += before[lag] * frames[:-lag]
    output = np.zeros((ORDER + _WINDOW, count))
    taps = np.ascontiguousarray(after[:0:-1])
    for time in range(_WINDOW):
        recursion = np.einsum("kf,kf->f", taps, output[time : time + ORDER])
        output[time + ORDER] = residual[time] - recursion
    return output[ORDER:]


def burg(frames: Array) -> Array:
    """Return prediction polynomials (ORDER + 1, F) of frames (window, F); the first row is 1.

    All their roots lie within the unit circle. A frame of zeros has the polynomial 1.
    """
    forward, backward = frames[1:].copy(), frames[:-1].copy()
    polynomial = np.zeros((ORDER + 1, frames.shape[1]))
    polynomial[0] = 1.0
    energy = np.einsum("tf,tf->f", forward, forward) + np.einsum("tf,tf->f", backward, backward)
    tiny = np.finfo(np.float64).tiny
    floor = energy * 1e-12 + tiny
    for order in range(1, ORDER + 1):
        reflection = -2.0 * np.einsum("tf,tf->f", backward, forward) / np.maximum(energy, floor)
        # Rounding alone could pass 1, in a frame that is predicted perfectly.
        reflection = np.clip(reflection, -1.0, 1.0)
        polynomial[1 : order + 1] += reflection * polynomial[order - 1 :: -1][:order]
        forward, backward = forward + reflection * backward, backward + reflection * forward
        energy = (1.0 - reflection**2) * energy - backward[-1] ** 2 - forward[0] ** 2
        forward, backward = forward[1:], backward[:-1]
    return polynomial


def _poles(polynomial: Array) -> NDArray[np.complex128]:
    """Return the roots (F, ORDER) of polynomials (ORDER + 1, F): eigenvalues of companion matrices."""
    companion = np.zeros((polynomial.shape[1], ORDER, ORDER))
    companion[:, 0, :] = -polynomial[1:].T
    index = np.arange(ORDER - 1)
    companion[:, index + 1, index] = 1.0
    return np.linalg.eigvals(companion).astype(np.complex128)


def moved_poles(poles: NDArray[np.complex128], coefficient: float) -> NDArray[np.complex128]:
    """Return poles with phi^coefficient as angle; real ones stay, and no angle passes pi."""
    angle = np.abs(np.angle(poles))
    moved = np.minimum(angle**coefficient, np.pi) * np.sign(poles.imag)
    return np.where(poles.imag == 0.0, poles, np.abs(poles) * np.exp(1j * moved))


def _polynomial(roots: NDArray[np.complex128]) -> Array:
    """Return the real polynomials (ORDER + 1, F) with roots (F, ORDER) in conjugate pairs."""
    result = np.zeros((ORDER + 1, len(roots)), np.complex128)
    result[0] = 1.0
    for index in range(ORDER):
        result[1 : index + 2] -= roots[:, index] * result[: index + 1]
    return np.ascontiguousarray(result.real)
