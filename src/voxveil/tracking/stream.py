"""Non-blocking streaming of a training curve to its own MLflow run.

All of MLflow (its import, the set-up of a database, each request) happens in a process of its own,
:mod:`voxveil.tracking.sender`, which is told of the training and of every point by lines of JSON. It
outlives a stage that is killed and closes its run. The curve that counts is the stage's ``curve.csv``.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Protocol

from voxveil.config import Params
from voxveil.config.compose import to_mapping
from voxveil.runtime.atomic import read_json
from voxveil.tracking.mlflow_names import finite, flat_params
from voxveil.tracking.store import tracking_enabled, warn

__all__ = ["Sink", "Training", "silent", "training_sink"]

#: Told each point of a curve: (optimizer step, values by name).
Sink = Callable[[int, dict[str, float]], None]

#: How long a finished stage waits for its last points to arrive, in seconds.
_PATIENCE = 300.0

#: Tables of the parameters that have the keys of a training; all others have a system's.
_TABLES = {"train_pitch": "pitch_variants", "train_content": "content_variants"}


class Training(Protocol):
    """The facts of a training that are logged, taken from a stage's context."""

    @property
    def stage(self) -> str:
        """Stem of the stage."""

    @property
    def key(self) -> str:
        """Variant or system, empty for stages without one."""

    @property
    def params(self) -> Params:
        """All parameters."""

    @property
    def inputs(self) -> Mapping[str, Path]:
        """Folders it reads; one with ``corpus.json`` says which speech it learns from."""

    @property
    def fingerprint(self) -> str:
        """Hash of the stage's parameters, inputs and code."""


@contextmanager
def training_sink(context: Training) -> Iterator[Sink]:
    """Yield a sink that streams a stage's curve to MLflow.

    The run is found again by the tag ``voxveil.fingerprint``: a killed stage that resumes
    continues its run, and points already there are not sent twice. A stage that trains nothing
    (the identity) has no run.

    Args:
        context: The running stage; its name, key, fingerprint and parameters describe the run.
    """
    if not tracking_enabled():
        yield silent
        return
    sender = _Sender(context)
    status = "FAILED"
    try:
        yield sender.put
        status = "FINISHED"
    except KeyboardInterrupt:
        status = "KILLED"
        raise
    finally:
        sender.finish(status)


def silent(step: int, values: dict[str, float]) -> None:
    """Take a point and do nothing: tracking is off."""


class _Sender:
    """The process that owns all contact with MLflow for one training."""

    def __init__(self, context: Training) -> None:
        self._points = 0
        self._label = f"{context.stage}[{context.key}]" if context.key else context.stage
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "voxveil.tracking.sender"], stdin=subprocess.PIPE
        )
        self._tell(
            {
                "label": self._label,
                "stage": context.stage,
                "key": context.key,
                "fingerprint": context.fingerprint,
                "data": _data(context),
                "params": _params(context),
            }
        )

    def put(self, step: int, values: dict[str, float]) -> None:
        """Queue a point for sending and return at once."""
        self._points += 1
        self._tell({"step": int(step), "time": int(time.time() * 1000), "values": dict(finite(values))})

    def finish(self, status: str) -> None:
        """Send the end of the run and wait a bounded time for its arrival."""
        self._tell({"status": status})
        with suppress(OSError):
            self._pipe.close()
        if not self._points:
            self._process.kill()
            self._process.wait()
            return
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            warn(f"{self._label}: MLflow did not take the curve within {_PATIENCE:g} s; it is in curve.csv")
            return
        if self._process.returncode:
            warn(f"{self._label}: the process that sends curves to MLflow failed; they are in curve.csv")

    @property
    def _pipe(self) -> IO[bytes]:
        if self._process.stdin is None:
            raise RuntimeError("the sender was started without a pipe")
        return self._process.stdin

    def _tell(self, content: dict[str, object]) -> None:
        # A sender that has ended has said why itself.
        with suppress(BrokenPipeError):
            self._pipe.write(json.dumps(content).encode() + b"\n")
            self._pipe.flush()


def _data(context: Training) -> dict[str, str]:
    """Return which speech a training learns from: with that it is found again when a speaker withdraws."""
    for folder in context.inputs.values():
        path = folder / "corpus.json"
        if path.is_file():
            corpus = read_json(path)
            version = corpus.get("dataset") or {}
            return {
                "data_revision": str(corpus.get("revision", "")),
                "dataset": str(version.get("manifest_sha256", "")),
            }
    return {}


def _params(context: Training) -> dict[str, str]:
    """Return what decides this training, as MLflow shows it; at most the 100 a batch may hold."""
    everything = to_mapping(context.params)
    content = {"base": everything["base"], context.stage: everything[context.stage]}
    table = _TABLES.get(context.stage, "systems")
    if context.key in everything[table]:
        content[table] = {context.key: everything[table][context.key]}
    return dict(sorted(flat_params(content).items())[:100])
