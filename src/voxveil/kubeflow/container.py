"""The container of a stage: one command, whatever the stage."""

from __future__ import annotations

from typing import Any

from voxveil.errors import MissingExtraError
from voxveil.stages.registry import stage_spec

__all__ = ["stage_container"]


def stage_container(command: str) -> Any:
    """Return the ``dsl.ContainerSpec`` of the stage called ``command`` (``train-pitch``).

    The image is a mere name here; a pipeline replaces it by a digest from ``images.lock.json``.
    """
    try:
        from kfp import dsl
    except ImportError:
        raise MissingExtraError("kfp", "pipeline") from None
    spec = stage_spec(command)
    return dsl.ContainerSpec(
        image=f"voxveil-{'gpu' if spec.torch else 'cpu'}",
        command=["voxveil", "stage", spec.command, "--executor-input", "{{$}}"],
    )
