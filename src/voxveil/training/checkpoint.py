"""Checkpoints as safetensors and JSON, written atomically and without pickle.

Random state is not stored because there is none: what a step draws is keyed by (seed, step).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import nn

from voxveil.runtime.atomic import read_json, write_bytes
from voxveil.runtime.errors import InputError

__all__ = [
    "load_checkpoint",
    "load_model",
    "load_weights",
    "model_bytes",
    "read_description",
    "save_checkpoint",
]

_NAME = "checkpoint.safetensors"


def save_checkpoint(
    folder: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer, curve: list[dict[str, float]]
) -> None:
    """Write one file with everything needed to go on after ``step`` finished steps."""
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        for name, value in state.items():
            tensors[f"optimizer/{index}/{name}"] = torch.as_tensor(value)
    plain = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    write_bytes(folder / _NAME, save_tensors(plain, {"step": str(step), "curve": json.dumps(curve)}))


def load_checkpoint(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer
) -> tuple[int, list[dict[str, float]]]:
    """Restore the last checkpoint; return (finished steps, curve), (0, []) where there is none."""
    path = folder / _NAME
    if not path.is_file():
        return 0, []
    data = path.read_bytes()
    try:
        tensors = load_tensors(data)
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    except (SafetensorError, ValueError, KeyError) as error:
        raise InputError(f"{path}: not a readable checkpoint ({error}); remove it to start afresh") from None
    model.load_state_dict({name[6:]: value for name, value in tensors.items() if name.startswith("model/")})
    state: dict[int, dict[str, Any]] = {}
    for name, value in tensors.items():
        if name.startswith("optimizer/"):
            _, index, field = name.split("/", 2)
            state.setdefault(int(index), {})[field] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return int(header["step"]), json.loads(header["curve"])


def model_bytes(model: nn.Module) -> bytes:
    """Return a model's parameters and buffers as safetensors."""
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in model.state_dict().items()}
    return save_tensors(tensors)


def load_model(model: nn.Module, data: bytes, name: str) -> None:
    """Fill ``model`` from safetensors; a file of another shape is an error that names it."""
    try:
        model.load_state_dict(load_tensors(data))
    except (SafetensorError, RuntimeError) as error:
        raise InputError(f"{name}: does not fit this model ({' '.join(str(error).split())[:200]})") from None


def load_weights(model: nn.Module, path: Path) -> None:
    """Fill ``model`` from a safetensors file.

    Raises:
        InputError: The file is missing or of another shape.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    load_model(model, path.read_bytes(), str(path))


def read_description(path: Path, what: str, *kinds: str) -> dict[str, Any]:
    """Read the ``model.json`` of a model.

    Args:
        path: The file.
        what: The model in words, for the error.
        *kinds: What its ``kind`` may be.

    Raises:
        InputError: The file is missing, or describes another kind of model, or one of another format.
    """
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != 1 or content.get("kind") not in kinds:
        raise InputError(f"{path}: not a {what} of format 1")
    return content
