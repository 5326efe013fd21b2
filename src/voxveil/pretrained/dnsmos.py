"""DNSMOS P.835: predicted overall quality of speech.

Reddy, Gopal and Cutler, "DNSMOS P.835: a non-intrusive perceptual objective speech quality metric", ICASSP
2022. The network takes windows of 9.01 s. A shorter clip is repeated, and the score of a longer clip is the
mean over windows that start a second apart. The raw output goes through the published polynomial.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.features.speaker.clips import at_least_minimum
from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.onnx import open_session, run_session
from voxveil.pretrained.speaker import require_rate
from voxveil.runtime.atomic import write_bytes

__all__ = ["DnsMos", "convert", "load"]

_WEIGHTS = "sig_bak_ovr.onnx"
_WINDOW = int(9.01 * 16000)
_HOP = 16000
#: Polynomial from the raw overall score to the MOS scale, as published with the network.
_OVERALL = np.poly1d([-0.06766283, 1.11546468, 0.04602535])


class DnsMos:
    """The judge; scores run from 1 to 5."""

    def __init__(self, session: Any, model: PretrainedModel) -> None:
        require_rate(model)
        self._session = session
        self.model = model

    def score(self, audio: NDArray[np.float32], name: str) -> float:
        """Return the predicted overall MOS of (n,) samples at 16 kHz."""
        clip = at_least_minimum(audio, name)
        while len(clip) < _WINDOW:
            clip = np.append(clip, clip)
        last = int(np.floor(len(clip) / _HOP) - _WINDOW / _HOP) + 1
        values = []
        for second in range(max(1, last)):
            window = clip[second * _HOP : second * _HOP + _WINDOW]
            if len(window) == _WINDOW:
                values.append(float(run_session(self._session, window[None], name).reshape(-1)[2]))
        return float(np.mean(_OVERALL(np.asarray(values))))


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Copy the network and return the settings."""
    del name
    write_bytes(folder / _WEIGHTS, files[_WEIGHTS].read_bytes())
    return {}


def load(model: PretrainedModel) -> DnsMos:
    """Return the loaded judge."""
    return DnsMos(open_session(model.folder / _WEIGHTS), model)
