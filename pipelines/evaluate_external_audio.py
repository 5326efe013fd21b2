"""Judge somebody else's anonymization by its speech: attack it on a GPU, then evaluate the attacks.

Where the attack was done elsewhere and its scores are at hand, ``evaluate_external`` takes those.
"""

from typing import Any

from components.attack_external.component import attack_external
from components.close_run.component import close_run
from components.evaluate_attacks.component import evaluate_attacks
from kfp import dsl
from pipelines.parts.chain import take

from voxveil.config import Params
from voxveil.config.compose import to_mapping
from voxveil.kubeflow.pods import Configure

NAME = "voxveil-evaluate-external-audio"
DESCRIPTION = "Attack somebody else's anonymized speech; every privacy metric, with intervals and warnings."


def build(values: Params, configure: Configure) -> Any:
    """Return the pipeline.

    Args:
        values: Parameters, defaults of ``params``; ``train_attacker`` says which attackers.
        configure: Gives a task its image, resources and node.
    """

    @dsl.pipeline(name=NAME, description=DESCRIPTION)
    def evaluate_external_audio(
        location: str,
        suffix: str = "",
        params: dict = to_mapping(values),  # noqa: B008
    ):
        with dsl.ExitHandler(configure(close_run(params=params), "close_run")):
            attacked = configure(
                attack_external(params=params, location=location, suffix=suffix), "attack_external"
            )
            configure(evaluate_attacks(params=params, **take("scores", attacked)), "evaluate_attacks")

    return evaluate_external_audio
