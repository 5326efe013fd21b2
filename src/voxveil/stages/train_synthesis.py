"""Stage train_synthesis: one system's acoustic model on its own released features."""

from __future__ import annotations

from voxveil.runtime.atomic import write_json, write_text
from voxveil.stages.context import StageContext
from voxveil.synthesis.corpus import corpus_facts, synthesis_split

__all__ = ["run"]

#: Held-out utterances measured at most.
_MEASURED = 20


def run(context: StageContext) -> None:
    """Write model, curve and metrics; for a system without models, that there is nothing to train."""
    if context.system.trained:
        _train(context)
    else:
        _passthrough(context)


def _passthrough(context: StageContext) -> None:
    folder = context.outputs["model"]
    facts = {"format": 1, "kind": "passthrough", "corpus": corpus_facts(context.inputs["public"])}
    write_json(folder / "model.json", facts)
    write_json(folder / "metrics.json", {"train_synthesis/steps": 0.0})
    write_text(folder / "curve.csv", "step,loss\n0,0\n")


def _train(context: StageContext) -> None:
    from voxveil.features.extraction import System
    from voxveil.features.speaker.encoder import SpeakerEncoder
    from voxveil.synthesis.speech import Speech
    from voxveil.synthesis.train_acoustic import AcousticData, measure, train_acoustic
    from voxveil.training.checkpoint import write_trained
    from voxveil.training.holdout import hold_out

    seed, params = context.params.base.seed, context.params.train_synthesis
    split = synthesis_split(context.inputs["public"])
    encoder = SpeakerEncoder.load(context.inputs["speaker"])
    system = System.load(context.inputs["pitch"], context.inputs["content"])
    data = AcousticData(Speech(split), system, encoder.embed, seed, context.key)
    training, held = hold_out(split.utterances, seed)
    model, curve = train_acoustic(
        data,
        training,
        params,
        context.key,
        seed,
        held=held,
        checkpoints=context.checkpoints,
        sink=context.sink,
    )
    tested = held[:: max(1, len(held) // _MEASURED)][:_MEASURED]
    measured = measure(model.eval(), data, tested)
    metrics = {
        "train_synthesis/mel_l1": measured.mel_l1,
        "train_synthesis/voicing_accuracy": measured.voicing,
        "train_synthesis/held_out_utterances": float(len(tested)),
        "train_synthesis/loss": curve[-1]["loss"],
    }
    facts = {
        **model.describe(),
        "corpus": corpus_facts(context.inputs["public"]),
        "losses": system.rule.to_json(),
    }
    write_trained(context.outputs["model"], model, facts, curve, metrics)
