"""The decoding graph: a composition of phone durations, lexicon and language model.

In the terms of Mohri, Pereira and Riley (2002), H o min(det(L o G)). H lets each phone last at least
some frames; L spells words in phones with optional silence between them, with disambiguation symbols
where words sound alike; G is the n-gram model. Labels of the graph are 1 + the index of a phone.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.corpus.phones import SILENCE
from voxveil.runtime.atomic import read_json, whole_directory, write_json
from voxveil.runtime.errors import InputError, MissingExtraError
from voxveil.utility.language.lexicon import Lexicon
from voxveil.utility.language.ngrams import BEGIN, END, NGramModel, arpa

__all__ = ["Graph", "build_graph"]

#: Probability of a silence before the first word and after each.
_SILENCE_PROBABILITY = 0.5
_DISAMBIGUATION = "#0"


@dataclass(frozen=True)
class Graph:
    """A search graph.

    Attributes:
        fst: A ``kaldifst.StdVectorFst``: input 1 + phone index, output 1 + word index.
        words: All words.
        phones: All phones.
        log_priors: (P,) natural logarithms of the phones' shares of the frames in training.
    """

    fst: Any
    words: tuple[str, ...]
    phones: tuple[str, ...]
    log_priors: NDArray[np.float64]

    def save(self, folder: Path) -> None:
        """Write ``graph.fst`` (OpenFst) and ``graph.json`` into a new folder."""
        with whole_directory(folder) as partial:
            self.fst.write(str(partial / "graph.fst"))
            content = {
                "format": 1,
                "kind": "graph",
                "words": list(self.words),
                "phones": list(self.phones),
                "log_priors": self.log_priors.tolist(),
            }
            write_json(partial / "graph.json", content)

    @staticmethod
    def load(folder: Path) -> Graph:
        """Read the files of :meth:`save`.

        Raises:
            InputError: Not a graph of format 1.
        """
        path = folder / "graph.json"
        content = read_json(path)
        if not isinstance(content, dict) or (content.get("format"), content.get("kind")) != (1, "graph"):
            raise InputError(f"{path}: not a decoding graph of format 1")
        fst = fst_module().StdVectorFst.read(str(folder / "graph.fst"))
        if fst is None:
            raise InputError(f"{folder / 'graph.fst'}: not a readable FST")
        try:
            words, phones = tuple(content["words"]), tuple(content["phones"])
            priors = np.array(content["log_priors"], np.float64)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{path}: not a decoding graph ({error})") from None
        return Graph(fst, words, phones, priors)


def build_graph(
    model: NGramModel,
    lexicon: Lexicon,
    phones: Sequence[str],
    log_priors: NDArray[np.float64],
    *,
    min_frames: int = 3,
    word_cost: float = 0.0,
) -> Graph:
    """Compose phones, lexicon and language model.

    Args:
        model: Over the words of the lexicon.
        lexicon: Pronunciations of each word of the model.
        phones: All phones; the posteriors' columns.
        log_priors: (P,) natural logarithms of the phones' shares of the frames.
        min_frames: Shortest phone in frames, at least 1.
        word_cost: Cost of each word in nat: fewer words where it is above 0.

    Raises:
        InputError: A word without pronunciation.
        MissingExtraError: kaldifst or kaldilm is not installed.
    """
    kaldifst = fst_module()
    words = tuple(word for word in model.words if word not in (BEGIN, END))
    missing = [word for word in words if not lexicon.get(word)]
    if missing:
        raise InputError(f"decoding graph: word {missing[0]!r} has no pronunciation")
    if np.shape(log_priors) != (len(phones),) or not np.isfinite(log_priors).all():
        raise InputError(f"decoding graph: {len(phones)} phones need as many finite log priors")
    grammar = _grammar(kaldifst, model, words)
    spelling, symbols = _spelling(kaldifst, lexicon, words, phones, word_cost)
    graph = kaldifst.compose(spelling, grammar)
    kaldifst.determinize_star(graph)
    kaldifst.minimize_encoded(graph)
    kaldifst.arcsort(graph, "ilabel")
    graph = kaldifst.compose(_durations(kaldifst, len(phones), symbols, min_frames), graph)
    kaldifst.connect(graph)
    return Graph(graph, words, tuple(phones), np.asarray(log_priors, np.float64))


def fst_module() -> Any:
    """Return kaldifst.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import kaldifst
    except ImportError:
        raise MissingExtraError("kaldifst", "research") from None
    return kaldifst


