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
    "FINAL_STATUS",
    "STEPS",
    "all_steps",
    "declared_in",
    "gather_of",
    "is_step",
    "share_of",
    "spec_of",
    "step_parameters",
    "step_reads",
    "step_runner",
    "step_values",
]

#: The parameter in which Kubeflow tells an exit task what became of the others.
FINAL_STATUS = "status"

_SHARE, _GATHER = "_share", "_gather"
_FLAT = "flat numbers under their MLflow names"
_SHOWN = "shown on Kubeflow's page"


def _share(stage: StageSpec, what: str, of: str) -> StageSpec:
    """Return the step that does one share of a stage's work; it needs what the stage needs."""
    # A share tells of what it was made of, like the most secret of the outputs in it.
    secrecy = max((port.secrecy for port in stage.outputs), key=("public", "released", "private").index)
    whole = [f"`{port.name}`" for port in stage.outputs]
    listed = f"{', '.join(whole[:-1])} and {whole[-1]}" if len(whole) > 1 else whole[0]
    holds = f"{listed} of this share's {of}, share.json"
    outputs = (Port("made", "Dataset", secrecy, located=True, holds=holds),)
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
        (
            Port("public", "Dataset", holds="public splits, as of prepare"),
            Port("private", "Dataset", "private", holds="private split and trial lists, as of prepare"),
        ),
        cacheable=False,
        services=("store", "https"),
    ),
    StageSpec(
        "gate",
        "hold a newly trained system against the pinned reference and the champion",
        (
            Port("metrics", "Metrics", made_by="evaluate", made_for="key"),
            Port("scores", "Dataset", "private", made_by="score", made_for="key"),
            Port("original", "Metrics", made_by="evaluate", made_for="original"),
        ),
        (Port("decision", "Dataset", holds="decision.json: promote or keep, every check, the reason"),),
        keyed="system",
        cacheable=False,
        services=("mlflow", "store", "webhook", "https"),
    ),
    StageSpec(
        "register",
        "register the model in MLflow, and move the alias champion if the gate says so",
        (
            Port("model", "Model", made_by="bundle", made_for="key"),
            Port("decision", "Dataset", made_by="gate", made_for="key"),
        ),
        (
            Port(
                "registration",
                "Dataset",
                holds="registration.json: model, version, address, aliases moved, reason",
            ),
        ),
        keyed="system",
        cacheable=False,
        services=("mlflow", "store"),
    ),
    StageSpec(
        "evaluate_scores",
        "judge somebody else's score files: every privacy metric, its interval, and warnings",
        (),
        (
            Port(
                "result", "Metrics", holds="result.json (as of `voxveil evaluate --json`), flat.metrics.json"
            ),
            Port("flat", "Metrics", copy_of="result/flat.metrics.json", holds=f"{_FLAT}, {_SHOWN}"),
        ),
        cacheable=False,
        services=("mlflow", "store"),
    ),
    StageSpec(
        "attack_external",
        "attack somebody else's anonymized speech: train the attackers on it, score its trials",
        (),
        (
            Port(
                "scores",
                "Dataset",
                "private",
                holds="`SET/ATTACKER/SCENARIO/` with scores, trials, ranks and conditions; attack.json",
            ),
        ),
        torch=True,
        gpu=True,
        cacheable=False,
        services=("store",),
    ),
    StageSpec(
        "evaluate_attacks",
        "judge the attacks on somebody else's speech: every privacy metric, its interval, and warnings",
        (Port("scores", "Dataset", "private", made_by="attack_external"),),
        (
            Port(
                "result",
                "Metrics",
                holds="result.json (as of `voxveil attack`), results/SET/ATTACKER-SCENARIO.json,"
                " figures/SET.png, flat.metrics.json",
            ),
            Port(
                "flat",
                "Metrics",
                copy_of="result/flat.metrics.json",
                holds=f"{_FLAT} (before them `SET/` where there are several), {_SHOWN}",
            ),
        ),
        cacheable=False,
        services=("mlflow",),
    ),
    StageSpec(
        "close_run",
        "exit handler: close the runs in MLflow, and tell people of a failure",
        (),
        (),
        cacheable=False,
        services=("mlflow", "webhook", "https"),
    ),
    _share(
        stage_spec("anonymize"),
        "anonymize one share of the utterances; a gather puts them together",
        "utterances",
    ),
    _gather(stage_spec("anonymize"), "put the anonymized shares of one system together, or refuse"),
    _share(stage_spec("score"), "attack in some of the scenarios; a gather puts them together", "scenarios"),
    _gather(stage_spec("score"), "put the attacked scenarios of one system together, or refuse"),
)
"""Every step of the product."""

