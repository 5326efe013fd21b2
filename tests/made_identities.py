"""Made-up speakers whose F0 tells who they are, and the sum of several attacks on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voxveil.features.pitch.scale import hz_to_unit
from voxveil.research.asi.result import AsiResult
from voxveil.research.params import AsiParams
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

SMALL = AsiParams(channels=16, steps=120, batch=16, crop_frames=60, patience=20)


def made_utterances(speakers: int, each: int) -> dict[str, list[str]]:
    return {f"s{number:02d}": [f"s{number:02d}-{i}" for i in range(each)] for number in range(speakers)}


def made_pitch(utterances: dict[str, list[str]], *, telling: bool = True) -> dict[str, np.ndarray]:
    """Contours of 40 to 119 frames; each speaker has a height, unless nothing tells them apart."""
    from voxveil.research.asi.identification import pitch_features

    features = {}
    for number, items in enumerate(utterances.values()):
        for item in items:
            rng = stream(1, "made", item)
            frames = int(rng.integers(40, 120))
            height = 90 * 1.09**number if telling else 90 * 1.09 ** rng.uniform(0, len(utterances))
            wave = 1 + 0.05 * np.sin(np.arange(frames) / 9 + rng.uniform(0, 6))
            f0 = np.where(rng.random(frames) < 0.7, height * wave * np.exp(rng.normal(0, 0.02, frames)), 0.0)
            features[item] = pitch_features(hz_to_unit(f0))
    return features


def pooled_results(results: Sequence[AsiResult]) -> AsiResult:
    """Add up attacks on the same speakers and test utterances, each on features drawn anew.

    A speaker's trials stay one cluster, so that more draws do not pretend to be more speakers.

    Raises:
        InputError: There is none, or their test trials differ.
    """
    if not results:
        raise InputError("speaker identification: no result to pool")
    first = results[0]
    shares = {tuple((r.speaker_trials / r.draws).tolist()) for r in results}
    if len(shares) > 1:
        raise InputError("speaker identification: pooled results must have the same speakers and trials")
    return AsiResult(
        np.sum([result.speaker_hits for result in results], axis=0),
        np.sum([result.speaker_trials for result in results], axis=0),
        max(result.steps for result in results),
        first.curve if len(results) == 1 else [],
        sum(result.draws for result in results),
        {name: sum(r.hits_by_attacker[name] for r in results) for name in first.hits_by_attacker},
    )
