"""Speaker networks in ONNX, e.g. of WeSpeaker: Kaldi filterbanks or samples to one vector."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.features.speaker.clips import at_least_minimum
from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import single_file
from voxveil.pretrained.onnx import open_session, run_session
from voxveil.pretrained.speaker import require_rate, unit
from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import InputError

__all__ = ["OnnxSpeaker", "convert", "load"]

_WEIGHTS = "model.onnx"


class OnnxSpeaker:
    """A speaker network in ONNX; ``bands`` is 0 where its input is samples."""

    def __init__(self, session: Any, bands: int, size: int, model: PretrainedModel) -> None:
        require_rate(model)
        self._session = session
        self._bands = bands
        self.size = size
        self.model = model

    def embed(self, audio: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Return the (E,) unit-norm embedding of a clip of (n,) samples at 16 kHz."""
        vector = run_session(self._session, _input(at_least_minimum(audio, name), self._bands), name)
        return unit(vector.astype(np.float64).reshape(-1), name)


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Copy the network and return the settings, which a run on one second of noise confirms."""
    del name
    path = single_file(files)
    write_bytes(folder / _WEIGHTS, path.read_bytes())
    session = open_session(folder / _WEIGHTS)
    shape = session.get_inputs()[0].shape
    if len(session.get_inputs()) != 1 or len(shape) not in (2, 3):
        raise InputError(
            f"{path}: its inputs are {[one.shape for one in session.get_inputs()]}, must be one of shape"
            " (batch, samples) or (batch, frames, bands)"
        )
    bands = 0 if len(shape) == 2 else shape[2]
    if not isinstance(bands, int):
        raise InputError(f"{path}: the number of bands of its input is {bands!r}, must be fixed in the model")
    noise = np.random.default_rng(0).normal(0, 0.1, 16000).astype(np.float32)
    vector = run_session(session, _input(noise, bands), str(path))
    if vector.size != vector.shape[-1]:
        raise InputError(f"{path}: its output has shape {vector.shape}, must be one vector for each clip")
    return {"bands": bands, "embedding": int(vector.size)}


def load(model: PretrainedModel) -> OnnxSpeaker:
    """Return the loaded network."""
    session = open_session(model.folder / _WEIGHTS)
    return OnnxSpeaker(session, int(model.settings["bands"]), int(model.settings["embedding"]), model)


def _input(clip: NDArray[np.float32], bands: int) -> NDArray[np.float32]:
    if not bands:
        return clip[None]
    import torch
    from torchaudio.compliance.kaldi import fbank

    # Networks of this kind were trained on samples of 16 bit.
    frames = fbank(torch.from_numpy(clip)[None] * 32768.0, num_mel_bins=bands, dither=0.0).numpy()
    result: NDArray[np.float32] = (frames - frames.mean(axis=0))[None]
    return result
