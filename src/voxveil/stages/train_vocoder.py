"""Stage train_vocoder: the vocoder, trained once for all systems, measured by copy synthesis."""

from __future__ import annotations

from voxveil.stages.context import StageContext
from voxveil.synthesis.corpus import corpus_facts, synthesis_split
from voxveil.synthesis.speech import Speech
from voxveil.synthesis.train_vocoder import copy_distance, train_vocoder
from voxveil.training.checkpoint import write_trained
from voxveil.training.holdout import hold_out

__all__ = ["run"]

#: Held-out utterances measured at most.
_MEASURED = 20


def run(context: StageContext) -> None:
    """Write model, curve and the log-mel distance of copy synthesis on held-out speakers."""
    seed, params = context.params.base.seed, context.params.train_vocoder
    split = synthesis_split(context.inputs["public"])
    speech = Speech(split)
    training, held = hold_out(split.utterances, seed)
    vocoder, curve = train_vocoder(
        speech, training, params, seed, held=held, checkpoints=context.checkpoints, sink=context.sink
    )
    measured = held[:: max(1, len(held) // _MEASURED)][:_MEASURED]
    metrics = {
        "train_vocoder/copy_mel_l1": copy_distance(vocoder.eval(), speech, measured),
        "train_vocoder/held_out_utterances": float(len(measured)),
        "train_vocoder/loss": curve[-1]["loss"],
    }
    facts = {**vocoder.describe(), "corpus": corpus_facts(context.inputs["public"])}
    write_trained(context.outputs["model"], vocoder, facts, curve, metrics)
