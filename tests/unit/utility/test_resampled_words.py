"""Expected word errors of resampled words: against releases, and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from made_languages import one_word_language
from voxveil.privacy import PublicNoise, ResampledWords, Words
from voxveil.runtime.errors import InputError
from voxveil.utility.edits import count_edits
from voxveil.utility.resampled_words import expected_errors


def test_expectations_are_those_of_many_releases() -> None:
    language = one_word_language({"a": 0.3, "b": 0.3, "c": 0.2}, longest=3)
    references = [Words(tuple(text)) for text in ("abc", "a", "cc", "ba")]
    recognized = [Words(tuple("abb")), Words(("a",)), None, Words(("z",))]
    found = expected_errors(
        references, recognized, language, [2.5, 6.0], PublicNoise(1, "x"), alpha=0.3, draws=1500
    )
    for one in found:
        mechanism, noise = ResampledWords(language, one.epsilon, 0.3), PublicNoise(2, one.epsilon.hex())
        errors, right = [], []
        for reference, words in zip(references, recognized, strict=True):
            edits = [
                count_edits(reference.sequence, released.sequence).errors
                for released in mechanism.randomize([words] * 1500, noise)
            ]
            errors.append(np.mean(edits))
            right.append(np.mean([edit == 0 for edit in edits]))
        assert one.errors == pytest.approx(100 * sum(errors) / 8, rel=0.04)
        assert one.exact == pytest.approx(100 * np.mean(right), rel=0.1, abs=0.5)
        assert one.bounded <= one.errors
    assert [one.keepable for one in found] == [0.0, 50.0]


def test_an_assumed_recognizer_errs_where_its_words_are_kept() -> None:
    language = one_word_language({"a": 0.5, "b": 0.25})
    references = [Words(("a",))] * 2
    (found,) = expected_errors(
        references, references, language, [5.0], PublicNoise(1, "x"), alpha=0.5, draws=2000, further=10.0
    )
    # Kept half of the time with 10 % errors; a draw is another word or nothing half of the time.
    assert found.errors == pytest.approx(0.5 * 10 + 0.5 * 50, abs=1.5) and found.bounded == found.errors
    assert found.exact == pytest.approx(0.5 * 100 + 0.5 * 50, abs=1.5)
    assert set(found.to_json()) == {"epsilon", "alpha", "keepable", "exact", "errors", "bounded"}


@pytest.mark.parametrize(
    ("references", "recognized", "draws"), [([], [], 1), ([""], [""], 1), (["a"], [], 1), (["a"], ["a"], 0)]
)
def test_what_has_no_expectation_is_refused(references: list[str], recognized: list[str], draws: int) -> None:
    language = one_word_language({"a": 0.5})
    both = ([Words.of(text) for text in texts] for texts in (references, recognized))
    with pytest.raises(InputError, match="expected word errors need"):
        expected_errors(*both, language, [5.0], PublicNoise(1, "x"), draws=draws)
