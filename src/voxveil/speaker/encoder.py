"""The speaker encoder: ECAPA-TDNN on log-mel frames, cosine geometry.

Desplanques, Thienpondt and Demuynck, "ECAPA-TDNN: Emphasized channel attention, propagation and
aggregation in TDNN based speaker verification", Interspeech 2020; the network is SpeechBrain's.
It serves twice: on public speech for the pool of targets, and as the attacker. Nothing private
reaches the synthesizer through it.

One number per clip, its mean over time and bands, is subtracted from the log-mel, so gain cancels.
The mean of each band is not: a voice is also known by its static spectrum, and subtracting it
doubled the error rate on the embedded corpus. Where a speaker's recordings share one session, the
channel is part of that spectrum and original speech is easier to link than across sessions. Each
clip is embedded by itself, without padding, so what is embedded beside it cannot move its embedding.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from voxveil.audio.frames import MEL_BANDS
from voxveil.audio.mel import log_mel
from voxveil.errors import InputError
from voxveil.speaker.clips import at_least_minimum
from voxveil.storage.atomic import read_json, write_bytes, write_json
from voxveil.training.checkpoint import load_model, model_bytes
from voxveil.training.loop import device

__all__ = ["RES2NET_SCALE", "EncoderSize", "SpeakerEncoder", "SpeakerNetwork"]

_FORMAT = 1
_KIND = "ecapa-tdnn"

#: Branches of a Res2Net block; the channels must be a multiple of it.
RES2NET_SCALE = 4


@dataclass(frozen=True)
class EncoderSize:
    """Everything needed to rebuild the network.

    Attributes:
        channels: Width of the convolution blocks, a multiple of 4; the aggregation layer is three times
            as wide.
        embedding: Size E of the embedding.
    """

    channels: int
    embedding: int


class SpeakerNetwork(nn.Module):
    """Log-mel of equal-length clips to embeddings."""

    def __init__(self, size: EncoderSize) -> None:
        super().__init__()
        self.size = size
        width = size.channels
        self.ecapa = _ecapa_class()(
            MEL_BANDS,
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
                :data:`voxveil.speaker.clips.MINIMUM_SAMPLES` samples.

        Returns:
            (batch, E), not normalised.
        """
        return self.embed_frames(log_mel(audio))

    def embed_frames(self, mel: torch.Tensor) -> torch.Tensor:
        """Embed (batch, frames, 80) natural-log mel frames; returns (batch, E)."""
        centred = mel - mel.mean(dim=(1, 2), keepdim=True)
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
        content = read_json(path)
        if not isinstance(content, dict) or (content.get("format"), content.get("kind")) != (_FORMAT, _KIND):
            raise InputError(f"{path}: not a speaker encoder of format {_FORMAT}")
        try:
            size = EncoderSize(int(content["channels"]), int(content["embedding"]))
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}: channels and embedding must be whole numbers") from None
        network = SpeakerNetwork(size)
        weights = Path(folder) / "model.safetensors"
        try:
            data = weights.read_bytes()
        except FileNotFoundError:
            raise InputError(f"{weights}: no such file") from None
        load_model(network, data, str(weights))
        return cls(network)

    def save(self, folder: Path, facts: Mapping[str, object] | None = None) -> None:
        """Write ``model.json`` and ``model.safetensors``.

        Args:
            folder: An existing folder.
            facts: Further entries of ``model.json``, e.g. what it was trained on.
        """
        write_bytes(Path(folder) / "model.safetensors", model_bytes(self._network))
        content = {**(facts or {}), **asdict(self.size), "format": _FORMAT, "kind": _KIND}
        write_json(Path(folder) / "model.json", content)

    @property
    def size(self) -> EncoderSize:
        """Sizes of the network."""
        return self._network.size

    def embed(self, audio: NDArray[np.float32], name: str = "audio") -> NDArray[np.float32]:
        """Return the unit-norm embedding of one clip.

        Args:
            audio: (n,) 16 kHz mono in [-1, 1]. A clip shorter than
                :data:`voxveil.speaker.clips.MINIMUM_SAMPLES` is repeated up to it.
            name: What to call the clip in an error.

        Returns:
            (E,) float32 with Euclidean norm 1.

        Raises:
            InputError: The clip is empty, not one-dimensional or holds NaN or infinity.
        """
        clip = torch.from_numpy(at_least_minimum(audio, name)).to(device())
        with torch.inference_mode():
            vector = self._network(clip[None])[0].double()
            unit = vector / vector.norm().clamp_min(1e-12)
        result: NDArray[np.float32] = unit.cpu().numpy().astype(np.float32)
        return result

    def embed_many(self, clips: Iterable[tuple[str, NDArray[np.float32]]]) -> Iterator[NDArray[np.float32]]:
        """Embed named clips one at a time, lazily and in order; see :meth:`embed`."""
        for name, audio in clips:
            yield self.embed(audio, name)


def _ecapa_class() -> type[nn.Module]:
    from speechbrain.lobes.models.ECAPA_TDNN import ECAPA_TDNN

    # SpeechBrain leaves place-holders for renamed modules in sys.modules that raise ImportError when
    # anybody walking over all modules asks for an attribute (inspect does, and so does Hypothesis).
    for name, module in list(sys.modules.items()):
        if name.startswith("speechbrain.") and type(module).__name__ == "DeprecatedModuleRedirect":
            del sys.modules[name]
    network: type[nn.Module] = ECAPA_TDNN
    return network
