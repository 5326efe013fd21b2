"""The registry of steps, in the form of the stage registry, with their additional parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from voxveil.research.probe.pipeline import FEATURES, PROBED
from voxveil.runtime.errors import InputError
from voxveil.stages.registry import STAGES, Port, StageSpec, stage_spec

__all__ = [
    "FINAL_STATUS",
    "STEPS",
    "STEP_PARAMETERS",
    "STEP_READS",
    "STEP_VALUES",
    "gather_of",
    "is_step",
    "share_of",
    "spec_of",
    "step_module",
]

#: The parameter in which Kubeflow tells an exit task what became of the others.
FINAL_STATUS = "status"

_SHARE, _GATHER = "_share", "_gather"
#: What the probe of each kind of feature measures.
_MEASURED = {"pitch": "correlation", "content": "frames and words right"}
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


def _probe(kind: str) -> StageSpec:
    """Return the step that measures one draw of a variant; it needs what training the variant needs."""
    trained = stage_spec(PROBED[kind])
    model = Port("model", "Model", made_by=trained.name, made_for="key")
    what = f"measure one draw of a {kind} variant's noise on public speech"
    outputs = (
        Port(
            "probe",
            "Dataset",
            located=True,
            holds=f"probe.json: {_MEASURED[kind]}, who is named, ε and what can pass",
        ),
    )
    return replace(
        trained,
        name=f"probe_{kind}",
        help=what,
        inputs=(*trained.inputs, model),
        outputs=outputs,
        sections=(),
        packages=(),
        cacheable=False,
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
    *(_probe(kind) for kind in PROBED),
    StageSpec(
        "probe_gather",
        "put the probes of every variant and draw together: table, figures and page, or refuse",
        tuple(Port(kind, "Dataset", made_by=f"probe_{kind}", shares=True) for kind in PROBED),
        (
            Port(
                "experiment",
                "Dataset",
                holds=f"`outputs/probe/KIND/VARIANT/draw-N/` and `{FEATURES}/` as of `voxveil probe run`",
            ),
            Port(
                "page",
                "HTML",
                copy_of=f"experiment/{FEATURES}/index.html",
                holds=f"the page of `{FEATURES}`, shown by Kubeflow",
            ),
        ),
        cacheable=False,
    ),
)
"""Every step."""

_SHARE_NUMBER = {"share": "which share, e.g. `2-of-3`"}

STEP_PARAMETERS: Mapping[str, Mapping[str, str]] = {
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
    **{f"probe_{kind}": {"draw": "number of the draw of its noise, from 1 on"} for kind in PROBED},
    "close_run": {FINAL_STATUS: "final status of the pipeline run; Kubeflow fills it"},
}
"""What a step takes beside ``params`` and ``key``, with what each is: texts, but for the final status."""

STEP_VALUES: Mapping[str, Mapping[str, str]] = {
    **{step.name: {} for step in STEPS},
    "prepare_revision": {"commit": "the commit that the revision stood for"},
    "gate": {"promoted": "`true` or `false`"},
    "register": {"version": "version in the registry"},
}
"""Texts a step gives beside the digests of its outputs, with what each is."""

STEP_READS: Mapping[str, str] = {
    **{f"{name}{_SHARE}": f"the step reads `base`, `{name}`, `cluster`" for name in ("anonymize", "score")},
    **{f"{name}{_GATHER}": "the step reads `cluster`" for name in ("anonymize", "score")},
    "prepare_revision": "`prepare.source` is replaced by what was fetched",
    "gate": "the step reads `gate`",
    "evaluate_scores": "the step reads `evaluate.replicates` and `base.seed`",
    "evaluate_attacks": "the step reads `evaluate.replicates` and `base.seed`",
    "attack_external": "the step reads `train_attacker`, `score.rank_inputs`, `base.seed`, `base.threads`",
    **{f"probe_{kind}": f"the step reads `base`, `asi`, `probe`, `{kind}_variants`" for kind in PROBED},
    "probe_gather": "the step reads the names of the variants and their mechanisms",
}
"""What a step does with ``params``; a stage reads the sections that it declares."""


def is_step(name: str) -> bool:
    """Return whether ``name`` is a step and not a stage."""
    return any(name == step.name for step in STEPS)


def step_module(name: str) -> str:
    """Return the full name of the module whose ``run`` does the work of a step."""
    return f"{__package__}.{'sharing' if share_of(name) or gather_of(name) else name}"


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
    for step in STEPS:
        if name in (step.name, step.command):
            return step
    if any(name in (stage.name, stage.command) for stage in STAGES):
        return stage_spec(name)
    raise InputError(f"no step {name!r}; steps: {', '.join(step.command for step in STEPS)}")
