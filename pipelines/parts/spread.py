"""A stage in one pod per system, or its work shared between several and put together by one more."""

from collections.abc import Callable
from typing import Any

from components.anonymize.component import anonymize
from components.anonymize_gather.component import anonymize_gather
from components.anonymize_share.component import anonymize_share
from components.score.component import score
from components.score_gather.component import score_gather
from components.score_share.component import score_share
from kfp import dsl

from voxveil.config import Params

#: Component of a stage, of one share of its work, and of putting the shares together.
COMPONENTS = {
    "anonymize": (anonymize, anonymize_share, anonymize_gather),
    "score": (score, score_share, score_gather),
}


def spread(
    stage: str,
    system: str,
    arguments: dict[str, Any],
    params: Any,
    values: Params,
    configure: Callable[..., Any],
) -> Any:
    """Return the task that has the outputs of a stage for one system.

    Args:
        stage: Stem of the stage.
        system: The system.
        arguments: Its inputs, with their digests.
        params: The pipeline's parameter.
        values: Parameters; ``cluster`` says how many shares there are, which the compiled file fixes.
        configure: Gives a task its image, resources and node.
    """
    whole, share, gather = COMPONENTS[stage]
    identity = {"params": params, "key": system}
    count = shares(stage, system, values)
    if count == 1:
        return configure(whole(**identity, **arguments), stage, system)
    numbers = [f"{number}-of-{count}" for number in range(1, count + 1)]
    limit = values.cluster.parallel or None
    with dsl.ParallelFor(numbers, name=f"{stage} {system}", parallelism=limit) as number:
        part = configure(share(**identity, share=number, **arguments), f"{stage}_share", system)
    # Texts, not artifacts: Kubeflow hands no artifact of a loop out of the exit handler's group.
    collected = dsl.Collected(part.outputs["made_location"])
    return configure(gather(**identity, shares=collected), f"{stage}_gather", system)


def shares(stage: str, system: str, values: Params) -> int:
    """Return how many shares a system's work has; original speech is attacked in one scenario only."""
    if stage == "score" and values.systems[system].state == "original":
        return 1
    return values.cluster.shards(stage)
