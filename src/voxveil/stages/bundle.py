"""Stage bundle: one system packed into a folder that anonymizes by itself. Needs no torch."""

from __future__ import annotations

from voxveil.anonymize.bundle import write_bundle
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError
from voxveil.stages.context import StageContext

__all__ = ["run"]


def run(context: StageContext) -> None:
    """Write the bundle of ``context.key``."""
    path = context.inputs["synthesis"] / "model.json"
    corpus = read_json(path).get("corpus")
    if not isinstance(corpus, dict):
        raise InputError(f"{path}: corpus is missing; run train_synthesis again")
    write_bundle(
        context.outputs["model"],
        context.key,
        context.system,
        context.inputs,
        corpus,
        sex_public=context.params.bundle.sex_public,
    )
