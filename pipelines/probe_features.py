"""The feature-level experiment on Kubeflow: what pitch and content carry by themselves, against ε.

It is what ``voxveil probe run`` does by DVC, by the same functions: every variant is trained once and
probed in every draw of its noise, a task each. Only the training runs stand in MLflow.
"""

from typing import Any

from components.close_run.component import close_run
from components.probe_content.component import probe_content
from components.probe_gather.component import probe_gather
from components.probe_pitch.component import probe_pitch
from components.train_content.component import train_content
from components.train_pitch.component import train_pitch
from kfp import dsl
from pipelines.parts.chain import prepared, take

from voxveil.config import Params
from voxveil.config.compose import to_mapping
from voxveil.kubeflow.pods import Configure
from voxveil.runtime.errors import InputError, MissingExtraError
from voxveil.stages.registry import stage_spec

try:
    from voxveil.research.probe import DRAWS
    from voxveil.research.probe.pipeline import PROBED, draws_of
except ModuleNotFoundError as error:
    raise MissingExtraError(str(error.name), "research") from None

NAME = "voxveil-probe-features"
DESCRIPTION = "Train and probe every pitch and content variant: words, phones and speaker against epsilon."

#: Components that train and probe a variant of each kind.
COMPONENTS = {"pitch": (train_pitch, probe_pitch), "content": (train_content, probe_content)}


def build(values: Params, configure: Configure, draws: int = DRAWS) -> Any:
    """Return the pipeline for the variants of ``values``.

    Args:
        values: Parameters; their variants shape the graph, their values are defaults of ``params``.
        configure: Gives a task its image, resources and node.
        draws: Draws of the noise per variant; a variant without noise has one.

    Raises:
        InputError: ``draws`` is below 1.
    """
    if draws < 1:
        raise InputError(f"--draws must be at least 1, got {draws}")

    @dsl.pipeline(name=NAME, description=DESCRIPTION)
    def probe_features(params: dict = to_mapping(values)):  # noqa: B008
        with dsl.ExitHandler(configure(close_run(params=params), "close_run")):
            public = take("public", prepared(params, values, configure))
            probes: dict[str, list[Any]] = {}
            for kind, (train, probe) in COMPONENTS.items():
                trainer, probes[kind] = PROBED[kind], []
                for variant in sorted(stage_spec(trainer).keys(values)):
                    identity = {"params": params, "key": variant}
                    model = take("model", configure(train(**identity, **public), trainer, variant))
                    for draw in draws_of(values, kind, variant, draws):
                        task = probe(**identity, draw=str(draw), **public, **model)
                        configure(task, f"probe_{kind}", f"{variant} draw-{draw}")
                        probes[kind].append(task.outputs["probe_location"])
            configure(probe_gather(params=params, **probes), "probe_gather")

    return probe_features
