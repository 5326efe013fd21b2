"""Attack the released speech: scores of the trials, and of the pooled rank protocol.

==============  ====================  ==========  ==========
scenario        attacker trained on   enrolment   trials
==============  ====================  ==========  ==========
ignorant        original speech       original    anonymized
lazy_informed   original speech       anonymized  anonymized
semi_informed   anonymized speech     anonymized  anonymized
==============  ====================  ==========  ==========

The original system has one row: attacker, enrolment and trials original.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.asv import Conditions, embed_utterances, score_trials
from voxveil.attack.ecapa import EcapaAttacker
from voxveil.attack.files import write_attack
from voxveil.attack.rank import draw_rank_protocol, score_ranks
from voxveil.corpus.split import Split
from voxveil.corpus.trials import read_trials
from voxveil.errors import InputError
from voxveil.speaker.clips import MINIMUM_SAMPLES
from voxveil.stages.io import StageContext
from voxveil.training.progress import Progress

__all__ = ["run"]

Vector = NDArray[np.float32]
Vectors = dict[str, Vector]


@dataclass(frozen=True)
class _Scenario:
    """What an attacker of one kind knows and compares.

    Attributes:
        name: As in tables.
        attacker: Who attacks.
        enrolment: State of the enrolment speech.
        enrolled: Embeddings of the enrolment utterances.
        tested: Embeddings of everything else.
    """

    name: str
    attacker: EcapaAttacker
    enrolment: str
    enrolled: Vectors
    tested: Vectors


def run(context: StageContext) -> None:
    """Write ``ecapa/SCENARIO/`` with scores, ranks, lists and conditions."""
    attacker = EcapaAttacker.load(context.inputs["attacker"])
    released = Split(context.inputs["released"])
    private = Split(context.inputs["private"] / "private")
    speaker_of = {utterance.id: utterance.speaker for utterance in private}
    lists = read_trials(context.inputs["private"] / "trials", speaker_of)
    _check_disjoint(attacker, private)
    protocol = draw_rank_protocol(
        lists.enrolments, speaker_of, context.params.score.rank_inputs, context.params.base.seed
    )
    enrolled = [item for items in lists.enrolments.values() for item in items]
    items = list(dict.fromkeys([*enrolled, *lists.trial_utterances, *protocol.utterances]))
    _check_released(released, items)
    state = context.system.kind

    def embedded(who: EcapaAttacker, what: str, which: list[str], read: Callable[[str], Vector]) -> Vectors:
        progress = Progress(f"score[{context.key}] {what}", len(which), "utterance")
        return embed_utterances(who, which, read, progress.update)

    own = embedded(attacker, state, items, released.audio)
    scenarios = [_Scenario("semi_informed", attacker, state, own, own)]
    if state != "original":
        first = EcapaAttacker.load(context.inputs["original_attacker"])
        _check_disjoint(first, private)
        if first.training != "original":
            where = context.inputs["original_attacker"]
            raise InputError(f"{where}: was trained on {first.training} speech, must be original")
        tested = embedded(first, f"{state}, lazy", items, released.audio)
        plain = embedded(first, "original, ignorant", enrolled, private.audio)
        scenarios += [
            _Scenario("ignorant", first, "original", plain, tested),
            _Scenario("lazy_informed", first, state, tested, tested),
        ]
    short = sum(released[item].samples < MINIMUM_SAMPLES for item in items)
    for each in scenarios:
        # No utterance is on both sides, so the two can be put together.
        vectors = {**each.tested, **{item: each.enrolled[item] for item in enrolled}}
        write_attack(
            context.outputs["scores"],
            Conditions(each.attacker.name, each.name, each.enrolment, state, each.attacker.training),
            lists,
            score_trials(vectors, lists.enrolments, [(t.enrolment, t.utterance) for t in lists.trials]),
            score_ranks(vectors, protocol),
            speaker_of,
            short_clips=short,
        )


def _check_disjoint(attacker: EcapaAttacker, private: Split) -> None:
    both = sorted(set(attacker.speakers) & set(private.speakers))
    if both:
        raise InputError(
            f"speaker {both[0]}: the attacker was trained on a speaker it is tested on ({len(both)} in all)"
        )


def _check_released(released: Split, items: list[str]) -> None:
    missing = [item for item in items if item not in released]
    if missing:
        raise InputError(
            f"utterance {missing[0]}: not in {released.folder} ({len(missing)} missing in all); "
            "run anonymize again"
        )
