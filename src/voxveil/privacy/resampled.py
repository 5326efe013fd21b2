r"""Releases recognized words or, with probability alpha, a draw from a fixed public language model.

Let pi be the public distribution over strings (:class:`~voxveil.privacy.word_language.WordLanguage`), f the
recognizer, and f(x) the string of recording x, where there is one. The release Y is

* f(x) with probability 1 - alpha and a draw from pi with probability alpha, if pi(f(x)) >= pi_min;
* a draw from pi otherwise: also when recognition failed, a word is outside the vocabulary, or the string is
  too long.

**Theorem.** For any two recordings P(M(x) = y) <= e^epsilon P(M(x') = y) for every string y, with epsilon =
ln(1 + (1 - alpha) / (alpha pi_min)) and pi_min <= 1. No function of the recording, not even its length,
need be equal.

**Proof.** Let y be a string with pi(y) > 0; no other is ever released, since a kept string has pi >= pi_min
> 0.

1. pi(y) >= pi_min. P(M(x) = y) is alpha pi(y) + 1 - alpha if f(x) = y, alpha pi(y) if another string is
   kept with probability 1 - alpha, and pi(y) if everything is drawn. The first is the largest and the
   second the smallest of these, and their ratio is 1 + (1 - alpha) / (alpha pi(y)) <= 1 + (1 - alpha) /
   (alpha pi_min) = e^epsilon.
2. pi(y) < pi_min. y is never kept, so P(M(x) = y) is alpha pi(y) or pi(y), a ratio of at most 1 / alpha. As
   pi_min <= 1, e^epsilon >= 1 + (1 - alpha) / alpha = 1 / alpha.

Epsilon is attained where a string has pi(y) = pi_min and two recordings have f(x) = y and f(x') another
kept string.

*Chunks.* A recording that is padded to a multiple of q seconds is cut into m chunks of q seconds each. m is
a function of the padded length, which is the invariant ``length@q``. Every chunk releases one string, maybe
an empty one, and pi of a chunk may be conditioned on the strings of earlier chunks that were *released*.
Given those, each chunk is epsilon-DP by the theorem, so all of them are m epsilon-DP by adaptive
composition. Cuts at pauses, or by what the words cost, would reveal the number of chunks with certainty.

*Exactness.* alpha is rounded up to a multiple of 2^-64, which lowers the ratio, and one 64-bit word
decides. pi is an integer over a power of two, and the comparison with pi_min is one of fractions. pi_min is
computed from epsilon and alpha with 60 digits and rounded up. So the epsilon spent is at most the epsilon
claimed. A draw is made in any case and selected afterwards: the randomness that is used up depends on the
drawn string alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal, localcontext
from fractions import Fraction
from functools import cached_property

import numpy as np

from voxveil.privacy.checks import require_epsilon
from voxveil.privacy.invariants import length_invariant
from voxveil.privacy.loss import SEEDED_NOTE, Loss
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.released import Released, seal
from voxveil.privacy.word_language import WordLanguage
from voxveil.privacy.words import Words
from voxveil.runtime.errors import PrivacyError

__all__ = ["ResampledWords", "least_probability", "likeliest", "pure_epsilon", "words_of_draws"]

_WORDS = 2**64
#: Above this epsilon a string, pi_min has thousands of digits; no useful model has strings as rare as that.
_LARGEST_EPSILON = 10_000.0
_SHORT = (
    "resampled_words: epsilon must be at least ln(1 / alpha) = {least:.3g} for alpha {alpha:g},"
    " got {epsilon:g}; below that no string could be kept"
)


@dataclass(frozen=True)
class ResampledWords:
    """Keeps a recognized string or replaces it by a draw from pi; epsilon per string.

    Attributes:
        language: pi; it, its vocabulary and its natural language never depend on the recording.
        epsilon: Of one string, ln(1 / alpha) to 10,000.
        alpha: Probability that a string is replaced, above 0 and below 1; rounded up to a multiple of 2^-64.
        chunk: Seconds of a chunk, each of which releases one string; 0 = one string for the recording.
        conditioned: pi of a chunk is conditioned on the last released words before it.
    """

    language: WordLanguage
    epsilon: float
    alpha: float = 0.1
    chunk: float = 0.0
    conditioned: bool = True
    name: str = "resampled_words"

    def __post_init__(self) -> None:
        """Check the parameters."""
        require_epsilon(self.epsilon, self.name)
        if not 0.0 < self.alpha < 1.0:
            raise PrivacyError(f"{self.name}: alpha must be above 0 and below 1, got {self.alpha}")
        if self.epsilon > _LARGEST_EPSILON:
            raise PrivacyError(
                f"{self.name}: epsilon must be at most {_LARGEST_EPSILON:g} a string, got {self.epsilon:g}"
            )
        length_invariant(self.chunk)
        if self.least > 1:
            least = -math.log(self.alpha)
            raise PrivacyError(_SHORT.format(least=least, alpha=self.alpha, epsilon=self.epsilon))

    @cached_property
    def draws(self) -> int:
        """Number of 2^64 words that replace a string: alpha 2^64, rounded up."""
        return words_of_draws(self.alpha)

    @cached_property
    def least(self) -> Fraction:
        """pi_min, rounded up."""
        return least_probability(self.epsilon, Fraction(self.draws, _WORDS))

    @property
    def invariants(self) -> frozenset[str]:
        """None for one string; for chunks the padded length, which sets their number."""
        return frozenset({length_invariant(self.chunk)} if self.chunk else ())

    def chunks(self, seconds: float) -> int:
        """Return m, the number of strings of a recording: a function of its padded length.

        Args:
            seconds: Of the recording, at least 0.
        """
        if not math.isfinite(seconds) or seconds < 0:
            raise PrivacyError(f"{self.name}: a recording has a length of at least 0 s, got {seconds}")
        return max(1, math.ceil(seconds / self.chunk)) if self.chunk else 1

    def loss_for(self, shape: tuple[int, ...] = (), *, secret: bool = True) -> Loss:
        """Return m epsilon per utterance, rounded up; two strings as one-hot vectors differ by 2 in L1.

        Args:
            shape: (m,) with chunks; ignored without, where a recording releases one string.
            secret: As for every mechanism.

        Raises:
            PrivacyError: The number of chunks is not given.
        """
        if self.chunk and (len(shape) != 1 or shape[0] < 1):
            raise PrivacyError(f"{self.name}: its loss depends on the number of chunks, got shape {shape}")
        count = shape[0] if self.chunk else 1
        total = count * self.epsilon
        if Fraction(total) < count * Fraction(self.epsilon):
            total = math.nextafter(total, math.inf)
        note = "" if secret else SEEDED_NOTE
        return Loss("pure", total, "utterance", 2.0, self.name, "1", note, invariants=self.invariants)

    def keepable(self, words: Words | None, before: Sequence[int] = ()) -> bool:
        """Return whether a string is kept with probability 1 - alpha; private."""
        code = None if words is None else self.language.encode(words.sequence)
        return code is not None and self.language.probability(code, before) >= self.least

    def randomize(
        self, strings: Sequence[Words | None], noise: NoiseSource, before: Sequence[int] = ()
    ) -> list[Words]:
        """Return a release of each of independent strings.

        Args:
            strings: Recognized words, each of a recording of its own; None where recognition failed.
            noise: Where the words come from.
            before: Identifiers of public words before each string.
        """
        drawn = self.language.draw(len(strings), noise.words, before)
        selected = noise.words(len(strings)) >= np.uint64(self.draws)
        known = {words: self.keepable(words, before) for words in set(strings)}
        return [
            words if keep and words is not None and known[words] else Words(self.language.decode(ids))
            for words, ids, keep in zip(strings, drawn, selected.tolist(), strict=True)
        ]

    def perturb(self, strings: Sequence[Words | None], noise: NoiseSource) -> tuple[Words, ...]:
        """Return the strings of the chunks of one recording, as :meth:`release` does."""
        if not strings or (not self.chunk and len(strings) != 1):
            wanted = "at least one chunk" if self.chunk else "one string"
            raise PrivacyError(f"{self.name}: {wanted} of a recording is released, got {len(strings)}")
        if not self.conditioned:
            return tuple(self.randomize(strings, noise))
        released: list[Words] = []
        before: list[int] = []
        for words in strings:
            released += self.randomize([words], noise, before)
            # Every released word is in the vocabulary.
            before += [self.language.ids[word] for word in released[-1].sequence]
        return tuple(released)

    def release(self, strings: Sequence[Words | None], noise: NoiseSource) -> Released[tuple[Words, ...]]:
        """Release the strings of the chunks of one recording, one without chunks.

        Args:
            strings: (m,) what was recognized in each chunk, any function of the recording, m by
                :meth:`chunks`; None where that failed.
            noise: Where the words come from.
        """
        released = self.perturb(strings, noise)
        return seal(released, self.loss_for((len(strings),), secret=isinstance(noise, SystemNoise)))


def words_of_draws(alpha: float) -> int:
    """Return the number of 2^64 words that replace a string, rounded up.

    Args:
        alpha: Above 0, below 1.
    """
    return math.ceil(Fraction(alpha) * _WORDS)


def least_probability(epsilon: float, alpha: Fraction) -> Fraction:
    """Return pi_min = (1 - alpha) / (alpha (e^epsilon - 1)), rounded up.

    Args:
        epsilon: Above 0, finite.
        alpha: Above 0, at most 1.

    Raises:
        PrivacyError: e^epsilon - 1 vanishes in 60 digits.
    """
    with localcontext() as context:
        context.prec = 60
        # Decimal's exponential is correctly rounded; the next number below is below the true value.
        power = Decimal(epsilon).exp().next_minus()
        context.rounding = ROUND_FLOOR
        below = power - 1
    if below <= 0:
        raise PrivacyError(f"resampled_words: epsilon {epsilon:g} is too small, no string could be kept")
    return (1 - alpha) / (alpha * Fraction(below))


def pure_epsilon(alpha: Fraction, least: Fraction) -> float:
    """Return ln(1 + (1 - alpha) / (alpha pi_min)), rounded up.

    Args:
        alpha: Above 0, at most 1.
        least: pi_min, above 0, at most 1.
    """
    ratio = 1 + (1 - alpha) / (alpha * least)
    with localcontext() as context:
        context.prec = 60
        value = (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()
    # Far more than 60 digits can miss, and far less than anybody claims.
    return math.nextafter(float(value), math.inf) if value else 0.0


def likeliest(
    candidates: Sequence[tuple[Words, float]], margin: float, language: WordLanguage
) -> Words | None:
    """Return the likeliest candidate under pi among those acoustically near the best; pre-processing.

    A function of the recording alone, so the proof of :class:`ResampledWords` holds for it as a part of the
    recognizer. It raises the chance that a string is kept and costs word errors.

    Args:
        candidates: Hypotheses of a recognizer with their costs in nat, lower is better.
        margin: How much costlier than the best a candidate may be, in nat, at least 0.
        language: pi.

    Returns:
        The likeliest, of equals the cheapest; the best candidate where none is in the vocabulary.
    """
    if not candidates:
        return None
    best = min(cost for _, cost in candidates)
    close = sorted((pair for pair in candidates if pair[1] <= best + margin), key=lambda pair: pair[1])
    coded = [(words, language.encode(words.sequence)) for words, _ in close]
    known = [(words, code) for words, code in coded if code is not None]
    if not known:
        return close[0][0]
    chances = language.probabilities([code for _, code in known])
    return known[max(range(len(known)), key=lambda index: (chances[index], -index))][0]
