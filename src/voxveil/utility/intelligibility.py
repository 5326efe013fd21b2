"""Intelligibility test: word errors against the true transcript and against permuted transcripts.

A recognizer with a language model makes words of any noise. Against permuted transcripts it gets
the rate of a guess; speech counts as understood only where errors are few and far below that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.utility.edits import Edits, ErrorRate, count_edits

__all__ = ["MARGIN", "PERMUTATIONS", "UNDERSTOOD", "permuted_edits", "rule_text", "understood"]

#: Speech with more wrong words than this, in %, is not understood.
UNDERSTOOD = 60.0
#: Points that the upper end of its interval must lie below the rate against permuted transcripts.
MARGIN = 30.0
#: Draws of other people's transcripts.
PERMUTATIONS = 10


def permuted_edits(
    said: Mapping[str, Sequence[str]], recognized: Mapping[str, Sequence[str]], seed: int
) -> list[Edits]:
    """Return the errors of every utterance against transcripts of other utterances.

    Args:
        said: Reference words by utterance, at least two utterances.
        recognized: Recognized words of the same utterances.
        seed: The run's seed.
    """
    names = sorted(said)
    if set(recognized) != set(names):
        raise InputError("intelligibility: what was said and what was heard are of different utterances")
    if len(names) < 2:
        raise InputError("intelligibility: permuted transcripts need at least 2 utterances")
    found: list[Edits] = []
    for draw in range(PERMUTATIONS):
        order = stream(seed, "intelligibility", draw).permutation(len(names))
        # Everybody gets the transcript of the next in a random round, so nobody their own.
        for position, index in enumerate(order):
            other = names[order[(position + 1) % len(order)]]
            found.append(count_edits(said[other], recognized[names[index]]))
    return found


@dataclass(frozen=True)
class _Verdict:
    """Whether speech counts as intelligible, with the reason."""

    understood: bool
    reason: str


def understood(rate: ErrorRate, permuted: float) -> _Verdict:
    """Return whether speech is intelligible by its word errors.

    Args:
        rate: Word errors with their interval over speakers.
        permuted: Word errors in % against permuted transcripts.
    """
    if rate.value is None or rate.ci95 is None:
        return _Verdict(False, rate.reason)
    upper = rate.ci95[1]
    if not np.isfinite(permuted):
        return _Verdict(False, "no rate against permuted transcripts")
    if rate.value > UNDERSTOOD:
        return _Verdict(False, f"{rate.value:.1f} % of the words are wrong, above {UNDERSTOOD:g} %")
    if upper > permuted - MARGIN:
        return _Verdict(
            False,
            f"up to {upper:.1f} % of the words are wrong (95 %), less than {MARGIN:g} points below"
            f" the {permuted:.1f} % against permuted transcripts",
        )
    return _Verdict(
        True,
        f"{rate.value:.1f} % of the words are wrong, at most {upper:.1f} % (95 %);"
        f" against permuted transcripts {permuted:.1f} %",
    )


def rule_text() -> str:
    """Return the rule in words."""
    return (
        f"understood = at most {UNDERSTOOD:g} % word errors, with the upper end of the 95 % interval at"
        f" least {MARGIN:g} points below the rate against permuted transcripts"
    )
