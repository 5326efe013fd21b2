"""Fingerprints of the trainings behind a set of outputs, which name their runs in MLflow.

Used for links between runs only; no stage's output depends on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from voxveil.config import Params
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import DONE
from voxveil.stages.registry import STAGES, Port, StageSpec
from voxveil.stages.run import fingerprint, made_for

__all__ = ["training_fingerprints", "training_inputs", "training_name"]


def training_inputs(params: Params) -> list[str]:
    """Return the outputs, in DVC's layout, whose digests decide the fingerprints of all trainings."""
    return sorted({path for _, _, inputs in _trainings(params) for path in inputs.values()})


def training_fingerprints(params: Params, root: Path) -> dict[str, str]:
    """Return the fingerprint of every training whose inputs lie under ``root`` in DVC's layout.

    They name training runs in MLflow and nothing else: a training without them is merely not linked.

    Args:
        params: The parameters of the run.
        root: Folder that holds ``outputs``; only the completion records are read.
    """
    found = {}
    for spec, key, inputs in _trainings(params):
        digests = {name: _digest(root / path / DONE) for name, path in inputs.items()}
        if all(digests.values()):
            found[training_name(spec, key)] = fingerprint(spec, key, params, digests)
    return found


def training_name(spec: StageSpec, key: str) -> str:
    """Return what a training is called among those of a run: ``train_pitch.dp``."""
    return f"{spec.name}.{key}" if key else spec.name


def _trainings(params: Params) -> Iterator[tuple[StageSpec, str, dict[str, str]]]:
    """Yield every training: its stage, its key, and the path of each input in DVC's layout."""
    for spec in STAGES:
        if spec.trains:
            for key in spec.keys(params) or [""]:
                yield spec, key, {port.name: _path(port, params, key) for port in spec.inputs}


def _path(port: Port, params: Params, key: str) -> str:
    parts = ("outputs", port.made_by, made_for(port, params, key), port.output)
    return "/".join(part for part in parts if part)


def _digest(path: Path) -> str:
    return str(read_json(path)["digest"]) if path.is_file() else ""
