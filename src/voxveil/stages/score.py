"""Attack the released speech: scores of the trials, and of the pooled rank protocol.

Semi-informed: the attacker was trained on speech of the attacked system, and both enrolment and
trial utterances are the released ones.
"""

from __future__ import annotations

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

_SCENARIO = "semi_informed"


def run(context: StageContext) -> None:
    """Write ``ecapa/semi_informed/`` with scores, ranks, lists and conditions."""
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

    progress = Progress(f"score[{context.key}]", len(items), "utterance")
    embeddings = embed_utterances(attacker, items, released.audio, progress.update)
    state = context.system.kind
    write_attack(
        context.outputs["scores"],
        Conditions(attacker.name, _SCENARIO, enrolment=state, trial=state, training=attacker.training),
        lists,
        score_trials(embeddings, lists.enrolments, [(t.enrolment, t.utterance) for t in lists.trials]),
        score_ranks(embeddings, protocol),
        speaker_of,
        short_clips=sum(released[item].samples < MINIMUM_SAMPLES for item in items),
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
