"""What a stage function is given: its parameters, inputs, outputs and key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from voxveil.config import Params, SystemParams
from voxveil.tracking.stream import Sink, silent

__all__ = ["StageContext"]


@dataclass(frozen=True)
class StageContext:
    """One run of one stage.

    Attributes:
        stage: Stem of the stage.
        key: Variant or system, empty for stages without one.
        params: All checked parameters; a stage reads its own sections only.
        inputs: Finished input folders by port name, verified.
        outputs: Empty folders by port name, moved into place when the stage returns.
        checkpoints: Folder for this fingerprint's checkpoints, outside declared outputs.
        fingerprint: Hash of the stage's parameters, inputs and code.
        sink: Of a training stage: told every point of its curve, which goes to MLflow.
        training: Fingerprint of each training behind the inputs, where the caller was told them.
    """

    stage: str
    key: str
    params: Params
    inputs: Mapping[str, Path]
    outputs: Mapping[str, Path]
    checkpoints: Path
    fingerprint: str
    sink: Sink = silent
    training: Mapping[str, str] = field(default_factory=dict)

    @property
    def system(self) -> SystemParams:
        """The system this run is for."""
        return self.params.systems[self.key]
