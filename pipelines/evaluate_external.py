"""Judge somebody else's anonymization by the scores of an attack on it."""

from typing import Any

from components.close_run.component import close_run
from components.evaluate_scores.component import evaluate_scores
from kfp import dsl

from voxveil.config import Params
from voxveil.config.compose import to_mapping
from voxveil.kubeflow.pods import Configure

NAME = "voxveil-evaluate-external"
DESCRIPTION = "Every privacy metric of somebody else's score files, with intervals and warnings."


def build(values: Params, configure: Configure) -> Any:
    """Return the pipeline.

    Args:
        values: Parameters, defaults of ``params``.
        configure: Gives a task its image, resources and node.
    """

    @dsl.pipeline(name=NAME, description=DESCRIPTION)
    def evaluate_external(
        location: str,
        attacker: str = "external",
        scenario: str = "unspecified",
        params: dict = to_mapping(values),  # noqa: B008
    ):
        with dsl.ExitHandler(configure(close_run(params=params), "close_run")):
            configure(
                evaluate_scores(params=params, location=location, attacker=attacker, scenario=scenario),
                "evaluate_scores",
            )

    return evaluate_external
