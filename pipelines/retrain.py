"""Scheduled retraining: fetch a version of the data, train, attack, gate, register, move the alias.

It trains one system beside the original, ``gate.system`` of the parameters, and takes public data
only. The gate always says why; a candidate that is kept is no failure of the run.
"""

import dataclasses
from typing import Any

from components.close_run.component import close_run
from components.gate.component import gate
from components.prepare_revision.component import prepare_revision
from components.register.component import register
from kfp import dsl
from pipelines.parts.chain import chain, take

from voxveil.config import Params, original_system
from voxveil.config.compose import to_mapping
from voxveil.kubeflow.pods import Configure
from voxveil.runtime.errors import ParamsError, PrivacyError

NAME = "voxveil-retrain"
DESCRIPTION = "Train on a version of a public dataset; a better system becomes the champion."


def build(values: Params, configure: Configure) -> Any:
    """Return the pipeline.

    Args:
        values: Parameters; ``gate.system`` names the system, its values are defaults of ``params``.
        configure: Gives a task its image, resources and node.

    Raises:
        PrivacyError: ``prepare.public`` is false.
        ParamsError: There is no such system.
    """
    if not values.prepare.public:
        raise PrivacyError(
            "prepare.public: must be true; data not declared public are not trained on by a schedule"
        )
    values = only(values, values.gate.system)
    original = original_system(values)

    @dsl.pipeline(name=NAME, description=DESCRIPTION)
    def retrain(
        repository: str,
        dataset: str,
        revision: str,
        registered_model: str,
        model_store: str,
        params: dict = to_mapping(values),  # noqa: B008
    ):
        with dsl.ExitHandler(configure(close_run(params=params), "close_run")):
            corpus = configure(
                prepare_revision(params=params, repository=repository, dataset=dataset, revision=revision),
                "prepare_revision",
            )
            trained = chain(params, values, configure, corpus)
            name = values.gate.system
            candidate = trained.systems[name]
            identity = {"params": params, "key": name, "registered_model": registered_model}
            decision = configure(
                gate(
                    **identity,
                    **take("metrics", candidate.measured),
                    **take("scores", candidate.scores),
                    **take("original", trained.systems[original].measured, "metrics"),
                ),
                "gate",
                name,
            )
            registered = configure(
                register(
                    **identity,
                    model_store=model_store,
                    repository=repository,
                    commit=corpus.outputs["commit"],
                    **take("model", candidate.model),
                    **take("decision", decision),
                ),
                "register",
                name,
            )
            # It tags the run in MLflow that the report makes.
            registered.after(trained.report)

    return retrain


def only(values: Params, name: str) -> Params:
    """Return the parameters with this system, the original, and the variants these two use."""
    original = original_system(values)
    if name not in values.systems or name == original:
        known = ", ".join(sorted(set(values.systems) - {original})) or "none"
        raise ParamsError(
            f"gate.system: {name!r} is no anonymized system of these params; they have: {known}"
        )
    systems = {system: values.systems[system] for system in sorted({name, original})}
    pitch = {parts.pitch for parts in systems.values()}
    content = {parts.content for parts in systems.values()} | {values.transcribe.variant}
    variants = {
        table: {variant: getattr(values, table)[variant] for variant in sorted(used)}
        for table, used in (("pitch_variants", pitch), ("content_variants", content))
    }
    return dataclasses.replace(values, systems=systems, **variants)
