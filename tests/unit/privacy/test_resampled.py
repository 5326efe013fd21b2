"""Resampled words: the law against a literal one, the ratio of any two inputs, the loss, and the audit."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from made_languages import all_strings, made_language, one_word_language
from voxveil.privacy import PublicNoise, Released, ResampledWords, SystemNoise, Words
from voxveil.privacy.audit.resampled_audit import audit_resampled, small_mechanism
from voxveil.privacy.resampled import least_probability, likeliest, pure_epsilon, words_of_draws
from voxveil.privacy.word_language import TOTAL, WordLanguage
from voxveil.runtime.errors import PrivacyError

LANGUAGES = st.builds(
    made_language,
    seed=st.integers(0, 10_000),
    words=st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]),
    order=st.integers(1, 3),
    longest=st.integers(1, 2),
    empty=st.sampled_from([0, TOTAL // 3]),
)
ALPHAS = st.floats(1e-6, 0.999)
#: Inputs beside the strings of the vocabulary: none of them can be kept.
OUTSIDE: tuple[Words | None, ...] = (None, Words(("z",)), Words(("a",) * 9))
Law = dict[tuple[str, ...], Fraction]


def literal_law(words: Words | None, mechanism: ResampledWords, before: tuple[int, ...] = ()) -> Law:
    """The release of one input by the definition, in fractions, string by string."""
    language, alpha = mechanism.language, Fraction(mechanism.draws, 2**64)
    pi = {language.decode(string): language.probability(string, before) for string in all_strings(language)}
    kept = words is not None and pi.get(words.sequence, Fraction(0)) >= mechanism.least
    if not kept:
        return pi
    law = {string: alpha * chance for string, chance in pi.items()}
    law[words.sequence] += 1 - alpha  # type: ignore[union-attr]
    return law


def exp(value: Fraction, up: bool) -> Fraction:
    """e^value, a bound from above or below."""
    with localcontext() as context:
        context.prec = 70
        found = Fraction((Decimal(value.numerator) / Decimal(value.denominator)).exp())
    return found * (1 + Fraction(1 if up else -1, 10**60))


@given(language=LANGUAGES, epsilon=st.floats(1e-3, 30.0), alpha=ALPHAS)
def test_any_two_inputs_give_any_string_within_exp_epsilon(
    language: WordLanguage, epsilon: float, alpha: float
) -> None:
    assume(epsilon > -math.log(alpha) + 1e-9)
    mechanism = ResampledWords(language, epsilon, alpha)
    inputs = [Words(language.decode(string)) for string in all_strings(language)]
    laws = [literal_law(words, mechanism) for words in (*inputs, *OUTSIDE)]
    assert all(sum(law.values()) == 1 for law in laws)
    limit = exp(Fraction(epsilon), up=False)
    for string in laws[0]:
        chances = [law[string] for law in laws]
        assert max(chances) <= limit * min(chances)


@given(seed=st.integers(0, 1000), alpha=ALPHAS)
def test_the_ratio_is_attained_at_the_least_kept_probability(seed: int, alpha: float) -> None:
    language = made_language(seed, ("a", "b"), 2, 1)
    pi = sorted((language.probability(string), string) for string in all_strings(language))
    positive = [pair for pair in pi if pair[0] > 0]
    assume(len(positive) > 1)
    least, string = positive[0]
    exact = Fraction(words_of_draws(alpha), 2**64)
    # Epsilon rounded up puts pi_min at this string's probability or just below.
    mechanism = ResampledWords(language, pure_epsilon(exact, least), alpha)
    assert mechanism.least <= least and mechanism.least > least * (1 - Fraction(1, 10**6))
    first, second = (Words(language.decode(ids)) for ids in (string, positive[1][1]))
    ratio = literal_law(first, mechanism)[first.sequence] / literal_law(second, mechanism)[first.sequence]
    assert math.log(ratio) == pytest.approx(mechanism.epsilon, rel=1e-9)


@given(epsilon=st.floats(1e-3, 300.0), alpha=ALPHAS)
def test_rounding_is_to_the_safe_side(epsilon: float, alpha: float) -> None:
    draws = words_of_draws(alpha)
    exact = Fraction(draws, 2**64)
    assert exact >= Fraction(alpha) and Fraction(draws - 1, 2**64) < Fraction(alpha)
    least = least_probability(epsilon, exact)
    spent = 1 + (1 - exact) / (exact * least)
    assert spent <= exp(Fraction(epsilon), up=True)
    assert spent >= exp(Fraction(epsilon), up=False) * (1 - Fraction(1, 10**50))
    if least <= 1:
        claimed = pure_epsilon(exact, least)
        assert epsilon <= claimed <= epsilon * (1 + 1e-12)
        assert exp(Fraction(claimed), up=True) >= spent


@pytest.mark.parametrize("words", [Words(("b", "a")), Words(()), None, Words(("z",))])
def test_many_releases_have_the_law(words: Words | None) -> None:
    language = made_language(11, ("a", "b"), 3, 2, TOTAL // 5)
    mechanism = ResampledWords(language, 4.0, 0.4)
    law, count = literal_law(words, mechanism), 50_000
    released = mechanism.randomize([words] * count, PublicNoise(4, str(words)))
    found = Counter(one.sequence for one in released)
    likely = [string for string in law if law[string] > 0]
    expected = [float(law[string]) * count for string in likely]
    assert min(expected) >= 5 and set(found) <= set(likely)
    assert stats.chisquare([found[string] for string in likely], expected).pvalue > 1e-4


@given(
    language=LANGUAGES,
    alpha=st.floats(0.05, 0.95),
    more=st.floats(0.01, 20.0),
    seed=st.integers(0, 2**32),
)
def test_a_release_is_the_string_or_a_string_of_the_language(
    language: WordLanguage, alpha: float, more: float, seed: int
) -> None:
    mechanism = ResampledWords(language, more - math.log(alpha), alpha)
    inputs = [*(Words(language.decode(string)) for string in all_strings(language)), *OUTSIDE]
    # Whether a string is kept and what is drawn do not depend on the input.
    releases = {words: mechanism.perturb([words], PublicNoise(seed, "one"))[0] for words in inputs}
    drawn = releases[None]
    for words, released in releases.items():
        assert released in (drawn, words)
        assert mechanism.language.encode(released.sequence) is not None
        if words is not None and not mechanism.keepable(words):
            assert released == drawn
    kept = {words for words, released in releases.items() if words is not None and released != drawn}
    keepable = {words for words in inputs if mechanism.keepable(words)}
    assert kept in ({words for words in keepable if words != drawn}, set())


def test_a_release_has_its_loss_and_no_invariant() -> None:
    mechanism = ResampledWords(made_language(1), 5.0, 0.2)
    released = mechanism.release([Words(("a",))], SystemNoise())
    assert isinstance(released, Released) and isinstance(released.value[0], Words)
    loss = released.loss
    assert (loss.measure, loss.epsilon, loss.unit, loss.sensitivity) == ("pure", 5.0, "utterance", 2.0)
    assert loss.invariants == frozenset() and loss.mechanism == "resampled_words" and not loss.note
    assert loss == mechanism.loss_for() == mechanism.loss_for((7, 3))
    assert "no privacy claim" in mechanism.release([None], PublicNoise(1, "x")).loss.note


def test_chunks_add_up_under_the_padded_length() -> None:
    mechanism = ResampledWords(made_language(1), 3.1, 0.2, chunk=2.5)
    assert [mechanism.chunks(seconds) for seconds in (0.0, 0.1, 2.5, 2.6, 10.0)] == [1, 1, 1, 2, 4]
    assert ResampledWords(made_language(1), 3.1, 0.2).chunks(100.0) == 1
    for count in range(1, 400):
        loss = mechanism.loss_for((count,))
        assert Fraction(loss.epsilon) >= count * Fraction(3.1)
        assert loss.epsilon == pytest.approx(3.1 * count) and loss.invariants == {"length@2.5s"}
    released = mechanism.release([Words(("a",)), None, Words(())], SystemNoise())
    assert len(released.value) == 3 and released.loss == mechanism.loss_for((3,))
    for shape in [(), (0,), (1, 1)]:
        with pytest.raises(PrivacyError, match="number of chunks"):
            mechanism.loss_for(shape)


def test_a_chunk_is_conditioned_on_released_words_only() -> None:
    language = made_language(2, ("a", "b"), 3, 2)
    inputs = [Words(("b", "a")), Words(("a",)), Words(("a", "b"))]
    mechanism = ResampledWords(language, 4.0, 0.5, chunk=1.0)
    count = 20_000
    noise = PublicNoise(9, "chunks")
    # The law of a sequence of strings is a product of conditional laws given what was released.
    found = Counter(tuple(mechanism.perturb(inputs[:2], noise)) for _ in range(count // 10))
    expected = Counter()  # type: ignore[var-annotated]
    for first, chance in literal_law(inputs[0], mechanism).items():
        before = language.encode(first)
        assert before is not None
        for second, more in literal_law(inputs[1], mechanism, before).items():
            expected[Words(first), Words(second)] += float(chance * more) * count / 10
    likely = [pair for pair in expected if expected[pair] >= 5]
    counts = [*(found[pair] for pair in likely), sum(n for pair, n in found.items() if pair not in likely)]
    values = [*(expected[pair] for pair in likely), sum(v for p, v in expected.items() if p not in likely)]
    if values[-1] < 5:
        counts[-2:], values[-2:] = [sum(counts[-2:])], [sum(values[-2:])]
    assert stats.chisquare(counts, values).pvalue > 1e-4
    plain = ResampledWords(language, 4.0, 0.5, chunk=1.0, conditioned=False)
    assert len(plain.perturb(inputs, noise)) == 3


@pytest.mark.parametrize(
    ("epsilon", "alpha", "chunk", "fault"),
    [
        (0.0, 0.1, 0.0, "epsilon must be above 0"),
        (math.inf, 0.1, 0.0, "finite"),
        (20_000.0, 0.1, 0.0, "at most 10000"),
        (2.2, 0.1, 0.0, r"at least ln\(1 / alpha\) = 2.3"),
        (1e-300, 0.1, 0.0, "too small"),
        (5.0, 0.0, 0.0, "alpha must be"),
        (5.0, 1.0, 0.0, "alpha must be"),
        (5.0, math.nan, 0.0, "alpha must be"),
        (5.0, 0.1, -1.0, "seconds of at least 0"),
    ],
)
def test_parameters_out_of_range_are_refused(epsilon: float, alpha: float, chunk: float, fault: str) -> None:
    with pytest.raises(PrivacyError, match=fault):
        ResampledWords(made_language(1), epsilon, alpha, chunk)


@pytest.mark.parametrize(("chunk", "count"), [(0.0, 0), (0.0, 2), (1.0, 0)])
def test_a_recording_releases_as_many_strings_as_it_has(chunk: float, count: int) -> None:
    with pytest.raises(PrivacyError, match="of a recording is released, got"):
        ResampledWords(made_language(1), 5.0, 0.1, chunk).release([None] * count, SystemNoise())


def test_the_likeliest_near_candidate_is_chosen() -> None:
    language = one_word_language({"a": 0.5, "b": 0.25})
    a, b, other = Words(("a",)), Words(("b",)), Words(("z",))
    assert likeliest([], 1.0, language) is None
    assert likeliest([(b, 1.0), (a, 2.0), (other, 0.5)], 0.0, language) == other
    assert likeliest([(b, 1.0), (a, 2.0), (other, 0.5)], 0.5, language) == b
    assert likeliest([(b, 1.0), (a, 2.0), (other, 0.5)], 1.5, language) == a
    assert likeliest([(other, 1.0)], 3.0, language) == other


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 5.0])
def test_the_audit_passes_a_right_mechanism(epsilon: float) -> None:
    findings = audit_resampled(small_mechanism(epsilon), epsilon, releases=40_000)
    assert [finding.verdict for finding in findings] == ["consistent"] * 2
    assert findings[0].bound is not None and 0.7 * epsilon < findings[0].bound < epsilon


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_audit_catches_twice_the_epsilon(epsilon: float) -> None:
    findings = audit_resampled(small_mechanism(2 * epsilon), epsilon, releases=40_000)
    assert [finding.verdict for finding in findings] == ["violation"] * 2
