"""Loading of this package's networks from ``model.json`` and ``model.safetensors``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from torch import nn

from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError
from voxveil.training.checkpoint import load_model
from voxveil.training.loop import device

__all__ = ["load_network"]

_Network = TypeVar("_Network", bound=nn.Module)


def load_network(folder: Path, kind: str, build: Callable[[dict[str, int]], _Network]) -> _Network:
    """Rebuild a network in evaluation mode, on the GPU if there is one.

    Args:
        folder: What :func:`voxveil.training.outputs.write_trained` wrote.
        kind: The architecture that ``model.json`` must name.
        build: Makes the network from its ``sizes``.

    Raises:
        InputError: Naming the file that is missing, of another kind or format, or does not fit.
    """
    path = Path(folder) / "model.json"
    content = read_json(path)
    if not isinstance(content, dict) or (content.get("format"), content.get("kind")) != (1, kind):
        raise InputError(f"{path}: not a {kind} model of format 1")
    try:
        network = build({str(name): int(value) for name, value in content["sizes"].items()})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{path}: its sizes do not describe a {kind} model ({error})") from None
    weights = Path(folder) / "model.safetensors"
    if not weights.is_file():
        raise InputError(f"{weights}: no such file")
    load_model(network, weights.read_bytes(), str(weights))
    return network.to(device()).eval()