_SHARE_NUMBER = {"share": "which share, e.g. `2-of-3`"}

_PARAMETERS: Mapping[str, Mapping[str, str]] = {
    "anonymize_share": _SHARE_NUMBER,
    "score_share": _SHARE_NUMBER,
    "prepare_revision": {
        "repository": "address of a Git repository with DVC",
        "dataset": "name of the dataset in it",
        "revision": "branch, tag or commit",
    },
    "gate": {"registered_model": "registered model whose aliases `champion` and `reference` count"},
    "register": {
        "registered_model": "name in the registry",
        "model_store": "`s3://BUCKET/PREFIX` that gets the bytes",
        "repository": "where the data came from",
        "commit": "at which commit",
    },
    "evaluate_scores": {
        "location": "`s3://BUCKET/PREFIX` of the files",
        "attacker": "attacker's name in MLflow",
        "scenario": "scenario's name in MLflow",
    },
    "attack_external": {
        "location": "`s3://BUCKET/PREFIX` of the folder",
        "suffix": "ending of the anonymized data folders (`_mcadams`); empty where there is one system",
    },
    "close_run": {FINAL_STATUS: "final status of the pipeline run; Kubeflow fills it"},
}
"""What a step of the product takes beside ``params`` and ``key``: texts, but for the final status."""

_VALUES: Mapping[str, Mapping[str, str]] = {
    "prepare_revision": {"commit": "the commit that the revision stood for"},
    "gate": {"promoted": "`true` or `false`"},
    "register": {"version": "version in the registry"},
}
"""Texts a step of the product gives beside the digests of its outputs, with what each is."""

_READS: Mapping[str, str] = {
    **{f"{name}{_SHARE}": f"the step reads `base`, `{name}`, `cluster`" for name in ("anonymize", "score")},
    **{f"{name}{_GATHER}": "the step reads `cluster`" for name in ("anonymize", "score")},
    "prepare_revision": "`prepare.source` is replaced by what was fetched",
    "gate": "the step reads `gate`",
    "evaluate_scores": "the step reads `evaluate.replicates` and `base.seed`",
    "evaluate_attacks": "the step reads `evaluate.replicates` and `base.seed`",
    "attack_external": "the step reads `train_attacker`, `score.rank_inputs`, `base.seed`, `base.threads`",
}
"""What a step of the product does with ``params``; a stage reads the sections that it declares."""


def is_step(name: str) -> bool:
    """Return whether ``name`` is a step and not a stage."""
    return any(name == step.name for step in STEPS) or name in registered(REGISTERED)


def all_steps() -> tuple[StageSpec, ...]:
    """Return the steps of the product and the registered ones.

    Raises:
        MissingExtraError: The extra of a registered step is not installed.
    """
    return (*STEPS, *(load(entry).spec for entry in registered(REGISTERED).values()))


def declared_in(name: str) -> str:
    """Return the file that declares the step or stage, relative to the package."""
    if not is_step(name):
        return "stages/registry.py"
    if _is_ours(name):
        return "kubeflow/steps/registry.py"
    return f"{registered(REGISTERED)[name].module.partition('.')[2].replace('.', '/')}.py"


def step_parameters(name: str) -> Mapping[str, str]:
    """Return what the step takes beside ``params`` and ``key``, with what each is; of a stage, nothing."""
    return _PARAMETERS.get(name, {}) if _is_ours(name) else _registered(name).parameters


def step_values(name: str) -> Mapping[str, str]:
    """Return the texts that the step gives beside the digests of its outputs; of a stage, none."""
    return _VALUES.get(name, {}) if _is_ours(name) else _registered(name).values


def step_reads(name: str) -> str:
    """Return what the step does with ``params``."""
    return _READS.get(name, "") if _is_ours(name) else _registered(name).reads


def step_runner(name: str) -> Callable[[StepCall], StepResult]:
    """Return the function that runs the step."""
    if not _is_ours(name):
        return _registered(name).run
    module = "sharing" if share_of(name) or gather_of(name) else name
    run: Callable[[StepCall], StepResult] = importlib.import_module(f"{__package__}.{module}").run
    return run


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
