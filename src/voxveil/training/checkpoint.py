"""Checkpoints, weights, descriptions, curves and metrics of trainings, written atomically and without pickle.

Random state is not stored because there is none: what a step draws is keyed by (seed, step).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import nn

from voxveil.runtime.atomic import write_bytes, write_json, write_text
from voxveil.runtime.errors import InputError

__all__ = [
    "curve_text",
    "load_checkpoint",
    "load_model",
    "load_weights",
    "model_bytes",
    "save_checkpoint",
    "write_curve",
    "write_trained",
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


def write_trained(
    folder: Path,
    model: nn.Module,
    description: Mapping[str, Any],
    curve: Sequence[Mapping[str, float]],
    metrics: Mapping[str, float],
) -> None:
    """Write ``model.safetensors``, ``model.json``, ``curve.csv`` and ``metrics.json``.

    Args:
        folder: Output of a training stage.
        model: Its parameters and buffers are stored; one without any gives a valid empty file.
        description: Everything needed to rebuild the model; ``format`` 1 is added.
        curve: Points with ``step`` and values.
        metrics: Flat numbers by name, e.g. ``train_pitch/correlation``, for ``dvc metrics show``.
    """
    write_bytes(folder / "model.safetensors", model_bytes(model))
    write_json(folder / "model.json", {"format": 1, **description})
    write_curve(folder, curve)
    write_json(folder / "metrics.json", dict(metrics))


def write_curve(folder: Path, curve: Sequence[Mapping[str, float]]) -> None:
    """Write ``curve.csv``, the record behind DVC plots and MLflow curves, into ``folder``."""
    write_text(folder / "curve.csv", curve_text(curve))


def curve_text(curve: Sequence[Mapping[str, float]]) -> str:
    """Return a curve as CSV: ``step`` first, then the other columns by name."""
    names = ["step", *sorted({name for point in curve for name in point} - {"step"})]
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for point in curve:
        writer.writerow({name: f"{value:.9g}" for name, value in point.items()})
    return text.getvalue()
