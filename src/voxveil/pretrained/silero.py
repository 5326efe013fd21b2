"""Voice activity by Silero VAD: the probability of speech in every 32 ms, and spans of speech.

Silero Team, "Silero VAD: pre-trained enterprise-grade voice activity detector", 2024. The network is
recurrent; its input is a window of 512 samples with the 64 samples before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import single_file
from voxveil.pretrained.onnx import open_session, run_inputs
from voxveil.pretrained.speaker import require_rate
from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import InputError

__all__ = ["SileroVad", "convert", "load", "speech_spans"]

_WEIGHTS = "model.onnx"
_WINDOW = 512
_CONTEXT = 64
_INPUTS = {"input", "state", "sr"}
#: Speech starts at the first probability and ends below the second, as published.
_START, _STOP = 0.5, 0.35
#: Shortest speech, shortest silence inside it, and what is added at both ends, in samples (250, 100, 30 ms).
_SPEECH, _SILENCE, _PAD = 4000, 1600, 480


class SileroVad:
    """The detector; a result does not depend on other clips."""

    def __init__(self, session: Any, model: PretrainedModel) -> None:
        require_rate(model)
        self._session = session
        self.model = model

    def probabilities(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float64]:
        """Return the probability of speech in every 512 of (n,) samples at 16 kHz, the last one padded.

        Raises:
            InputError: The clip is empty, not one-dimensional or holds NaN or infinity.
        """
        if audio.ndim != 1 or not len(audio) or not np.isfinite(audio).all():
            raise InputError(f"{name}: audio must be (samples,) of finite numbers, at least 1")
        clip = np.pad(audio.astype(np.float32), (_CONTEXT, -len(audio) % _WINDOW))
        state, found = np.zeros((2, 1, 128), np.float32), []
        for start in range(0, len(clip) - _CONTEXT, _WINDOW):
            window = clip[None, start : start + _CONTEXT + _WINDOW]
            values: dict[str, NDArray[Any]] = {
                "input": window,
                "state": state,
                "sr": np.array(SAMPLE_RATE, np.int64),
            }
            probability, state = run_inputs(self._session, values, name)
            found.append(float(probability.reshape(-1)[0]))
        return np.array(found)

    def spans(self, audio: NDArray[np.float32], name: str) -> Sequence[tuple[int, int]]:
        """Return (start, stop) in samples of each stretch of speech, sorted, in (n,) samples at 16 kHz."""
        return speech_spans(self.probabilities(audio, name), len(audio))


def speech_spans(probabilities: NDArray[np.float64], samples: int) -> list[tuple[int, int]]:
    """Return the spans of speech, sorted and apart, that probabilities of windows of 512 samples give.

    Args:
        probabilities: (windows,) in [0, 1].
        samples: Length of the clip.
    """
    spans: list[list[int]] = []
    speaking = False
    for window, probability in enumerate(probabilities):
        start = window * _WINDOW
        if probability >= _START and not speaking:
            speaking = True
            if spans and start - spans[-1][1] < _SILENCE:
                continue
            spans.append([start, start])
        if speaking and probability < _STOP:
            speaking = False
            spans[-1][1] = start
    if speaking:
        spans[-1][1] = samples
    padded: list[tuple[int, int]] = []
    for start, stop in spans:
        if stop - start < _SPEECH:
            continue
        first, last = max(0, start - _PAD), min(samples, stop + _PAD)
        if padded and first <= padded[-1][1]:
            first = padded.pop()[0]
        padded.append((first, last))
    return padded


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Copy the network and return the settings; its inputs are checked."""
    path = single_file(files)
    write_bytes(folder / _WEIGHTS, path.read_bytes())
    found = {item.name for item in open_session(folder / _WEIGHTS).get_inputs()}
    if found != _INPUTS:
        raise InputError(f"{path}: not a {name} network; its inputs are {', '.join(sorted(found))}")
    return {}


def load(model: PretrainedModel) -> SileroVad:
    """Return the loaded detector."""
    return SileroVad(open_session(model.folder / _WEIGHTS), model)
