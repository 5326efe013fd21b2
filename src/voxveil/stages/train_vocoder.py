"""Stage train_vocoder: the vocoder, trained once for all systems, measured by copy synthesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from voxveil.config.networks import TrainVocoderParams
from voxveil.pretrained.architectures import load
from voxveil.pretrained.hifigan import Generator
from voxveil.runtime.errors import ParamsError
from voxveil.stages.context import StageContext
from voxveil.synthesis.corpus import corpus_facts, synthesis_split
from voxveil.synthesis.hifigan import HifiGan
from voxveil.synthesis.speech import Speech
from voxveil.synthesis.train_vocoder import copy_distance, train_vocoder
from voxveil.synthesis.vocoders import AnyVocoder
from voxveil.tracking.models.fetching import locate_pretrained
from voxveil.training.checkpoint import write_trained
from voxveil.training.holdout import hold_out

__all__ = ["run", "start_from"]

#: Held-out utterances measured at most.
_MEASURED = 20


def run(context: StageContext) -> None:
    """Write model, curve and the log-mel distance of copy synthesis on held-out speakers."""
    seed, params = context.params.base.seed, context.params.train_vocoder
    split = synthesis_split(context.inputs["public"])
    speech = Speech(split)
    training, held = hold_out(split.utterances, seed)
    initial: Callable[[AnyVocoder], None] | None = None
    started: dict[str, Any] = {}
    if params.pretrained:
        generator = load(locate_pretrained(params.pretrained, "vocoder", "train_vocoder.pretrained"))

        def initial(vocoder: AnyVocoder) -> None:
            lacking = start_from(vocoder, generator, params)
            started["pretrained"] = {**generator.model.facts(), "lacks": lacking}

    vocoder, curve = train_vocoder(
        speech,
        training,
        params,
        seed,
        held=held,
        initial=initial,
        checkpoints=context.checkpoints,
        sink=context.sink,
    )
    measured = held[:: max(1, len(held) // _MEASURED)][:_MEASURED]
    metrics = {
        "train_vocoder/copy_mel_l1": copy_distance(vocoder.eval(), speech, measured),
        "train_vocoder/held_out_utterances": float(len(measured)),
        "train_vocoder/loss": curve[-1]["loss"],
    }
    facts = {**vocoder.describe(), **started, "corpus": corpus_facts(context.inputs["public"])}
    write_trained(context.outputs["model"], vocoder, facts, curve, metrics)


def start_from(vocoder: AnyVocoder, initial: Generator, params: TrainVocoderParams) -> list[str]:
    """Initialize a vocoder by imported weights; return the names of its weights that these lack.

    Raises:
        ParamsError: The vocoder is of another kind or width.
        InputError: The weights are of other shapes.
    """
    where = str(initial.model.folder)
    if not isinstance(vocoder, HifiGan):
        raise ParamsError(f"train_vocoder.pretrained: {where}: is for kind nsf_gan, got {params.kind}")
    if initial.width != vocoder.size.width:
        raise ParamsError(
            f"train_vocoder.channels: got {vocoder.size.width}, must be {initial.width} as in {where}"
        )
    return vocoder.initialize(initial.tensors, where)
