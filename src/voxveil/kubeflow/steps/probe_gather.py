"""Step ``probe_gather``: collects the probes of an experiment in the layout of ``voxveil probe run``.

Its output is a folder that ``voxveil reproduce --features`` takes as it is.
"""

from __future__ import annotations

from pathlib import Path

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.research.probe.experiment import arrange
from voxveil.research.probe.pipeline import FEATURES, PROBED
from voxveil.runtime.atomic import whole_directory, write_bytes
from voxveil.runtime.done import finish

__all__ = ["run"]


def run(call: StepCall) -> StepResult:
    """Put them together, and print the table."""
    out = call.outputs["experiment"]
    probes = [path for kind in PROBED for path in sorted(Path(call.inputs[kind]).iterdir())]
    with whole_directory(out) as folder:
        lines = arrange(probes, folder, call.params)
        done = finish(folder, call.step, None, "experiment")
    write_bytes(call.outputs["page"], (out / FEATURES / "index.html").read_bytes())
    print("\n".join(lines))
    return StepResult({"experiment": done}, {})
