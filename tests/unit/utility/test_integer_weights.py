"""Integer weights of back-off models: near the model, a distribution exactly, of public text alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_languages import all_strings
from voxveil.privacy.word_language import TOTAL
from voxveil.runtime.errors import InputError
from voxveil.utility.language.estimation import kneser_ney
from voxveil.utility.language.integer_weights import lexical_sentences, public_language, with_integer_weights
from voxveil.utility.language.ngrams import BEGIN, END, NGramModel, mixed, with_backoffs
from voxveil.utility.language.word_model import LanguageKnobs

SENTENCES = st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=5), min_size=1, max_size=12)


def model_probability(model: NGramModel, words: tuple[str, ...], longest: int) -> float:
    """The probability of a string by the model's own look-up, word by word."""
    index = {word: number for number, word in enumerate(model.words)}
    history, total = [index[BEGIN]] * 2, 0.0
    for word in (*words, END)[:longest]:
        # Two sentence starts in a row are no history of the model.
        grams = [*history, index[word]][-model.order :]
        while len(grams) > 2 and grams[:2] == [index[BEGIN]] * 2:
            grams = grams[1:]
        total += float(model.log_prob(np.array([grams]))[0])
        history = [*history, index[word]][1:]
    return math.exp(total)


@settings(deadline=None)
@given(sentences=SENTENCES, order=st.integers(1, 3))
def test_an_interpolated_model_keeps_its_probabilities(sentences: list[list[str]], order: int) -> None:
    model = kneser_ney(sentences, "abc", order)
    language = with_integer_weights(model, longest=3)
    strings = all_strings(language)
    found = language.probabilities(strings)
    assert sum(found) == 1 and min(found) > 0
    expected = [model_probability(model, language.decode(string), 3) for string in strings]
    assert [float(value) for value in found] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@settings(deadline=None)
@given(first=SENTENCES, second=SENTENCES, share=st.floats(0.05, 0.95))
def test_other_models_are_met_as_nearly_as_a_mixture_can(
    first: list[list[str]], second: list[list[str]], share: float
) -> None:
    model = mixed(kneser_ney(first, "abc", 3), kneser_ney(second, "abc", 3), share)
    language = with_integer_weights(model, longest=3, empty=TOTAL // 4)
    assert sum(language.probabilities(all_strings(language))) == 1


def test_a_successor_rarer_than_by_its_shorter_history_leaves_the_rest_below_1() -> None:
    """b follows a less often than b occurs, so that the back-off weight is above 1."""
    grams = [np.arange(4)[:, None], np.array([[2, 3]])]
    first = np.log(np.array([0.2, 1e-9, 0.2, 0.6]))
    model = with_backoffs(("</s>", "<s>", "a", "b"), grams, [first, np.log(np.array([0.1]))])
    assert model.log_b[0][2] > 0
    language = with_integer_weights(model, longest=2)
    assert sum(language.probabilities(all_strings(language))) == 1
    # A mixture cannot give b less than the shorter history does.
    assert language.levels[1].weights.size == 0


def test_a_language_of_public_text() -> None:
    sentences = lexical_sentences(["Don't STOP, here.", "", "stop here", "12"])
    assert sentences == (("don't", "stop", "here"), ("stop", "here"))
    knobs = LanguageKnobs(order=2, words=2, share=0.5, prune=0.0)
    language = public_language(sentences, None, knobs, longest=4, empty=0.25)
    assert language.words == ("don't", "here", "stop") and language.longest == 4
    assert language.probability(()) >= language.empty / TOTAL == 0.25
    general = kneser_ney([["a", "stop"], ["a", "b."], ["a", "c"]], ["a", "stop", "b.", "c"], 2)
    wider = public_language(sentences, general, knobs, longest=4, empty=0.0)
    # Words with another character than letters and apostrophes are never released.
    assert set(wider.words) - set(language.words) <= {"a", "c"} and "a" in wider.words
    again = public_language(sentences, general, knobs, longest=4, empty=0.0)
    assert again.digest == wider.digest != language.digest
    with pytest.raises(InputError, match="share of the empty string"):
        public_language(sentences, None, knobs, longest=4, empty=1.5)
    with pytest.raises(InputError, match="at least one sentence"):
        public_language((), None, knobs, longest=4, empty=0.0)
