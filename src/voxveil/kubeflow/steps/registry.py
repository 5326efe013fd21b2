"""The registry of steps, in the form of the stage registry, with their additional parameters."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from voxveil.runtime.errors import InputError
from voxveil.runtime.extensions import STEPS as REGISTERED
from voxveil.runtime.extensions import load, registered
from voxveil.stages.registry import STAGES, Port, StageSpec, stage_spec

if TYPE_CHECKING:
    from voxveil.kubeflow.steps.call import Step, StepCall, StepResult

__all__ = [
    "STEPS",
    "STEP_PARAMETERS",
    "STEP_VALUES",
    "all_steps",
    "gather_of",
    "is_step",
    "share_of",
    "spec_of",
    "step_parameters",
    "step_runner",
    "step_values",
]

_SHARE, _GATHER = "_share", "_gather"


def _share(stage: StageSpec, what: str) -> StageSpec:
    """Return the step that does one share of a stage's work; it needs what the stage needs."""
    # A share tells of what it was made of, like the most secret of the outputs in it.
    secrecy = max((port.secrecy for port in stage.outputs), key=("public", "released", "private").index)
    outputs = (Port("made", "Dataset", secrecy),)
    return replace(stage, name=f"{stage.name}{_SHARE}", help=what, outputs=outputs, sections=(), packages=())


def _gather(stage: StageSpec, what: str) -> StageSpec:
    """Return the step that puts the shares of a stage's work together, into the outputs of the stage."""
    inputs = (Port("shares", "Dataset", made_by=f"{stage.name}{_SHARE}", made_for="key", shares=True),)
    return StageSpec(
        f"{stage.name}{_GATHER}", what, inputs, stage.outputs, keyed=stage.keyed, cacheable=False
    )


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
    _share(stage_spec("anonymize"), "anonymize one share of the utterances; a gather puts them together"),
    _gather(stage_spec("anonymize"), "put the anonymized shares of one system together, or refuse"),
    _share(stage_spec("score"), "attack in some of the scenarios; a gather puts them together"),
    _gather(stage_spec("score"), "put the attacked scenarios of one system together, or refuse"),
)
"""Every step of the product."""

STEP_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "anonymize_share": ("share",),
    "score_share": ("share",),
    "prepare_revision": ("repository", "dataset", "revision"),
    "gate": ("registered_model",),
    "register": ("registered_model", "model_store", "repository", "commit"),
    "evaluate_scores": ("location", "attacker", "scenario"),
    "attack_external": ("location", "suffix"),
}
"""Texts a step of the product takes beside ``params`` and ``key``."""

STEP_VALUES: Mapping[str, tuple[str, ...]] = {
    "anonymize_share": (),
    "anonymize_gather": (),
    "score_share": (),
    "score_gather": (),
    "prepare_revision": ("commit",),
    "gate": ("promoted",),
    "register": ("version",),
    "evaluate_scores": (),
    "attack_external": (),
    "evaluate_attacks": (),
    "close_run": (),
}
"""Texts a step of the product gives beside the digests of its outputs."""


def is_step(name: str) -> bool:
    """Return whether ``name`` is a step and not a stage."""
    return any(name == step.name for step in STEPS) or name in registered(REGISTERED)


def all_steps() -> tuple[StageSpec, ...]:
    """Return the steps of the product and the registered ones.

    Raises:
        MissingExtraError: The extra of a registered step is not installed.
    """
    return (*STEPS, *(load(entry).spec for entry in registered(REGISTERED).values()))


def step_parameters(name: str) -> tuple[str, ...]:
    """Return the texts that the step takes beside ``params`` and ``key``."""
    return STEP_PARAMETERS.get(name, ()) if _is_ours(name) else tuple(_registered(name).parameters)


def step_values(name: str) -> tuple[str, ...]:
    """Return the texts that the step gives beside the digests of its outputs."""
    return STEP_VALUES.get(name, ()) if _is_ours(name) else tuple(_registered(name).values)


def step_runner(name: str) -> Callable[[StepCall], StepResult]:
    """Return the function that runs the step."""
    if _is_ours(name):
        run: Callable[[StepCall], StepResult] = importlib.import_module(f"voxveil.kubeflow.steps.{name}").run
        return run
    return _registered(name).run


def share_of(name: str) -> str:
    """Return the stage of whose work the step ``name`` does a share; empty where it does none."""
    return _stage_of(name, _SHARE)


def gather_of(name: str) -> str:
    """Return the stage whose shares the step ``name`` puts together; empty where it does none."""
    return _stage_of(name, _GATHER)


def _stage_of(name: str, ending: str) -> str:
    stage = name.removesuffix(ending)
    return stage if stage != name and any(stage == known.name for known in STAGES) else ""


def spec_of(name: str) -> StageSpec:
    """Return the step or stage called ``name``.

    Raises:
        InputError: There is none.
    """
    stem = name.replace("-", "_")
    for step in STEPS:
        if step.name == stem:
            return step
    if any(stem == stage.name for stage in STAGES):
        return stage_spec(stem)
    if stem in registered(REGISTERED):
        return _registered(stem).spec
    known = (*(step.name for step in STEPS), *registered(REGISTERED))
    raise InputError(f"no step {name!r}; steps: {', '.join(step.replace('_', '-') for step in known)}")


def _is_ours(name: str) -> bool:
    return any(name == spec.name for spec in (*STEPS, *STAGES))


def _registered(name: str) -> Step:
    step: Step = load(registered(REGISTERED)[name])
    return step
