"""Stage train_speaker: train the speaker encoder and build the public pool of target voices."""

from __future__ import annotations

import numpy as np

from voxveil.corpus.split import Split
from voxveil.features.speaker.clips import MINIMUM_SAMPLES
from voxveil.features.speaker.pool import Pool, PoolEntry, build_pool, nearest_voice_accuracy
from voxveil.features.speaker.train import train_encoder
from voxveil.runtime.atomic import write_json
from voxveil.stages.context import StageContext
from voxveil.training.checkpoint import write_curve

__all__ = ["run"]


def run(context: StageContext) -> None:
    """Write the encoder, ``pool.npz``, ``curve.csv`` and ``metrics.json``."""
    params = context.params.train_speaker
    train, voices = (Split(context.inputs["public"] / name) for name in ("extractor", "pool"))
    result = train_encoder(
        train,
        params,
        name="train_speaker",
        seed=context.params.base.seed,
        checkpoints=context.checkpoints,
        sink=context.sink,
    )
    encoder = result.encoder
    progress = context.progress("pool", len(voices))
    entries = []
    for done, utterance in enumerate(voices, 1):
        embedding = encoder.embed(voices.audio(utterance.id), f"utterance {utterance.id}")
        f0 = voices.f0(utterance.id)
        entries.append(PoolEntry(utterance.id, utterance.speaker, utterance.sex, embedding, f0))
        progress.update(done)
    pool = build_pool(entries)

    folder = context.outputs["model"]
    encoder.save(
        folder,
        {
            "speakers": len(train.speakers),
            "classes": result.classes,
            "target_members": params.target_members,
            "pool": _pool_facts(pool, sum(u.samples < MINIMUM_SAMPLES for u in voices)),
        },
    )
    pool.save(folder / "pool.npz")
    write_curve(folder, result.curve)
    metrics = {
        "train_speaker/accuracy": result.accuracy,
        "train_speaker/loss": result.curve[-1]["loss"],
        "train_speaker/pool_accuracy": nearest_voice_accuracy(pool),
        "train_speaker/pool_clusters": len(np.unique(pool.clusters)),
    }
    write_json(folder / "metrics.json", {name: value for name, value in metrics.items() if value is not None})


def _pool_facts(pool: Pool, short: int) -> dict[str, object]:
    return {
        "utterances": len(pool),
        "speakers": len(np.unique(pool.speakers)),
        "clusters": len(np.unique(pool.clusters)),
        "no_voiced_frames": pool.unvoiced.tolist(),
        "short_clips_repeated": short,
    }
