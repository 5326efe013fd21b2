"""Probe of a pitch variant: correlation with the true F0, and speaker identification."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.config import Params
from voxveil.corpus.split import Split, Utterance
from voxveil.features.pitch.extractor import PitchExtractor
from voxveil.features.pitch.scale import hz_to_unit
from voxveil.features.pitch.train import correlation
from voxveil.privacy import PublicNoise
from voxveil.research.asi.identification import pitch_features
from voxveil.research.asi.statistics import pitch_statistics
from voxveil.research.probe.facts import FORMAT, Cost, corpus_of, spent
from voxveil.research.probe.speakers import identified
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.training.holdout import hold_out
from voxveil.utility.pitch import mean_correlation

__all__ = ["probe_pitch"]

_REPLICATES = 1000
#: Utterances whose pitch track is drawn.
_TRACKS = 3
#: Anonymizations of each training utterance that the attacker learns from, beside the one attacked.
_FRESH = 8


def probe_pitch(public: Path, model: Path, params: Params, variant: str, draw: int) -> dict[str, Any]:
    """Measure one draw of one pitch variant on public speech.

    Args:
        public: What ``prepare`` wrote for the public speakers.
        model: What ``train_pitch`` wrote for the variant.
        params: All parameters.
        variant: Name of the variant.
        draw: Number of the draw of its noise, from 1 on.

    Returns:
        Correlation on held-out speakers with the floor of a decoder that is fed noise alone, the ASI
        attack on all speakers with enough utterances, the loss and what can pass.
    """
    split = Split(public / "extractor")
    extractor = PitchExtractor.load(model)
    noisy = extractor.loss["mechanism"] != "identity"
    seed = params.base.seed
    _, held = hold_out(split.utterances, seed)

    def noise(item: str, use: str) -> PublicNoise:
        return PublicNoise(seed, "probe_pitch", variant, item, use)

    released = {u.id: extractor.release(split.f0(u.id), noise(u.id, f"draw-{draw}")) for u in split}
    result: dict[str, Any] = {
        "format": FORMAT,
        "kind": "pitch",
        "variant": variant,
        "mechanism": params.pitch_variants[variant].mechanism,
        "draw": draw,
        "corpus": corpus_of(public),
        **spent([Cost(released[u.id].loss, 1) for u in held]),
        "correlation": _correlations(
            [correlation(released[u.id].value, split.f0(u.id)) for u in held],
            [u.speaker for u in held],
            seed,
        ),
        "tracks": [
            {
                "utterance": u.id,
                "true": _rounded(hz_to_unit(split.f0(u.id))),
                "released": _rounded(released[u.id].value),
            }
            for u in _of_different_speakers(held)
        ],
    }
    if noisy:
        floor = [
            correlation(extractor.noise_only(u.frames, noise(u.id, f"floor-{draw}")), split.f0(u.id))
            for u in held
        ]
        result["correlation_floor"] = _correlations(floor, [u.speaker for u in held], seed)

    fresh: dict[tuple[str, int], NDArray[np.float32]] = {}

    def features(item: str, again: int) -> np.ndarray[Any, Any]:
        if again == 0 or not noisy:
            return pitch_features(released[item].value)
        # Anyone may anonymize public speech again and again to learn from it.
        key = item, again % _FRESH
        if key not in fresh:
            use = f"attacker-{draw}-{key[1]}"
            fresh[key] = pitch_features(extractor.release(split.f0(item), noise(item, use)).value)
        return fresh[key]

    def cost(item: str) -> Cost:
        return Cost(released[item].loss, 1)

    name = f"asi[pitch-{variant}-{draw}]"
    result["asi"] = identified(split, features, cost, params, name, describe=pitch_statistics)
    return result


def _of_different_speakers(held: Sequence[Utterance]) -> list[Utterance]:
    """Return the first utterance of each of the first speakers."""
    first = {utterance.speaker: utterance for utterance in reversed(held)}
    return [first[speaker] for speaker in sorted(first)][:_TRACKS]


def _correlations(values: Sequence[float | None], speakers: Sequence[str], seed: int) -> dict[str, Any]:
    """Return the mean over utterances with its interval over speakers."""
    found = mean_correlation(values, speakers, stream(seed, "probe", "correlation"), _REPLICATES)
    if found["value"] is None:
        raise InputError("probe: no held-out utterance has a varying F0; nothing can be measured")
    return found


def _rounded(values: np.ndarray[Any, Any]) -> list[float]:
    return [round(float(value), 4) for value in values]
