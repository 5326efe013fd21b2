"""The decoding graph of a corpus, from its public training speakers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.corpus.phones import PHONES
from voxveil.corpus.split import Utterance
from voxveil.research.decoding.graph import Graph, build_graph
from voxveil.research.decoding.phone_model import log_shares
from voxveil.utility.language.lexicon import read_dictionary, word_lexicon
from voxveil.utility.language.sphinx_language import sphinx_dictionary_path, sphinx_language_model
from voxveil.utility.language.word_model import LanguageKnobs, language_model, training_sentences, vocabulary

__all__ = ["word_graph"]


def word_graph(
    training: Sequence[Utterance],
    tested: Sequence[Utterance],
    labels: Mapping[str, NDArray[np.integer[Any]]],
    knobs: LanguageKnobs | None = None,
    *,
    phones: Sequence[str] = PHONES,
    word_cost: float = 0.0,
) -> Graph:
    """Return the graph that decodes ``tested``, none of whose transcripts it has seen.

    Args:
        training: Public utterances with transcripts; their words are the vocabulary beside common ones.
        tested: What will be decoded and counted: of other speakers.
        labels: (K,) phone indices per frame of at least the training utterances.
        knobs: What the language model is made of.
        phones: All phones.
        word_cost: Cost of each word in nat.

    Raises:
        InputError: A speaker is both in training and in the test, or there is no transcript.
        MissingExtraError: PocketSphinx, kaldifst or kaldilm is not installed.
    """
    knobs = knobs or LanguageKnobs()
    sentences = training_sentences(training, tested)
    dictionary, general = read_dictionary(sphinx_dictionary_path()), sphinx_language_model()
    words = vocabulary(general, sentences, knobs.words, dictionary)
    model = language_model(general, sentences, words, knobs)
    priors = log_shares([labels[u.id] for u in training], len(phones))
    return build_graph(model, word_lexicon(words, dictionary), phones, priors, word_cost=word_cost)
