"""Steps of the pipeline ``probe_features``: one draw of a variant's noise measured, and all probes collected.

They do what ``voxveil probe pitch|content|gather`` do. The output of ``probe_gather`` is a folder that
``voxveil reproduce --features`` takes as it is.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from voxveil.kubeflow.steps.call import Step, StepCall, StepResult
from voxveil.research.probe.experiment import arrange
from voxveil.research.probe.pipeline import FEATURES, PROBED, make_probe
from voxveil.runtime.atomic import whole_directory, write_bytes
from voxveil.runtime.done import finish
from voxveil.runtime.errors import InputError
from voxveil.stages.registry import Port, StageSpec, stage_spec

__all__ = ["PROBE_CONTENT", "PROBE_GATHER", "PROBE_PITCH"]


#: What the probe of each kind of feature measures.
_MEASURED = {"pitch": "correlation", "content": "frames and words right"}


def _spec(kind: str) -> StageSpec:
    """Return the step that measures one draw of a variant; it needs what training the variant needs."""
    trained = stage_spec(PROBED[kind])
    return replace(
        trained,
        name=f"probe_{kind}",
        help=f"measure one draw of a {kind} variant's noise on public speech",
        inputs=(*trained.inputs, Port("model", "Model", made_by=trained.name, made_for="key")),
        outputs=(
            Port(
                "probe",
                "Dataset",
                located=True,
                holds=f"probe.json: {_MEASURED[kind]}, who is named, ε and what can pass",
            ),
        ),
        sections=(),
        packages=(),
        cacheable=False,
    )


def _probe(call: StepCall) -> StepResult:
    """Measure the draw that the step was given.

    Raises:
        InputError: The draw is no whole number of at least 1, or the model is of another variant.
    """
    from voxveil.training.devices import require_gpu

    text = call.text("draw")
    if not text.isdecimal():
        raise InputError(f"step {call.step}: parameter draw must be a whole number, got {text!r}")
    require_gpu()
    kind, inputs = call.step.removeprefix("probe_"), call.inputs
    done = make_probe(
        kind, inputs["public"], inputs["model"], call.outputs["probe"], call.params, call.key, int(text)
    )
    return StepResult({"probe": done}, {})


def _gather(call: StepCall) -> StepResult:
    """Put the probes of an experiment together in the layout of ``voxveil probe run``; print the table."""
    out = call.outputs["experiment"]
    probes = [path for kind in PROBED for path in sorted(Path(call.inputs[kind]).iterdir())]
    with whole_directory(out) as folder:
        lines = arrange(probes, folder, call.params)
        done = finish(folder, call.step, None, "experiment")
    write_bytes(call.outputs["page"], (out / FEATURES / "index.html").read_bytes())
    print("\n".join(lines))
    return StepResult({"experiment": done}, {})


_DRAW = {"draw": "number of the draw of its noise, from 1 on"}
_READS = "the step reads `base`, `asi`, `probe`, `{}_variants`"
PROBE_PITCH = Step(_spec("pitch"), _probe, _DRAW, reads=_READS.format("pitch"))
PROBE_CONTENT = Step(_spec("content"), _probe, _DRAW, reads=_READS.format("content"))
PROBE_GATHER = Step(
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
    _gather,
    reads="the step reads the names of the variants and their mechanisms",
)
