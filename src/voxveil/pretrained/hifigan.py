"""Generators of HiFi-GAN in the format of its authors, to initialize the vocoder ``nsf_gan`` with.

Kong, Kim and Bae, "HiFi-GAN", NeurIPS 2020. A model is ``config.json`` and a checkpoint ``{"generator":
weights}``. Weights keep their names; a normalized weight is its two halves ``weight_g`` and ``weight_v``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as save_tensors

from voxveil.audio.frames import HOP, MEL_BANDS, SAMPLE_RATE
from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.importing import read_tensors
from voxveil.pretrained.speaker import WEIGHTS, require_rate
from voxveil.runtime.atomic import read_json, write_bytes
from voxveil.runtime.errors import InputError

__all__ = ["Generator", "convert", "load"]

#: What the generator of this project is, beside its width.
_FIXED = {
    "sampling_rate": SAMPLE_RATE,
    "hop_size": HOP,
    "num_mels": MEL_BANDS,
    "resblock": "1",
    "upsample_rates": [5, 4, 4, 2],
    "upsample_kernel_sizes": [11, 8, 8, 4],
    "resblock_kernel_sizes": [3, 7, 11],
    "resblock_dilation_sizes": [[1, 3, 5]] * 3,
}


@dataclass(frozen=True)
class Generator:
    """Weights of a generator.

    Attributes:
        model: Where they came from.
        width: Channels before the first upsampling.
        tensors: Weights by their names in the checkpoint.
    """

    model: PretrainedModel
    width: int
    tensors: Mapping[str, torch.Tensor]


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Write the weights as safetensors and return the settings.

    Raises:
        InputError: The generator is for another rate or mel spectrum, or upsamples in other steps.
    """
    checkpoints = [path for file, path in files.items() if file != "config.json"]
    if len(checkpoints) != 1 or "config.json" not in files:
        raise InputError(f"{name} needs config.json and one checkpoint; found: {', '.join(sorted(files))}")
    config = read_json(files["config.json"])
    if not isinstance(config, dict):
        raise InputError(f"{files['config.json']}: must be a JSON object")
    for field, wanted in _FIXED.items():
        got = config.get(field)
        if (str(got) if field == "resblock" else got) != wanted:
            raise InputError(f"{files['config.json']}: {field} is {got}, must be {wanted}")
    path = checkpoints[0]
    tensors = _halves(read_tensors(path))
    first = tensors.get("conv_pre.weight_v")
    width = config.get("upsample_initial_channel")
    if first is None or tuple(first.shape) != (width, MEL_BANDS, 7):
        raise InputError(
            f"{path}: not a generator of HiFi-GAN of width {width} (conv_pre is absent or differs)"
        )
    plain = {name: value.contiguous().clone() for name, value in tensors.items()}
    write_bytes(folder / WEIGHTS, save_tensors(plain))
    return {"width": width, "sample_rate": int(config["sampling_rate"])}


def load(model: PretrainedModel) -> Generator:
    """Return the weights."""
    require_rate(model)
    return Generator(model, int(model.settings["width"]), read_tensors(model.folder / WEIGHTS))


def _halves(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the weights with each plain one as norm and direction: g = |v|."""
    found = {}
    for name, value in tensors.items():
        if name.endswith(".weight"):
            found[f"{name}_g"] = value.flatten(1).norm(dim=1).reshape(-1, *[1] * (value.ndim - 1))
            found[f"{name}_v"] = value
        else:
            found[name] = value
    return found
