"""The registry of steps, in the form of the stage registry, with their additional parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from voxveil.research.probe.pipeline import FEATURES, PROBED
from voxveil.runtime.errors import InputError
from voxveil.stages.registry import STAGES, Port, StageSpec, stage_spec

__all__ = ["STEPS", "STEP_VALUES", "gather_of", "is_step", "share_of", "spec_of", "step_module"]

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


def _probe(kind: str) -> StageSpec:
    """Return the step that measures one draw of a variant; it needs what training the variant needs."""
    trained = stage_spec(PROBED[kind])
    model = Port("model", "Model", made_by=trained.name, made_for="key")
    what = f"measure one draw of a {kind} variant's noise on public speech"
    outputs = (Port("probe", "Dataset"),)
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
    *(_probe(kind) for kind in PROBED),
    StageSpec(
        "probe_gather",
        "put the probes of every variant and draw together: table, figures and page, or refuse",
        tuple(Port(kind, "Dataset", made_by=f"probe_{kind}", shares=True) for kind in PROBED),
        (
            Port("experiment", "Dataset"),
            Port("page", "HTML", copy_of=f"experiment/{FEATURES}/index.html"),
        ),
        cacheable=False,
    ),
)
"""Every step."""

STEP_VALUES: Mapping[str, tuple[str, ...]] = {
    "prepare_revision": ("commit",),
    "gate": ("promoted",),
    "register": ("version",),
}
"""Texts a step gives beside the digests of its outputs."""


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
