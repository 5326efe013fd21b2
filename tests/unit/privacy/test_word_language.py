"""Integer word languages: exact law of draws and probabilities, files, and what is refused."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from made_languages import all_strings, made_language
from voxveil.privacy import SystemNoise
from voxveil.privacy.word_language import END, TOTAL, Level, WordLanguage, read_language, write_language
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.errors import InputError, VoxveilError
from voxveil.runtime.seeding import stream

LANGUAGES = st.builds(
    made_language,
    seed=st.integers(0, 10_000),
    words=st.sampled_from([("a",), ("a", "b"), ("a", "b", "c")]),
    order=st.integers(1, 3),
    longest=st.integers(1, 3),
    empty=st.sampled_from([0, 1, TOTAL // 3, TOTAL]),
)


class Literal:
    """The model by its definition: dictionaries of weights, one draw at a time."""

    def __init__(self, language: WordLanguage) -> None:
        self.language, self.begin = language, len(language.words) + 1
        self.weights: dict[tuple[int, ...], dict[int, int]] = {}
        for length, level in enumerate(language.levels):
            for row, key in enumerate(level.keys.tolist()):
                history = tuple(key // (self.begin + 1) ** k % (self.begin + 1) for k in range(length))[::-1]
                part = slice(level.starts[row], level.starts[row + 1])
                pairs = zip(level.successors[part].tolist(), level.weights[part].tolist(), strict=True)
                self.weights[history] = dict(pairs)

    def following(self, history: tuple[int, ...], word: int) -> Fraction:
        row = self.weights.get(history, {})
        shorter = self.following(history[1:], word) if history else Fraction(0)
        rest = 1 - Fraction(sum(row.values()), TOTAL)
        return Fraction(row.get(word, 0), TOTAL) + rest * shorter

    def law(self, before: Sequence[int] = ()) -> dict[tuple[int, ...], Fraction]:
        """The probability of every string, by walking through all of them."""
        found: dict[tuple[int, ...], Fraction] = Counter()  # type: ignore[assignment]
        shortcut = Fraction(self.language.empty, TOTAL)
        found[()] = shortcut
        order = self.language.order
        start = ((self.begin,) * (order - 1) + tuple(before))[len(before) :]
        paths = [((), start, 1 - shortcut)]
        while paths:
            string, history, chance = paths.pop()
            if len(string) == self.language.longest:
                found[string] += chance
                continue
            for word in range(self.begin):
                more = chance * self.following(history, word)
                if word == END:
                    found[string] += more
                else:
                    paths.append(((*string, word), (*history, word)[1:] if history else (), more))
        return found

    def draw(self, words: Iterator[int]) -> tuple[int, ...]:
        """One string, a masked word a decision, in the order in which the batch takes them."""
        if next(words) % TOTAL < self.language.empty:
            return ()
        string: tuple[int, ...] = ()
        history = (self.begin,) * (self.language.order - 1)
        while len(string) < self.language.longest:
            suffix = history
            while True:
                row, share = self.weights.get(suffix, {}), next(words) % TOTAL
                if share < sum(row.values()):
                    break
                suffix = suffix[1:]
            sums = itertools.accumulate(row.values())
            word = next(word for word, upper in zip(row, sums, strict=True) if share < upper)
            if word == END:
                break
            string, history = (*string, word), (*history, word)[1:] if history else ()
        return string


@given(language=LANGUAGES, data=st.data())
def test_probabilities_are_those_of_the_definition(language: WordLanguage, data: st.DataObject) -> None:
    before = data.draw(st.lists(st.integers(1, len(language.words)), max_size=3))
    law, strings = Literal(language).law(before), all_strings(language)
    found = language.probabilities(strings, before)
    assert found == [law[string] for string in strings]
    assert sum(found) == 1
    logs = language.log_probabilities(strings, before)
    assert np.exp(logs) == pytest.approx([float(value) for value in found], rel=1e-9, abs=1e-300)
    one = data.draw(st.sampled_from(strings))
    assert language.probability(one, before) == law[one]


@given(language=LANGUAGES, seed=st.integers(0, 1000))
def test_draws_follow_the_same_words_as_one_at_a_time(language: WordLanguage, seed: int) -> None:
    values = stream(seed, "words").integers(0, 2**64, size=100, dtype=np.uint64)

    def words(count: int) -> np.ndarray:
        nonlocal values
        taken, values = values[:count], values[count:]
        return taken

    literal = Literal(language).draw(iter(values.tolist()))
    assert language.draw(1, words) == [literal]


@pytest.mark.parametrize("before", [(), (2, 1)])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_many_draws_have_the_law(order: int, before: tuple[int, ...]) -> None:
    language = made_language(5 + order, ("a", "b", "c"), order, 3, TOTAL // 8)
    generator, law = stream(3, "draws", order), Literal(language).law(before)
    drawn = Counter(
        language.draw(30_000, lambda n: generator.integers(0, 2**64, size=n, dtype=np.uint64), before)
    )
    likely = [string for string in law if law[string] * 30_000 >= 5]
    counts = [drawn[string] for string in likely]
    expected = [float(law[string]) * 30_000 for string in likely]
    counts.append(30_000 - sum(counts))
    expected.append(30_000 - sum(expected))
    assert set(drawn) <= {string for string in law if law[string] > 0}
    if expected[-1] < 5:
        counts[-2:], expected[-2:] = [sum(counts[-2:])], [sum(expected[-2:])]
    assert stats.chisquare(counts, expected).pvalue > 1e-4


def test_no_draw_and_no_string() -> None:
    language = made_language(1)
    assert language.draw(0, SystemNoise().words) == []
    assert language.probabilities([]) == [] and language.log_probabilities([]).shape == (0,)


def test_strings_are_coded_by_the_vocabulary() -> None:
    language = made_language(1, ("a", "b"), longest=2)
    assert language.encode(()) == () and language.encode(("b", "a")) == (2, 1)
    assert language.encode(("c",)) is None and language.encode(("a", "a", "a")) is None
    assert language.decode((2, 1)) == ("b", "a")
    for string in [(1, 1, 1), (0,), (3,)]:
        with pytest.raises(InputError, match="not a string of at most 2"):
            language.probability(string)


@settings(max_examples=20)
@given(language=LANGUAGES)
def test_a_file_gives_the_language_back(
    language: WordLanguage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("language") / "pi.npz"
    write_language(path, language)
    found = read_language(path)
    assert found.digest == language.digest and found.words == language.words
    assert found.probabilities(all_strings(language)) == language.probabilities(all_strings(language))


def test_the_digest_follows_everything() -> None:
    language = made_language(7, ("a", "b"), 2, 2, 5)
    others = [
        replace(language, longest=3),
        replace(language, empty=6),
        replace(language, words=("a", "c")),
        made_language(8, ("a", "b"), 2, 2, 5),
    ]
    assert len({language.digest, *(other.digest for other in others)}) == 5


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pi.npz"
    with pytest.raises(InputError, match="no such file"):
        read_language(path)
    write_language(path, made_language(3, ("a", "b"), 2))
    parts = ("keys", "starts", "successors", "weights")
    names = ["words", "digest", "limits", *(f"{part}{level}" for part in parts for level in (0, 1))]
    arrays = read_arrays(path, names)
    changes = {
        "limits": arrays["limits"] + [1, 0, 0],
        "words": np.frombuffer(b"A\nb", np.uint8),
        "weights0": arrays["weights0"].astype(np.float64),
        "successors1": arrays["successors1"][::-1].copy() + 1,
        "digest": np.frombuffer(b"\xff", np.uint8),
    }
    for name, part in changes.items():
        write_arrays(path, {**arrays, name: part})
        with pytest.raises(InputError, match=r"pi.npz: not a language of words"):
            read_language(path)
    write_arrays(path, {**arrays, "limits": arrays["limits"] + [0, 0, 1]})
    with pytest.raises(InputError, match="holds no array 'keys2'"):
        read_language(path)


def ids(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"words": ()}, "at least one"),
        ({"words": ("b", "a")}, "sorted"),
        ({"words": ("A", "b")}, "lower-case"),
        ({"longest": 0}, "longest"),
        ({"empty": TOTAL + 1}, "empty"),
        ({"levels": ()}, "orders 1 to 3"),
        ({"levels": (Level(ids(0), ids(0, 3), ids(0, 1, 2), ids(1, 1, 1)),)}, "sum to 2"),
        ({"levels": (Level(ids(0), ids(0, 3), ids(0, 1, 2), ids(TOTAL, 0, 0)),)}, "above 0"),
        (
            {"levels": (Level(ids(0), ids(0, 3), ids(0, 1, 3), ids(TOTAL - 2, 1, 1)),)},
            "outside the vocabulary",
        ),
        ({"levels": (Level(ids(0), ids(0, 2), ids(1, 1), ids(TOTAL - 1, 1)),)}, "twice"),
        ({"levels": (Level(ids(0), ids(0, 1), ids(1, 2), ids(TOTAL - 1, 1)),)}, "rows"),
        ({"levels": (Level(ids(1), ids(0, 1), ids(1), ids(TOTAL)),)}, "history outside"),
        ({"levels": (Level(ids(0, 0), ids(0, 1, 2), ids(1, 1), ids(TOTAL, TOTAL)),)}, "rows"),
    ],
)
def test_weights_that_are_no_distribution_are_refused(change: dict[str, object], fault: str) -> None:
    with pytest.raises(VoxveilError, match=fault):
        replace(made_language(1, ("a", "b"), 1), **change)  # type: ignore[arg-type]
