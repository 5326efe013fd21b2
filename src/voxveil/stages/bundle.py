"""Stage bundle: one system packed into a folder that anonymizes by itself. Needs no torch."""

from __future__ import annotations

from voxveil.anonymize.bundle import write_bundle
from voxveil.anonymize.word_source import WordSource
from voxveil.pretrained.folder import locate_pretrained
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
    models, words = dict(context.inputs), None
    if context.system.kind == "words_voice":
        section = f"systems.{context.key}"
        words = WordSource.of(context.system.recognizer, context.system.language, f"{section}.recognizer")
        models["voice"] = locate_pretrained(context.system.voice, "voice", f"{section}.voice").folder
    write_bundle(
        context.outputs["model"],
        context.key,
        context.system,
        models,
        corpus,
        sex_public=context.params.bundle.sex_public,
        words=words,
    )
