"""Base classes of this package's networks: how they are described, loaded, and given their constants."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from voxveil.audio.frames import MEL_BANDS
from voxveil.runtime.atomic import read_description
from voxveil.runtime.errors import InputError
from voxveil.training.checkpoint import load_weights
from voxveil.training.loop import device

__all__ = ["MelNetwork", "SizedNetwork"]


class SizedNetwork(nn.Module):
    """A network that is rebuilt from its kind and its sizes, whole numbers by name.

    Args:
        size: An instance of :attr:`size_type`.

    Attributes:
        kind: Name of the architecture in ``model.json``.
        size_type: The dataclass of the sizes.
    """

    kind: ClassVar[str]
    size_type: ClassVar[type]

    def __init__(self, size: Any) -> None:
        super().__init__()
        self.size = size

    def describe(self) -> dict[str, Any]:
        """Return the network's description for ``model.json``."""
        return {"kind": self.kind, "sizes": asdict(self.size)}

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Rebuild a trained network in evaluation mode, on the GPU if there is one.

        Args:
            folder: What :func:`voxveil.training.checkpoint.write_trained` wrote.

        Raises:
            InputError: Naming the file that is missing, of another kind or format, or does not fit.
        """
        path = Path(folder) / "model.json"
        content = read_description(path, f"{cls.kind} model", cls.kind)
        try:
            sizes = {str(name): int(value) for name, value in content["sizes"].items()}
            network = cls(cls.size_type(**sizes))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"{path}: its sizes do not describe a {cls.kind} model ({error})") from None
        load_weights(network, Path(folder) / "model.safetensors")
        return network.to(device()).eval()


class MelNetwork(SizedNetwork):
    """A network that works with log-mel normalized by constants, which are stored with its weights."""

    mel_mean: torch.Tensor
    mel_sd: torch.Tensor

    def __init__(self, size: Any) -> None:
        super().__init__(size)
        self.register_buffer("mel_mean", torch.zeros(MEL_BANDS))
        self.register_buffer("mel_sd", torch.ones(MEL_BANDS))

    def normalize_by(self, mean: NDArray[np.float32], sd: NDArray[np.float32]) -> None:
        """Set the constants (80,) that normalize the log-mel; of public speech."""
        self.mel_mean.copy_(torch.from_numpy(mean))
        self.mel_sd.copy_(torch.from_numpy(sd))

    def conditions(self, log_mel: torch.Tensor, f0: torch.Tensor, voicing: torch.Tensor) -> torch.Tensor:
        """Return what a vocoder's network sees: normalized log-mel, ln(F0 / 150 Hz) and voicing.

        Args:
            log_mel: (batch, K, 80), natural log.
            f0: (batch, K) in Hz, positive.
            voicing: (batch, K) in [0, 1].

        Returns:
            (batch, 82, K).
        """
        normal = (log_mel - self.mel_mean) / self.mel_sd
        heights = torch.stack([torch.log(f0 / 150.0), voicing], dim=2)
        return torch.cat([normal, heights], dim=2).transpose(1, 2)
