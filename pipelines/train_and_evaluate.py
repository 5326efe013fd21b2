"""The whole chain on Kubeflow: prepare, train, anonymize, attack, measure, report.

Systems and variants are unrolled when the pipeline is compiled, so a name is known to every
task; all values come in one parameter, ``params``. Artifacts travel with their digests: the
task that reads one refuses another content.
"""

from typing import Any

from components.close_run.component import close_run
from kfp import dsl
from pipelines.parts.chain import chain, prepared

from voxveil.config import Params
from voxveil.config.compose import to_mapping
from voxveil.kubeflow.pods import Configure

NAME = "voxveil-train-and-evaluate"
DESCRIPTION = "Anonymize speech with every system, attack it, and measure what identity is left."


def build(values: Params, configure: Configure) -> Any:
    """Return the pipeline for the systems and variants of ``values``.

    Args:
        values: Parameters; their names shape the graph, their values are defaults of ``params``.
        configure: Gives a task its image, resources and node.
    """

    @dsl.pipeline(name=NAME, description=DESCRIPTION)
    def train_and_evaluate(params: dict = to_mapping(values)):  # noqa: B008
        with dsl.ExitHandler(configure(close_run(params=params), "close_run")):
            chain(params, values, configure, prepared(params, values, configure))

    return train_and_evaluate
