"""Spectrograms of public utterances, before and after every system.

Needs matplotlib (``pip install 'voxveil[plots]'``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from voxveil.audio.files import decode
from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.results.report.figures import LIGHT, Theme, style
from voxveil.results.report.players import Pair

__all__ = ["spectrogram", "spectrogram_figure", "spectrograms"]

_WINDOW = 512
_RANGE_DB = 70.0


def spectrogram(audio: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the power in dB below the loudest bin, (257, K), frames of 32 ms every 10 ms.

    Args:
        audio: (n,) 16 kHz.
    """
    padded = np.pad(audio.astype(np.float64), (_WINDOW // 2, _WINDOW // 2))
    frames = np.lib.stride_tricks.sliding_window_view(padded, _WINDOW)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(_WINDOW), axis=1)) ** 2
    level = 10.0 * np.log10(power + 1e-12)
    return np.asarray(np.maximum(level - level.max(), -_RANGE_DB).T)


def spectrograms(pairs: Sequence[Pair]) -> dict[str, NDArray[np.float64]]:
    """Return the spectrograms of one utterance: the original, then every system that changes it.

    Args:
        pairs: Of one utterance.
    """
    flacs = {"original": pairs[0].original}
    flacs |= {pair.system: pair.anonymized for pair in pairs if pair.kind != "original"}
    return {name: spectrogram(decode(flac, pairs[0].utterance)) for name, flac in flacs.items()}


def spectrogram_figure(panels: Mapping[str, NDArray[np.float64]], theme: Theme = LIGHT) -> Figure:
    """Draw the spectrograms of one utterance, one above the other.

    Args:
        panels: As :func:`spectrograms` returns them.
        theme: Colours.
    """
    with rc_context(style(theme)):
        figure = Figure(figsize=(7.2, 1.15 * len(panels) + 0.5), layout="constrained")
        axes = figure.subplots(len(panels), 1, squeeze=False, sharex=True, sharey=True).ravel()
        for axis, (name, levels) in zip(axes, panels.items(), strict=True):
            _panel(axis, name, levels)
        axes[-1].set_xlabel("seconds", fontsize=8)
        figure.supylabel("kHz", fontsize=8)
        return figure


def _panel(axis: Axes, name: str, levels: NDArray[np.float64]) -> None:
    extent = (0.0, levels.shape[1] * HOP / SAMPLE_RATE, 0.0, SAMPLE_RATE / 2000)
    axis.imshow(levels, origin="lower", aspect="auto", extent=extent, cmap="Greys", vmin=-_RANGE_DB, vmax=0)
    axis.set_title(name, fontsize=8, loc="left", pad=2)
    axis.grid(False)
