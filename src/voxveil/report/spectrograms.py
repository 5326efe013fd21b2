"""Spectrograms of public utterances, before and after every system.

Needs matplotlib (``pip install 'voxveil[plots]'``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.audio.io import decode
from voxveil.report.figures import LIGHT, Theme, style
from voxveil.report.players import Pair

__all__ = ["spectrogram", "spectrogram_figure"]

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


def spectrogram_figure(pairs: Sequence[Pair], theme: Theme = LIGHT) -> Figure:
    """Draw one utterance: the original, then every system that changes it, one above the other.

    Args:
        pairs: Of one utterance.
        theme: Colours.
    """
    rows = [("original", pairs[0].original)]
    rows += [(pair.system, pair.anonymized) for pair in pairs if pair.kind != "original"]
    with rc_context(style(theme)):
        figure = Figure(figsize=(7.2, 1.15 * len(rows) + 0.5), layout="constrained")
        axes = figure.subplots(len(rows), 1, squeeze=False, sharex=True, sharey=True).ravel()
        for axis, (name, flac) in zip(axes, rows, strict=True):
            _panel(axis, name, decode(flac, pairs[0].utterance))
        axes[-1].set_xlabel("seconds", fontsize=8)
        figure.supylabel("kHz", fontsize=8)
        return figure


def _panel(axis: Axes, name: str, audio: NDArray[np.float32]) -> None:
    extent = (0.0, len(audio) / SAMPLE_RATE, 0.0, SAMPLE_RATE / 2000)
    axis.imshow(
        spectrogram(audio),
        origin="lower",
        aspect="auto",
        extent=extent,
        cmap="Greys",
        vmin=-_RANGE_DB,
        vmax=0,
    )
    axis.set_title(name, fontsize=8, loc="left", pad=2)
    axis.grid(False)
