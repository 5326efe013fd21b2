"""The table of steps, in the form of the table of stages; and the parameters they take beside ``params``."""

from __future__ import annotations

from collections.abc import Mapping

from voxveil.errors import InputError
from voxveil.stages.registry import STAGES, Port, StageSpec, stage_spec

__all__ = ["STEPS", "STEP_PARAMETERS", "STEP_VALUES", "is_step", "spec_of"]

STEPS: tuple[StageSpec, ...] = (
    StageSpec(
        "prepare_revision",
        "fetch one version of a dataset by DVC and prepare it; refuse what is not declared public",
        (),
        (Port("public", "Dataset"), Port("private", "Dataset", "private")),
        cacheable=False,
    ),
    StageSpec(
        "gate",
        "hold a newly trained system against the pinned reference and the champion",
        (
            Port("metrics", "Metrics", made_by="evaluate", made_for="key"),
            Port("scores", "Dataset", "private", made_by="score", made_for="key"),
            Port("original", "Metrics", made_by="evaluate", made_for="original"),
        ),
        (Port("decision", "Dataset"),),
        keyed="system",
        cacheable=False,
    ),
    StageSpec(
        "register",
        "register the model in MLflow, and move the alias champion if the gate says so",
        (
            Port("model", "Model", made_by="bundle", made_for="key"),
            Port("decision", "Dataset", made_by="gate", made_for="key"),
        ),
        (Port("registration", "Dataset"),),
        keyed="system",
        cacheable=False,
    ),
    StageSpec(
        "evaluate_scores",
        "judge somebody else's score files: every privacy metric, its interval, and warnings",
        (),
        (Port("result", "Metrics"), Port("flat", "Metrics", copy_of="result/flat.metrics.json")),
        cacheable=False,
    ),
    StageSpec(
        "attack_external",
        "attack somebody else's anonymized speech: train the attackers on it, score its trials",
        (),
        (Port("scores", "Dataset", "private"),),
        torch=True,
        gpu=True,
        cacheable=False,
    ),
    StageSpec(
        "evaluate_attacks",
        "judge the attacks on somebody else's speech: every privacy metric, its interval, and warnings",
        (Port("scores", "Dataset", "private", made_by="attack_external"),),
        (Port("result", "Metrics"), Port("flat", "Metrics", copy_of="result/flat.metrics.json")),
        cacheable=False,
    ),
    StageSpec(
        "close_run",
        "exit handler: close the runs in MLflow, and tell people of a failure",
        (),
        (),
        cacheable=False,
    ),
)
"""Every step."""

STEP_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "prepare_revision": ("repository", "dataset", "revision"),
    "gate": ("registered_model",),
    "register": ("registered_model", "model_store", "repository", "commit"),
    "evaluate_scores": ("location", "attacker", "scenario"),
    "attack_external": ("location", "suffix"),
}
"""Texts a step takes beside ``params`` and ``key``."""

STEP_VALUES: Mapping[str, tuple[str, ...]] = {
    "prepare_revision": ("commit",),
    "gate": ("promoted",),
    "register": ("version",),
    "evaluate_scores": (),
    "attack_external": (),
    "evaluate_attacks": (),
    "close_run": (),
}
"""Texts a step gives beside the digests of its outputs."""


def is_step(name: str) -> bool:
    """Return whether ``name`` is a step and not a stage."""
    return any(name == step.name for step in STEPS)


def spec_of(name: str) -> StageSpec:
    """Return the step or stage called ``name``.

    Raises:
        InputError: There is none.
    """
    for step in STEPS:
        if name in (step.name, step.command):
            return step
    if any(name in (stage.name, stage.command) for stage in STAGES):
        return stage_spec(name)
    raise InputError(f"no step {name!r}; steps: {', '.join(step.command for step in STEPS)}")
