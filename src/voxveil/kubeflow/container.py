"""The container specification of a stage or step."""

from __future__ import annotations

from typing import Any

from voxveil.kubeflow.steps.registry import is_step, spec_of
from voxveil.runtime.errors import import_extra

__all__ = ["stage_container"]


def stage_container(command: str) -> Any:
    """Return the ``dsl.ContainerSpec`` of the stage or step called ``command`` (``train-pitch``).

    The image is a mere name here; a pipeline replaces it by a digest from ``images.lock.json``.
    """
    dsl = import_extra("kfp.dsl", "pipeline")
    spec = spec_of(command)
    words = ["voxveil", "pipeline", "step"] if is_step(spec.name) else ["voxveil", "stage"]
    return dsl.ContainerSpec(
        image=f"voxveil-{'gpu' if spec.torch else 'cpu'}",
        command=[*words, spec.command, "--executor-input", "{{$}}"],
    )
