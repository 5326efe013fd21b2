"""The word language model: general English mixed with the transcripts of public training speakers."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from voxveil.corpus.split import Utterance
from voxveil.runtime.errors import InputError
from voxveil.utility.language.estimation import kneser_ney
from voxveil.utility.language.ngrams import BEGIN, END, NGramModel, mixed, pruned, restricted
from voxveil.utility.transcripts import normalize_words

__all__ = ["LanguageKnobs", "language_model", "training_sentences", "vocabulary"]


@dataclass(frozen=True)
class LanguageKnobs:
    """Parameters of the language model.

    Attributes:
        order: Longest n-gram, 1 to 3.
        words: Commonest words of the general model that the vocabulary takes.
        share: Weight of the transcripts' model against the general one, in [0, 1].
        prune: Perplexity share below which an n-gram is dropped.
    """

    order: int = 2
    words: int = 40_000
    share: float = 0.3
    prune: float = 1e-7


def training_sentences(
    training: Sequence[Utterance], tested: Sequence[Utterance]
) -> tuple[tuple[str, ...], ...]:
    """Return the training sentences of a language model; none of them is in the test.

    A transcript that equals a tested one goes, whoever read it (readers share books).

    Args:
        training: Public utterances with transcripts.
        tested: The utterances that will be decoded and counted.

    Raises:
        InputError: A speaker is in both, or nothing is left to learn from.
    """
    shared = {u.speaker for u in training} & {u.speaker for u in tested}
    if shared:
        raise InputError(f"language model: speaker {min(shared)} is both in training and in the test")
    said = {tuple(normalize_words(u.text)) for u in tested}
    sentences = tuple(tuple(normalize_words(u.text)) for u in training)
    kept = tuple(words for words in sentences if words and words not in said)
    if not kept:
        raise InputError("language model: no training transcript that is not said in the test")
    return kept


def vocabulary(
    general: NGramModel, sentences: Sequence[Sequence[str]], size: int, pronounced: Collection[str]
) -> tuple[str, ...]:
    """Return the ``size`` commonest pronounceable words of the general model, and the sentences' own.

    Args:
        general: A general model.
        sentences: Training sentences.
        size: Number of words from the general model.
        pronounced: Words with a pronunciation.
    """
    order = np.argsort(-general.log_p[0], kind="stable")
    common = (general.words[i] for i in order)
    known = [word for word in common if word in pronounced and word not in (BEGIN, END)]
    return tuple(sorted({*known[:size], *(word for sentence in sentences for word in sentence)}))


def language_model(
    general: NGramModel, sentences: Sequence[Sequence[str]], words: Sequence[str], knobs: LanguageKnobs
) -> NGramModel:
    """Return the mix of the general model and that of the sentences, over ``words``, pruned.

    Args:
        general: A general model.
        sentences: As :func:`training_sentences` returns.
        words: As :func:`vocabulary` returns.
        knobs: Order, weight and pruning.
    """
    domain = kneser_ney(sentences, words, knobs.order)
    other = restricted(general.cut(min(knobs.order, general.order)), words)
    return pruned(mixed(domain, other, knobs.share), knobs.prune)
