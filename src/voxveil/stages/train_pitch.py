"""Stage train_pitch: the F0 extractor of one variant, measured on speakers it has not heard."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voxveil.corpus.split import Split
from voxveil.features.pitch.extractor import PitchExtractor
from voxveil.features.pitch.train import PitchUtterance, correlation, train_pitch
from voxveil.privacy import PublicNoise
from voxveil.runtime.errors import InputError
from voxveil.stages.context import StageContext
from voxveil.training.checkpoint import write_trained
from voxveil.training.holdout import hold_out

__all__ = ["run"]


def run(context: StageContext) -> None:
    """Train on the public extractor speakers, write model, curve and metrics."""
    seed, params = context.params.base.seed, context.params.train_pitch
    split = Split(context.inputs["public"] / "extractor")
    utterances = [PitchUtterance(u.id, u.speaker, split.f0(u.id)) for u in split]
    training, held = hold_out(utterances, seed)
    trained = train_pitch(
        training,
        params,
        context.params.pitch_variants[context.key],
        context.key,
        seed,
        checkpoints=context.checkpoints,
        sink=context.sink,
    )
    metrics = _metrics(trained.extractor, held, seed, context.key)
    # The identity has no training; one point of its exact loss keeps every variant's curve plottable.
    curve = trained.curve or [{"step": 0, "loss": 1.0 - metrics["train_pitch/correlation"]}]
    write_trained(context.outputs["model"], trained.model, trained.description, curve, metrics)


def _metrics(
    extractor: PitchExtractor, held: Sequence[PitchUtterance], seed: int, name: str
) -> dict[str, float]:
    """Correlation on held-out speakers, and the floor of a decoder that gets noise alone."""

    def source(utterance: PitchUtterance, use: str) -> PublicNoise:
        return PublicNoise(seed, "train_pitch", name, utterance.id, use)

    measured = [correlation(extractor.release(u.f0, source(u, "held-out")).value, u.f0) for u in held]
    metrics = {
        "train_pitch/correlation": _mean(measured, name),
        "train_pitch/held_out_utterances": float(len(held)),
        "train_pitch/undefined": float(sum(value is None for value in measured)),
    }
    if extractor.loss["mechanism"] != "identity":
        floor = [correlation(extractor.noise_only(len(u.f0), source(u, "floor")), u.f0) for u in held]
        metrics["train_pitch/correlation_floor"] = _mean(floor, name)
    return metrics


def _mean(values: Sequence[float | None], name: str) -> float:
    """Mean over the utterances where a correlation is defined."""
    defined = [value for value in values if value is not None]
    if not defined:
        raise InputError(
            f"train_pitch[{name}]: none of {len(values)} held-out utterances has a varying F0; at least"
            " one is needed"
        )
    return float(np.mean(defined))
