from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from voxveil.research.decoding.graph import Graph, build_graph
from voxveil.research.decoding.word_search import SCALES, SearchKnobs, decode_words, tuned, word_errors
from voxveil.runtime.errors import InputError
from voxveil.utility.language.estimation import kneser_ney
from voxveil.utility.language.ngrams import BEGIN, END, NGramModel

pytest.importorskip("kaldifst")
pytest.importorskip("kaldilm")
pytest.importorskip("kaldi_decoder")

PHONES = ("SIL", "K", "AE", "T", "S", "IY")
#: "sea" and "see" sound alike, "cat" begins "cats", and "see" has two pronunciations.
LEXICON = {
    "cat": (("K", "AE", "T"),),
    "cats": (("K", "AE", "T", "S"),),
    "sea": (("S", "IY"),),
    "see": (("S", "IY"), ("IY",)),
    "at": (("AE", "T"),),
}
TEXT = [["see", "cats"], ["see", "cat", "at", "sea"], ["cats", "see", "sea"], ["see", "at", "sea"]]
FLAT = np.log(np.full(len(PHONES), 1 / len(PHONES)))
WIDE = SearchKnobs(acoustic_scale=1.0, prior_scale=0.0, beam=1e4, max_active=100_000)


def language(order: int) -> NGramModel:
    return kneser_ney(TEXT, list(LEXICON), order)


@lru_cache
def graph(order: int = 2, **knobs: float) -> Graph:
    return build_graph(language(order), LEXICON, PHONES, FLAT, min_frames=2, **knobs)  # type: ignore[arg-type]


def posteriors(phones: str, frames: int, sure: float = 0.9) -> np.ndarray:
    labels = np.repeat([PHONES.index(phone) for phone in phones.split()], frames)
    value = np.full((len(labels), len(PHONES)), (1 - sure) / (len(PHONES) - 1))
    value[np.arange(len(labels)), labels] = sure
    return np.log(value)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("SIL S IY K AE T S SIL", "see cats"),
        ("S IY SIL AE T SIL S IY", "see at sea"),
        ("IY K AE T SIL AE T S IY", "see cat at sea"),
        ("SIL SIL", ""),
    ],
)
def test_clear_posteriors_give_what_was_said(said: str, words: str) -> None:
    assert decode_words(posteriors(said, 4), graph(3)) == words.split()


def literal_score(
    scores: np.ndarray, model: NGramModel, word_cost: float, sentence: tuple[str, ...]
) -> float:
    """Best score of a sentence over its pronunciations and silences, each aligned by dynamic programming."""
    sequence = np.array([model.words.index(word) for word in (BEGIN, *sentence, END)])
    grammar = sum(float(model.log_prob(sequence[None, : i + 1])[0]) for i in range(1, len(sequence)))
    best = -math.inf
    for spoken in itertools.product(*(LEXICON[word] for word in sentence)):
        for silences in itertools.product((False, True), repeat=len(sentence) + 1):
            phones = ["SIL"] * silences[0]
            for word, after in zip(spoken, silences[1:], strict=True):
                phones += [*word, *["SIL"] * after]
            best = max(best, aligned(scores, phones))
    return grammar - word_cost * len(sentence) + math.log(0.5) * (len(sentence) + 1) + best


def aligned(scores: np.ndarray, phones: list[str]) -> float:
    """Best score of these phones in this order, each at least 2 frames long."""
    states = [PHONES.index(phone) for phone in phones for _ in range(2)]
    if not states:
        return -math.inf
    previous = np.full(len(states), -np.inf)
    for frame, row in enumerate(scores):
        now = np.full(len(states), -np.inf)
        for index, phone in enumerate(states):
            came = previous[index - 1] if index else (0.0 if frame == 0 else -np.inf)
            stays = previous[index] if index % 2 else -np.inf
            now[index] = max(came, stays) + row[phone]
        previous = now
    return float(previous[-1])


@pytest.mark.parametrize(("seed", "order"), [(0, 1), (1, 2), (2, 3), (3, 3)])
def test_search_finds_the_best_of_all_sentences(seed: int, order: int) -> None:
    raw = np.random.default_rng(seed).gumbel(size=(7, len(PHONES))) * 2.0
    scores = raw - np.logaddexp.reduce(raw, axis=1, keepdims=True)
    model = language(order)
    heard = decode_words(scores, graph(order, word_cost=0.7), WIDE)
    # In 7 frames fit at most 3 words: each has at least one phone of two frames.
    sentences = itertools.chain.from_iterable(itertools.product(LEXICON, repeat=n) for n in range(4))
    best = max(literal_score(scores, model, 0.7, sentence) for sentence in sentences)
    assert literal_score(scores, model, 0.7, tuple(heard)) == pytest.approx(best, abs=1e-3)


