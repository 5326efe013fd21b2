"""Code shared by the steps ``STAGE_share`` and ``STAGE_gather``, which split a stage over pods.

How many shares there are stands in the compiled file and in the parameters; a run whose parameters want
another number is stopped before anything is done.
"""

from __future__ import annotations

from pathlib import Path

from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.kubeflow.steps.registry import gather_of, share_of
from voxveil.runtime.errors import ParamsError
from voxveil.stages.context import Share
from voxveil.stages.gathering import gather_stage
from voxveil.stages.run import run_share

__all__ = ["run"]


def run(call: StepCall) -> StepResult:
    """Do the work of the step: one share of a stage, or putting its shares together."""
    return _share(call) if share_of(call.step) else _gather(call)


def _share(call: StepCall) -> StepResult:
    """Do one share of the work of the stage in the step's name.

    Raises:
        ParamsError: The pipeline was compiled for another number of shares.
    """
    stage = share_of(call.step)
    which, wanted = Share.parse(call.text("share")), call.params.cluster.shards(stage)
    if which.count != wanted:
        raise ParamsError(
            f"cluster.{stage}_shards: params want {wanted}, the pipeline was compiled with"
            f" {which.count}; compile it again with these params"
        )
    output = call.outputs["made"]
    done = run_share(stage, call.params, call.inputs, output, which, key=call.key, digests=call.digests)
    return StepResult({"made": done}, {})


def _gather(call: StepCall) -> StepResult:
    """Put the shares of the stage in the step's name together."""
    stage = gather_of(call.step)
    count = call.params.cluster.shards(stage)
    folders = sorted(Path(call.inputs["shares"]).iterdir(), key=lambda folder: int(folder.name))
    return StepResult(gather_stage(stage, call.key, folders, call.outputs, count), {})
