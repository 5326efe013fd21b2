"""The attack on the corpus's transcripts of the trials: what an attacker finds who has the words alone.

It needs no speech and no recognizer, so it is the same for every system. What it finds, no system that keeps
the words can hide. TF-IDF is not the best reader, so others may find more.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from voxveil.attack.attackers.interface import Conditions, score_trials
from voxveil.attack.attackers.words import TextWeights
from voxveil.attack.rank import score_ranks
from voxveil.attack.scenarios import Plan, Scored, write_attack
from voxveil.corpus.split import Speech
from voxveil.metrics.data import TRANSCRIPTS, WORDS_ALONE
from voxveil.utility.transcripts import normalize_words

__all__ = ["score_transcripts", "transcripts_of", "write_words_alone"]


def transcripts_of(speech: Speech | None) -> dict[str, str]:
    """Return the transcript of each utterance that has one."""
    texts = {} if speech is None else {item.id: getattr(item, "text", "") for item in speech}
    return {item: text for item, text in texts.items() if text}


def score_transcripts(texts: Mapping[str, str], public: Mapping[str, str], plan: Plan) -> Scored | None:
    """Score trials and ranks by the cosine of TF-IDF vectors of transcripts.

    Args:
        texts: Transcript by utterance.
        public: Transcripts of public speech, which set the weights of the terms.
        plan: What is compared with what.

    Returns:
        None where there is no public transcript, or a compared utterance has none.
    """
    items = dict.fromkeys([*plan.enrolled, *plan.tested])
    if not public or any(item not in texts for item in items):
        return None
    weights = TextWeights.learn(normalize_words(text) for text in public.values())
    vectors = {item: weights.vector(normalize_words(texts[item])) for item in items}
    pairs = [(trial.enrolment, trial.utterance) for trial in plan.lists.trials]
    return Scored(
        Conditions(WORDS_ALONE, *[TRANSCRIPTS] * 4),
        score_trials(vectors, plan.lists.enrolments, pairs),
        score_ranks(vectors, plan.ranks),
        blank=sum(not vector.any() for vector in vectors.values()),
    )


def write_words_alone(
    scores: Path,
    scored: Scored,
    plan: Plan,
    speaker_of: Mapping[str, str],
    sex_of: Mapping[str, str],
) -> None:
    """Write the attack into a folder of scores, beside those of the attackers who use speech."""
    write_attack(scores / WORDS_ALONE / TRANSCRIPTS, scored, plan.lists, speaker_of, sex_of=sex_of)