def test_word_cost_makes_fewer_words() -> None:
    rng = np.random.default_rng(5)
    noise = [rng.gumbel(size=(40, len(PHONES))) for _ in range(8)]
    counts = [sum(len(decode_words(one, graph(2, word_cost=cost), WIDE)) for one in noise) for cost in (0, 5)]
    assert counts[1] < counts[0]


def test_priors_are_taken_off() -> None:
    priors = np.log([0.05, 0.19, 0.19, 0.19, 0.19, 0.19])
    clear = posteriors("SIL S IY SIL", 4, sure=0.5)
    built = build_graph(language(2), LEXICON, PHONES, priors, min_frames=2)
    assert np.array_equal(built.log_priors, priors)
    flat = SearchKnobs(acoustic_scale=1.0, prior_scale=1.0)
    shifted = clear + priors
    assert decode_words(shifted, built, flat) == decode_words(clear, graph(2), flat) == ["see"]


def test_saved_graph_is_the_same(tmp_path: Path) -> None:
    made = graph(3)
    made.save(tmp_path / "graph")
    again = Graph.load(tmp_path / "graph")
    assert (again.words, again.phones) == (made.words, made.phones)
    assert np.array_equal(again.log_priors, made.log_priors)
    said = posteriors("S IY SIL K AE T S", 3)
    assert decode_words(said, again) == decode_words(said, made) == ["see", "cats"]
    (tmp_path / "graph" / "graph.json").write_text("{}\n")
    with pytest.raises(InputError, match="not a decoding graph of format 1"):
        Graph.load(tmp_path / "graph")


def test_nothing_has_no_words() -> None:
    assert decode_words(np.zeros((0, len(PHONES))), graph()) == []


def test_an_utterance_cut_within_a_word_keeps_the_words_so_far() -> None:
    # "K" alone ends no word.
    assert decode_words(posteriors("S IY K", 5), graph(2), replace(WIDE, beam=8.0))[:1] == ["see"]


@pytest.mark.parametrize(
    "bad", [np.zeros((4, 5)), np.zeros(6), np.full((4, len(PHONES)), np.nan)], ids=["phones", "flat", "nan"]
)
def test_wrong_posteriors_are_refused(bad: np.ndarray) -> None:
    with pytest.raises(InputError, match="for 6 phones, or NaN"):
        decode_words(bad, graph())


def test_a_word_without_pronunciation_is_named() -> None:
    with pytest.raises(InputError, match="word 'cat' has no pronunciation"):
        build_graph(language(2), {**LEXICON, "cat": ()}, PHONES, FLAT)
    with pytest.raises(InputError, match="6 phones need as many finite log priors"):
        build_graph(language(2), LEXICON, PHONES, np.zeros(5))
    with pytest.raises(InputError, match="min_frames must be at least 1, got 0"):
        build_graph(language(2), LEXICON, PHONES, FLAT, min_frames=0)


def test_tuning_takes_the_scale_of_fewest_errors() -> None:
    built = graph(3)
    rng = np.random.default_rng(2)
    spoken = {}
    for i, (said, words) in enumerate([("S IY K AE T S", "SEE CATS!"), ("AE T SIL S IY", "at sea")] * 6):
        noisy = posteriors(said, 5, sure=0.35) + rng.gumbel(size=(len(said.split()) * 5, len(PHONES)))
        spoken[str(i)] = (noisy - np.logaddexp.reduce(noisy, axis=1, keepdims=True), words)
    errors = {}
    for scale in SCALES:
        knobs = SearchKnobs(acoustic_scale=scale)
        errors[scale] = sum(
            word_errors(text, decode_words(scores, built, knobs)).errors for scores, text in spoken.values()
        )
    assert len(set(errors.values())) > 1
    assert errors[tuned(spoken, built).acoustic_scale] == min(errors.values())
    with pytest.raises(InputError, match="at least one utterance"):
        tuned({}, built)


def test_word_errors_spell_both_sides_alike() -> None:
    edits = word_errors("It's a CAT, cat!", ["it's", "cat", "at"])
    assert (edits.errors, edits.reference) == (2, 4)
