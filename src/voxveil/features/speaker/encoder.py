"""The speaker encoders: ECAPA-TDNN, or an x-vector network, on log-mel frames.

Desplanques, Thienpondt and Demuynck, "ECAPA-TDNN: Emphasized channel attention, propagation and
aggregation in TDNN based speaker verification", Interspeech 2020; the network is SpeechBrain's.
It serves twice: on public speech for the pool of targets, and as the attacker. Nothing private
reaches the synthesizer through it.

One number per clip, its mean over time and bands, is subtracted from the log-mel, so gain cancels.
The mean of each band is not: a voice is also known by its static spectrum, and subtracting it
doubled the error rate on the embedded corpus. Where a speaker's recordings share one session, the
channel is part of that spectrum and original speech is easier to link than across sessions. Each
clip is embedded by itself, without padding, so what is embedded beside it cannot move its embedding.

The x-vector network: Snyder et al., "X-vectors: robust DNN embeddings for speaker recognition", ICASSP 2018.
Written out here because the statistics pooling of SpeechBrain's adds random noise, in evaluation too: the
same clip would get another embedding each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from voxveil.audio.frames import MEL_BANDS
from voxveil.audio.mel import log_mel
from voxveil.features.speaker.clips import at_least_minimum
from voxveil.runtime.atomic import read_description, write_bytes, write_json
from voxveil.runtime.errors import InputError
from voxveil.training.checkpoint import load_weights, model_bytes
from voxveil.training.loop import device
from voxveil.training.placeholders import remove_placeholders

__all__ = [
    "ARCHITECTURES",
    "ECAPA",
    "RES2NET_SCALE",
    "X_VECTOR",
    "EncoderSize",
    "SpeakerEncoder",
    "SpeakerNetwork",
    "XVectorNetwork",
]

_FORMAT = 1

ECAPA = "ecapa-tdnn"
X_VECTOR = "x-vector"
#: The networks an encoder may be, as ``kind`` of its model.json names them.
ARCHITECTURES = (ECAPA, X_VECTOR)

#: Branches of a Res2Net block; the channels must be a multiple of it.
RES2NET_SCALE = 4

#: Taps and dilation of each frame layer: 15 frames of context.
_LAYERS = ((5, 1), (3, 2), (3, 3), (1, 1), (1, 1))
_VARIANCE_FLOOR = 1e-5


@dataclass(frozen=True)
class EncoderSize:
    """Everything needed to rebuild the network.

    Attributes:
        channels: Width of the convolution blocks, a multiple of 4; the aggregation layer is three times
            as wide.
        embedding: Size E of the embedding.
        architecture: One of :data:`ARCHITECTURES`.
        inputs: Values per frame; 80 for log-mel.
    """

    channels: int
    embedding: int
    architecture: str = ECAPA
    inputs: int = MEL_BANDS


class XVectorNetwork(nn.Module):
    """Frames of equal-length clips to embeddings.

    Args:
        inputs: Values per frame.
        channels: Width of the frame layers; the last is three times as wide.
        embedding: Size E of the embedding.
    """

    def __init__(self, inputs: int, channels: int, embedding: int) -> None:
        super().__init__()
        widths = [inputs, *[channels] * (len(_LAYERS) - 1), 3 * channels]
        layers: list[nn.Module] = []
        for (taps, dilation), before, after in zip(_LAYERS, widths[:-1], widths[1:], strict=True):
            pad = dilation * (taps // 2)
            layers += [
                nn.Conv1d(before, after, taps, dilation=dilation, padding=pad),
                nn.ReLU(),
                nn.BatchNorm1d(after),
            ]
        self.frames = nn.Sequential(*layers)
        self.segment = nn.Linear(6 * channels, embedding)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        """Embed (batch, frames, inputs); returns (batch, E), not normalized."""
        hidden = self.frames(frames.transpose(1, 2))
        deviation = hidden.var(dim=2, unbiased=False).clamp_min(_VARIANCE_FLOOR).sqrt()
        embedding: torch.Tensor = self.segment(torch.cat([hidden.mean(dim=2), deviation], dim=1))
        return embedding


class SpeakerNetwork(nn.Module):
    """Log-mel of equal-length clips to embeddings."""

    def __init__(self, size: EncoderSize) -> None:
        super().__init__()
        self.size = size
        width = size.channels
        if size.architecture == X_VECTOR:
            self.xvector = XVectorNetwork(size.inputs, width, size.embedding)
            return
        self.ecapa = _ecapa_class()(
            size.inputs,
            lin_neurons=size.embedding,
            channels=[width] * 4 + [3 * width],
            attention_channels=max(16, width // 2),
            se_channels=max(16, width // 2),
            res2net_scale=RES2NET_SCALE,
        )

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        """Embed clips of one length.

        Args:
            audio: (batch, samples), 16 kHz, in [-1, 1]; at least
                :data:`voxveil.features.speaker.clips.MINIMUM_SAMPLES` samples.

        Returns:
            (batch, E), not normalized.
        """
        return self.embed_frames(log_mel(audio))

    def embed_frames(self, mel: torch.Tensor) -> torch.Tensor:
        """Embed (batch, frames, inputs) natural-log mel or other frames; returns (batch, E)."""
        centred = mel - mel.mean(dim=(1, 2), keepdim=True)
        if self.size.architecture == X_VECTOR:
            vectors: torch.Tensor = self.xvector(centred)
            return vectors
        embedding: torch.Tensor = self.ecapa(centred).squeeze(1)
        return embedding


class SpeakerEncoder:
    """A trained network that embeds clips of any length."""

    def __init__(self, network: SpeakerNetwork) -> None:
        self._network = network.to(device()).eval()

    @classmethod
    def load(cls, folder: Path) -> SpeakerEncoder:
        """Read ``model.json`` and ``model.safetensors`` from a folder.

        Raises:
            InputError: Naming the file that is missing, of another kind or does not fit.
        """
        path = Path(folder) / "model.json"
        content = read_description(path, "speaker encoder", *ARCHITECTURES)
        try:
            inputs = int(content.get("inputs", MEL_BANDS))
            size = EncoderSize(int(content["channels"]), int(content["embedding"]), content["kind"], inputs)
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}: channels and embedding must be whole numbers") from None
        network = SpeakerNetwork(size)
        load_weights(network, Path(folder) / "model.safetensors")
        return cls(network)

    def save(self, folder: Path, facts: Mapping[str, object] | None = None) -> None:
        """Write ``model.json`` and ``model.safetensors``.

        Args:
            folder: An existing folder.
            facts: Further entries of ``model.json``, e.g. what it was trained on.
        """
        write_bytes(Path(folder) / "model.safetensors", model_bytes(self._network))
        size = {"channels": self.size.channels, "embedding": self.size.embedding}
        if self.size.inputs != MEL_BANDS:
            size["inputs"] = self.size.inputs
        content = {**(facts or {}), **size, "format": _FORMAT, "kind": self.size.architecture}
        write_json(Path(folder) / "model.json", content)

    @property
    def size(self) -> EncoderSize:
        """Sizes of the network."""
        return self._network.size

    def embed(self, audio: NDArray[np.float32], name: str = "audio") -> NDArray[np.float32]:
        """Return the unit-norm embedding of one clip.

        Args:
            audio: (n,) 16 kHz mono in [-1, 1]. A clip shorter than
                :data:`voxveil.features.speaker.clips.MINIMUM_SAMPLES` is repeated up to it.
            name: What to call the clip in an error.

        Returns:
            (E,) float32 with Euclidean norm 1.

        Raises:
            InputError: The clip is empty, not one-dimensional or holds NaN or infinity.
        """
        clip = torch.from_numpy(at_least_minimum(audio, name)).to(device())
        with torch.inference_mode():
            return _unit(self._network(clip[None])[0])

    def embed_frames(self, frames: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the (E,) unit-norm embedding of the (frames, inputs) features of one clip."""
        with torch.inference_mode():
            return _unit(self._network.embed_frames(torch.from_numpy(frames)[None].to(device()))[0])

    def embed_many(self, clips: Iterable[tuple[str, NDArray[np.float32]]]) -> Iterator[NDArray[np.float32]]:
        """Embed named clips one at a time, lazily and in order; see :meth:`embed`."""
        for name, audio in clips:
            yield self.embed(audio, name)


def _unit(vector: torch.Tensor) -> NDArray[np.float32]:
    unit = vector.double() / vector.double().norm().clamp_min(1e-12)
    result: NDArray[np.float32] = unit.cpu().numpy().astype(np.float32)
    return result


def _ecapa_class() -> type[nn.Module]:
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    remove_placeholders()
    network: type[nn.Module] = ECAPA_TDNN
    return network