def _grammar(kaldifst: Any, model: NGramModel, words: Sequence[str]) -> Any:
    """Return G: words to words; ``#0`` on the input of back-off arcs."""
    try:
        import kaldilm
    except ImportError:
        raise MissingExtraError("kaldilm", "research") from None
    with tempfile.TemporaryDirectory(prefix="voxveil-graph-") as folder:
        table, source, target = (str(Path(folder) / name) for name in ("words.txt", "lm.arpa", "lm.fst"))
        symbols = ["<eps>", *words, _DISAMBIGUATION, BEGIN, END]
        Path(table).write_text("".join(f"{word} {i}\n" for i, word in enumerate(symbols)), encoding="utf-8")
        Path(source).write_text(arpa(model), encoding="utf-8")
        with _without_chatter():
            kaldilm.arpa2fst(source, target, disambig_symbol=_DISAMBIGUATION, read_symbol_table=table)
        grammar = kaldifst.StdVectorFst.read(target)
    kaldifst.arcsort(grammar, "ilabel")
    return grammar


@contextmanager
def _without_chatter() -> Iterator[None]:
    """Suppress progress output of native code; its errors are kept."""
    sys.stderr.flush()
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)


def _spelling(
    kaldifst: Any, lexicon: Lexicon, words: Sequence[str], phones: Sequence[str], word_cost: float
) -> tuple[Any, range]:
    """Return L, phones to words, with the labels of its disambiguation symbols."""
    label = {phone: index for index, phone in enumerate(phones, 1)}
    first = len(phones) + 1
    # #0 goes through from G; #1 ends a silence; the others tell words apart.
    shared = Counter(pronunciation for word in words for pronunciation in set(lexicon[word]))
    prefixes = {pronunciation[:end] for pronunciation in shared for end in range(1, len(pronunciation))}
    used: Counter[tuple[str, ...]] = Counter()
    fst = kaldifst.StdVectorFst()
    start, loop, silent, ended = (fst.add_state() for _ in range(4))
    fst.start = start
    fst.set_final(loop, 0.0)
    after_silence = -math.log(_SILENCE_PROBABILITY)
    without = -math.log(1.0 - _SILENCE_PROBABILITY)

    def arc(source: int, inner: int, outer: int, cost: float, target: int) -> None:
        fst.add_arc(source, kaldifst.StdArc(inner, outer, cost, target))

    arc(start, 0, 0, without, loop)
    arc(start, 0, 0, after_silence, silent)
    arc(silent, label[SILENCE], 0, 0.0, ended)
    arc(ended, first + 1, 0, 0.0, loop)
    highest = 1
    for word_label, word in enumerate(words, 1):
        for pronunciation in dict.fromkeys(lexicon[word]):
            labels = [label[phone] for phone in pronunciation]
            if shared[pronunciation] > 1 or pronunciation in prefixes:
                used[pronunciation] += 1
                labels.append(first + 1 + used[pronunciation])
                highest = max(highest, 1 + used[pronunciation])
            here, outer, cost = loop, word_label, word_cost
            for inner in labels[:-1]:
                following = fst.add_state()
                arc(here, inner, outer, cost, following)
                here, outer, cost = following, 0, 0.0
            arc(here, labels[-1], outer, cost + without, loop)
            arc(here, labels[-1], outer, cost + after_silence, silent)
    arc(loop, first, len(words) + 1, 0.0, loop)
    kaldifst.arcsort(fst, "olabel")
    return fst, range(first, first + highest + 1)


def _durations(kaldifst: Any, phones: int, symbols: range, min_frames: int) -> Any:
    """Return H: frames to phones. Disambiguation symbols become epsilon.

    There is no arc without input between phones, so the graph needs none either.
    """
    if min_frames < 1:
        raise InputError(f"decoding graph: min_frames must be at least 1, got {min_frames}")
    fst = kaldifst.StdVectorFst()
    fst.start = fst.add_state()
    chains = [[fst.add_state() for _ in range(min_frames)] for _ in range(phones)]
    ends = [chain[-1] for chain in chains]
    for source in (fst.start, *ends):
        fst.set_final(source, 0.0)
        for symbol in symbols:
            fst.add_arc(source, kaldifst.StdArc(0, symbol, 0.0, source))
        for phone, chain in enumerate(chains, 1):
            fst.add_arc(source, kaldifst.StdArc(phone, phone, 0.0, chain[0]))
    for phone, chain in enumerate(chains, 1):
        for here, target in zip(chain, (*chain[1:], chain[-1]), strict=True):
            fst.add_arc(here, kaldifst.StdArc(phone, 0, 0.0, target))
    kaldifst.arcsort(fst, "olabel")
    return fst
