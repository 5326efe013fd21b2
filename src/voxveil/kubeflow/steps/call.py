"""Input of a step call, the result that it writes, and the declaration of a registered step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voxveil.config import Params
from voxveil.kubeflow.fan_in import location
from voxveil.runtime.atomic import whole_directory, write_json
from voxveil.runtime.done import Done, finish
from voxveil.runtime.errors import InputError
from voxveil.stages.registry import StageSpec

__all__ = ["Step", "StepCall", "StepResult"]


@dataclass(frozen=True)
class StepResult:
    """Result of a step.

    Attributes:
        done: Completion record of each output.
        values: Output parameters beside the digests.
    """

    done: Mapping[str, Done]
    values: Mapping[str, str]


@dataclass(frozen=True)
class StepCall:
    """One call of one step.

    Attributes:
        step: Its name.
        key: System, empty for steps without one.
        params: All checked parameters.
        parameters: Every input parameter.
        inputs: Finished input folders by port name, verified.
        uris: Where each input lies in the store.
        digests: Digest of each input.
        outputs: Where each output goes.
    """

    step: str
    key: str
    params: Params
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Path]
    uris: Mapping[str, str]
    digests: Mapping[str, str]
    outputs: Mapping[str, Path]

    def text(self, name: str) -> str:
        """Return a parameter that must be a text and not empty.

        Raises:
            InputError: It is not.
        """
        value = self.parameters.get(name)
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"step {self.step}: parameter {name} must be a text, got {value!r}")
        return value.strip()

    def location(self, port: str) -> str:
        """Return ``SYSTEM URI DIGEST`` of an input."""
        return location(self.key, self.uris[port], self.digests[port])

    def leave(self, port: str, file: str, content: Any, values: Mapping[str, str]) -> StepResult:
        """Write one JSON file as the output ``port``, atomically."""
        with whole_directory(self.outputs[port]) as folder:
            write_json(folder / file, content)
            done = finish(folder, self.step, self.key or None, port)
        return StepResult({port: done}, values)


@dataclass(frozen=True)
class Step:
    """A step that an extension registers as an entry point of the group ``voxveil.steps``.

    Attributes:
        spec: Its name, inputs and outputs, in the form of a stage.
        run: Does the step's work.
        parameters: Texts it takes beside ``params`` and ``key``, with what each is.
        values: Texts it gives beside the digests of its outputs, with what each is.
        reads: What it does with ``params``, for its documentation.
    """

    spec: StageSpec
    run: Callable[[StepCall], StepResult]
    parameters: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    reads: str = ""
