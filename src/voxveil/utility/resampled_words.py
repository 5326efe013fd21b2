"""Expected word errors of resampled words: an exact expectation over what is kept, given transcripts.

An utterance with reference r and recognized words y has the expected edits

    k ((1 - alpha) d(r, y) + alpha D) + (1 - k) D,   D = mean edits of a draw from pi,

k = 1 where pi(y) >= pi_min, else 0. D is the mean over some draws; everything else is exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from voxveil.privacy.noise import NoiseSource
from voxveil.privacy.resampled import ResampledWords
from voxveil.privacy.word_language import WordLanguage
from voxveil.privacy.words import Words
from voxveil.runtime.errors import InputError
from voxveil.utility.edits import count_edits

__all__ = ["ExpectedErrors", "expected_errors"]


@dataclass(frozen=True)
class ExpectedErrors:
    """Expected word errors at one epsilon.

    Attributes:
        epsilon: Of an utterance, in nat.
        alpha: Probability that a string which may be kept is replaced.
        keepable: Share of the utterances whose recognized words may be kept, in %.
        exact: Expected share of the utterances whose words are all right, in %.
        errors: Expected word errors in % of the words of the references.
        bounded: The same with the edits of an utterance counted up to the number of its words: what is
            inserted by a draw longer than the reference does not count.
    """

    epsilon: float
    alpha: float
    keepable: float
    exact: float
    errors: float
    bounded: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return asdict(self)


def expected_errors(
    references: Sequence[Words],
    recognized: Sequence[Words | None],
    language: WordLanguage,
    epsilons: Sequence[float],
    noise: NoiseSource,
    *,
    alpha: float = 0.1,
    draws: int = 20,
    further: float = 0.0,
) -> list[ExpectedErrors]:
    """Return expected word errors at each epsilon.

    Args:
        references: The true words of each utterance.
        recognized: What was recognized in it; None where recognition failed.
        language: pi.
        epsilons: Each at least ln(1 / alpha).
        noise: Where the draws come from.
        alpha: Above 0, below 1.
        draws: Draws from pi for each utterance, at least 1.
        further: Errors of the recognizer in % of the words, added to those of ``recognized`` where it is
            kept. For an assumed recognizer pass the references as ``recognized``.

    Raises:
        InputError: No reference has any word, or the numbers of utterances differ.
    """
    words = sum(len(reference) for reference in references)
    if not words or len(references) != len(recognized) or draws < 1:
        raise InputError(
            f"expected word errors need references with words, as many recognized ({len(references)} and"
            f" {len(recognized)}), and at least one draw ({draws})"
        )
    drawn = [language.decode(string) for string in language.draw(len(references) * draws, noise.words)]
    random, kept, short, right = [], [], [], []
    for index, (reference, found) in enumerate(zip(references, recognized, strict=True)):
        edits = [
            count_edits(reference.sequence, string).errors
            for string in drawn[index * draws : (index + 1) * draws]
        ]
        capped = sum(min(edit, len(reference)) for edit in edits)
        random.append((sum(edits) / draws, capped / draws, edits.count(0) / draws))
        found_edits = count_edits(reference.sequence, found.sequence).errors if found is not None else 0
        kept.append(found_edits + further / 100.0 * len(reference))
        short.append(min(kept[-1], float(len(reference))))
        right.append(float(found_edits == 0))
    codes = [None if found is None else language.encode(found.sequence) for found in recognized]
    known = [code for code in codes if code is not None]
    chances = iter(language.probabilities(known))
    pi = [None if code is None else next(chances) for code in codes]
    result = []
    for epsilon in epsilons:
        mechanism = ResampledWords(language, epsilon, alpha)
        keep = [chance is not None and chance >= mechanism.least for chance in pi]
        shares = [(1.0 - alpha) * chosen for chosen in keep]
        kinds = zip(*random, strict=True)
        errors, bounded, exact = (
            sum(
                share * value + (1.0 - share) * other
                for share, value, other in zip(shares, values, others, strict=True)
            )
            for values, others in zip((kept, short, right), kinds, strict=True)
        )
        result.append(
            ExpectedErrors(
                epsilon,
                alpha,
                100.0 * sum(keep) / len(keep),
                100.0 * exact / len(keep),
                100.0 * errors / words,
                100.0 * bounded / words,
            )
        )
    return result
