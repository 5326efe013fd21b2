"""Loudness normalization of outputs to one level (ITU-R BS.1770-4)."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.runtime.errors import optional_module

__all__ = ["LoudnessMeter", "to_loudness"]

#: Block of ITU-R BS.1770-4 in samples; shorter clips are repeated until they fill one.
_BLOCK = int(0.4 * SAMPLE_RATE)
#: Blocks begin this many samples apart.
_STEP = _BLOCK // 4
#: Of BS.1770: the loudness of unit mean square, and the absolute gate, in LUFS.
_OFFSET, _GATE = -0.691, -70.0


def to_loudness(audio: NDArray[np.float32], lufs: float) -> NDArray[np.float32]:
    """Scale to an integrated loudness (ITU-R BS.1770-4).

    The level of the input is information about the speaker and the recording; here it is
    replaced by a constant, so the result does not depend on the input's gain.

    Args:
        audio: (n,) finite samples at 16 kHz. A clip under 0.4 s is measured as if repeated.
        lufs: Wanted loudness in LUFS.

    Returns:
        (n,) float32. Silence (no sample that differs from zero) stays silence. Peaks may pass
        full scale; :func:`voxveil.audio.files.encode_flac` clips and counts them.
    """
    peak = float(np.abs(audio).max(initial=0.0))
    if peak == 0.0:
        return np.zeros_like(audio, dtype=np.float32)
    # At unit peak first: the gate of BS.1770 at -70 LUFS is absolute, and would see the input's gain.
    unit = audio.astype(np.float64) / peak
    measured = unit if len(unit) >= _BLOCK else np.resize(unit, _BLOCK)
    loudness = _integrated_loudness(measured)
    result: NDArray[np.float32] = (unit * 10.0 ** ((lufs - loudness) / 20.0)).astype(np.float32)
    return result


def _integrated_loudness(audio: NDArray[np.float64]) -> float:
    pyloudnorm = optional_module("pyloudnorm", "data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        loudness = float(pyloudnorm.Meter(SAMPLE_RATE).integrated_loudness(audio))
    if np.isfinite(loudness):
        return loudness
    # Everything lies under the gate (a lone click in silence): the ungated mean square instead.
    return float(_OFFSET + 10.0 * np.log10(np.mean(audio**2)))


class LoudnessMeter:
    """The measure behind :func:`to_loudness` for audio that comes in pieces, at least 0.4 s in all."""

    def __init__(self) -> None:
        pyloudnorm = optional_module("pyloudnorm", "data")
        # The meter's K-weighting; its stages are not reachable by a public name.
        stages = pyloudnorm.Meter(SAMPLE_RATE)._filters.values()
        self._stages = [(stage.passband_gain * stage.b, stage.a) for stage in stages]
        self._states = [np.zeros(max(len(b), len(a)) - 1) for b, a in self._stages]
        self._steps: list[NDArray[np.float64]] = []
        self._rest = np.zeros(0)
        self._peak, self._samples, self._energy = 0.0, 0, 0.0

    def push(self, audio: NDArray[np.float32]) -> None:
        """Take the next (n,) finite samples at 16 kHz."""
        if not len(audio):
            return  # a filter's state after no sample at all is undefined in scipy
        from scipy.signal import lfilter

        self._peak = max(self._peak, float(np.abs(audio).max(initial=0.0)))
        self._samples += len(audio)
        weighted = audio.astype(np.float64)
        self._energy += float(weighted @ weighted)
        for index, (b, a) in enumerate(self._stages):
            weighted, self._states[index] = lfilter(b, a, weighted, zi=self._states[index])
        weighted = np.concatenate([self._rest, weighted])
        whole = len(weighted) // _STEP * _STEP
        self._steps.append(np.square(weighted[:whole]).reshape(-1, _STEP).sum(axis=1))
        self._rest = weighted[whole:]

    def gain(self, lufs: float) -> float:
        """Return the factor that brings everything pushed to ``lufs``; 1 for silence."""
        if self._peak == 0.0:
            return 1.0
        steps = np.concatenate([*self._steps, [np.square(self._rest).sum()], np.zeros(_BLOCK // _STEP)])
        blocks = max(1, round((self._samples - _BLOCK) / _STEP) + 1)
        sums = np.convolve(steps, np.ones(_BLOCK // _STEP), "valid")[:blocks]
        # At unit peak, as above: the first gate is absolute.
        power = sums / _BLOCK / self._peak**2
        with np.errstate(divide="ignore"):
            loudness = _OFFSET + 10.0 * np.log10(power)
        loud = power[loudness >= _GATE]
        if not len(loud):
            mean = self._energy / self._samples / self._peak**2
        else:
            relative = _OFFSET + 10.0 * np.log10(loud.mean()) - 10.0
            mean = power[(loudness > relative) & (loudness > _GATE)].mean()
        measured = _OFFSET + 10.0 * np.log10(mean)
        return float(10.0 ** ((lufs - measured) / 20.0)) / self._peak
