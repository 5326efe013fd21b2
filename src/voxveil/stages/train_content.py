"""Stage train_content: the acoustic model of one variant, measured on speakers it has not heard."""

from __future__ import annotations

import numpy as np

from voxveil.corpus.phones import PHONES
from voxveil.corpus.split import Split
from voxveil.features.content.labels import phone_targets, require_phones, state_targets
from voxveil.features.content.train import LabelledUtterance, frame_accuracy, mel_features, train_content
from voxveil.privacy import PublicNoise
from voxveil.stages.context import StageContext
from voxveil.training.checkpoint import write_trained
from voxveil.training.holdout import hold_out

__all__ = ["run"]


def run(context: StageContext) -> None:
    """Train on the public extractor speakers, write model, curve and metrics."""
    seed, params = context.params.base.seed, context.params.train_content
    split = Split(context.inputs["public"] / "extractor")
    require_phones(split, "train-content")
    training, held = hold_out(split.utterances, seed)
    phones = phone_targets(split, split.utterances, PHONES)
    targets = state_targets(split, training, phones) if params.targets == "states" else phones
    labelled = [
        LabelledUtterance(u.id, u.speaker, mel_features(split.audio(u.id)), targets.labels[u.id])
        for u in training
    ]
    trained = train_content(
        labelled,
        PHONES,
        targets.class_phones,
        params,
        context.params.content_variants[context.key],
        context.key,
        seed,
        checkpoints=context.checkpoints,
        sink=context.sink,
    )
    commonest = int(np.bincount(np.concatenate([phones.labels[u.id] for u in training])).argmax())
    accuracy = frame_accuracy(
        trained.extractor,
        [
            (
                split.audio(u.id),
                phones.labels[u.id],
                PublicNoise(seed, "train_content", context.key, u.id, "held-out"),
            )
            for u in held
        ],
        commonest,
    )
    metrics = {
        "train_content/frame_accuracy": accuracy.all,
        "train_content/frame_accuracy_speech": accuracy.speech,
        "train_content/frame_accuracy_chance": accuracy.chance,
        "train_content/classes": float(len(targets.class_phones)),
        "train_content/held_out_frames": float(accuracy.frames),
        "train_content/held_out_utterances": float(len(held)),
    }
    write_trained(context.outputs["model"], trained.model, trained.description, trained.curve, metrics)
