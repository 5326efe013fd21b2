"""Probe of a content variant: phone and word recognition, and speaker identification."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.config import Params
from voxveil.config.sections import section_of
from voxveil.corpus.phones import SILENCE
from voxveil.corpus.split import Split
from voxveil.features.content.extractor import ContentExtractor
from voxveil.features.content.labels import phone_targets, require_phones
from voxveil.privacy import PublicNoise
from voxveil.research.params import ProbeParams
from voxveil.research.probe.decoded import Listener
from voxveil.research.probe.facts import FORMAT, Cost, corpus_of, spent
from voxveil.research.probe.speakers import identified
from voxveil.training.holdout import hold_out
from voxveil.utility.edits import Edits, error_rate

__all__ = ["frame_rates", "probe_content"]

_REPLICATES = 1000


def probe_content(public: Path, model: Path, params: Params, variant: str, draw: int) -> dict[str, Any]:
    """Measure one draw of one content variant on public speech.

    Args:
        public: What ``prepare`` wrote for the public speakers.
        model: What ``train_content`` wrote for the variant.
        params: All parameters.
        variant: Name of the variant.
        draw: Number of the draw of its noise, from 1 on.

    Returns:
        Frame accuracy on held-out speakers, frame by frame and with a phone language model, their word
        errors where ``probe.words`` is on, the ASI attack on all speakers with enough utterances, the
        loss and what can pass.
    """
    split = Split(public / "extractor")
    require_phones(split, "probe")
    extractor = ContentExtractor.load(model)
    seed, knobs = params.base.seed, section_of(params, ProbeParams)
    training, held = hold_out(split.utterances, seed)

    def noise(item: str, use: str) -> PublicNoise:
        return PublicNoise(seed, "probe_content", variant, item, use)

    released = {u.id: extractor.release(split.audio(u.id), noise(u.id, f"draw-{draw}")) for u in held}
    loss = released[held[0].id].loss
    posteriors = {item: extractor.log_posteriors(vectors.value) for item, vectors in released.items()}
    labels = phone_targets(split, split.utterances, extractor.phones).labels
    truth = {u.id: labels[u.id] for u in held}
    guesses = {item: scores.argmax(axis=1) for item, scores in posteriors.items()}
    speakers = {u.id: u.speaker for u in held}

    def cost(item: str) -> Cost:
        return Cost(loss, -(-split[item].frames // extractor.every))

    identical = extractor.loss["mechanism"] == "identity"
    # The network's output before noise does not change between draws: one pass over the audio.
    before = {u.id: extractor.before_noise(split.audio(u.id)) for u in split}

    def features(item: str, again: int) -> NDArray[Any]:
        if identical:
            return before[item]
        use = f"draw-{draw}" if again == 0 else f"attacker-{draw}-{again}"
        return extractor.mechanism.perturb(before[item], noise(item, use))

    tuning = {
        u.id: extractor.log_posteriors(
            extractor.release(split.audio(u.id), noise(u.id, f"tune-{draw}")).value
        )
        for u in training[:: max(1, len(training) // knobs.tuning)][: knobs.tuning]
    }
    listener = Listener(training, labels, extractor.phones, tuning)
    decoded, scales = listener.phones_heard(posteriors)
    worded = {}
    if knobs.words:
        worded["wer"] = listener.word_rate(posteriors, held, replicates=_REPLICATES, seed=seed)
    return {
        "format": FORMAT,
        "kind": "content",
        "variant": variant,
        "mechanism": params.content_variants[variant].mechanism,
        "every": extractor.every,
        "draw": draw,
        "phones": len(extractor.phones),
        "phone_frames": _phone_frames(truth),
        "frame_chance": _commonest(truth),
        "corpus": corpus_of(public),
        **spent([cost(u.id) for u in held]),
        "frame_accuracy": frame_rates(guesses, truth, speakers, extractor.phones, seed),
        "frame_accuracy_phone_lm": {
            **frame_rates(decoded, truth, speakers, extractor.phones, seed),
            **scales,
        },
        **worded,
        "asi": identified(split, features, cost, params, f"asi[content-{variant}-{draw}]"),
    }


def _phone_frames(truth: Mapping[str, NDArray[np.int64]]) -> float:
    """Return the mean length of a phone in frames."""
    runs = sum(1 + int(np.count_nonzero(np.diff(labels))) for labels in truth.values())
    return sum(len(labels) for labels in truth.values()) / runs


def _commonest(truth: Mapping[str, NDArray[np.int64]]) -> float:
    """Return the share of frames that the commonest phone has."""
    counts = np.bincount(np.concatenate(list(truth.values())))
    return float(counts.max() / counts.sum())


def frame_rates(
    guesses: Mapping[str, NDArray[np.int64]],
    truth: Mapping[str, NDArray[np.int64]],
    speakers: Mapping[str, str],
    phones: Sequence[str],
    seed: int,
) -> dict[str, Any]:
    """Return the share of right frames, of all and of speech, in %, with intervals over speakers.

    Args:
        guesses: (K,) phone index per frame, by utterance.
        truth: Likewise.
        speakers: Speaker by utterance.
        phones: The phone set.
        seed: The run's seed.
    """
    silence = list(phones).index(SILENCE)
    found = {}
    for name in ("all", "speech"):
        edits = {}
        for item, labels in truth.items():
            counted = np.ones(len(labels), bool) if name == "all" else labels != silence
            wrong = int((guesses[item] != labels)[counted].sum())
            edits[item] = Edits(wrong, 0, 0, int(counted.sum()))
        rate = error_rate(edits, speakers, replicates=_REPLICATES, seed=seed)
        interval = None if rate.ci95 is None else [100.0 - rate.ci95[1], 100.0 - rate.ci95[0]]
        found[name] = {
            "value": None if rate.value is None else 100.0 - rate.value,
            "ci95": interval,
            "unit": "%",
            "frames": rate.edits.reference,
            "speakers": rate.speakers,
        }
    return found
