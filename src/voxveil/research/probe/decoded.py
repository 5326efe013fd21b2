"""Post-processing of released content with phone and word language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.corpus.split import Utterance
from voxveil.research.decoding.making import word_graph
from voxveil.research.decoding.phone_model import phone_model
from voxveil.research.decoding.phone_posteriors import smoothed_posteriors, tuned_scales
from voxveil.research.decoding.word_search import SearchKnobs, decode_words, tuned, word_errors
from voxveil.utility.edits import error_rate

__all__ = ["Listener"]

#: A narrow search: at low epsilon, where posteriors are flat, a wide one takes as long as the speech.
_SEARCH = SearchKnobs(beam=8.0, max_active=2000)

Posteriors = NDArray[np.float32]


class Listener:
    """Models from public training speakers, with scales of the posteriors.

    Args:
        training: Training utterances, with transcripts where words are decoded.
        labels: (K,) phone index per frame of every training utterance.
        phones: The phone set.
        tuning: Posteriors of a few of the training utterances, released as the tested ones are.
    """

    def __init__(
        self,
        training: Sequence[Utterance],
        labels: Mapping[str, NDArray[np.int64]],
        phones: Sequence[str],
        tuning: Mapping[str, Posteriors],
    ) -> None:
        self._training, self._labels, self._phones, self._tuning = training, labels, phones, tuning

    def phones_heard(
        self, posteriors: Mapping[str, Posteriors]
    ) -> tuple[dict[str, NDArray[np.int64]], Mapping[str, float]]:
        """Return the likeliest phone of each frame given the whole utterance, and the scales it took."""
        model = phone_model([self._labels[u.id] for u in self._training], self._phones)
        scales = tuned_scales([(scores, self._labels[item]) for item, scores in self._tuning.items()], model)
        decoded = {
            item: np.asarray(smoothed_posteriors(log_posteriors, model, **scales).argmax(axis=1), np.int64)
            for item, log_posteriors in posteriors.items()
        }
        return decoded, scales

    def word_rate(
        self, posteriors: Mapping[str, Posteriors], tested: Sequence[Utterance], *, replicates: int, seed: int
    ) -> dict[str, Any]:
        """Return word errors of the tested utterances, decoded with lexicon and n-gram.

        Neither the language model nor the acoustic scale has seen a transcript of a tested speaker.
        """
        graph = word_graph(self._training, tested, self._labels, phones=self._phones)
        texts = {u.id: u.text for u in self._training}
        tuning = {item: (scores, texts[item]) for item, scores in self._tuning.items()}
        knobs = tuned(tuning, graph, _SEARCH)
        edits = {u.id: word_errors(u.text, decode_words(posteriors[u.id], graph, knobs)) for u in tested}
        rate = error_rate(edits, {u.id: u.speaker for u in tested}, replicates=replicates, seed=seed)
        return {**rate.to_json(), "acoustic_scale": knobs.acoustic_scale, "vocabulary": len(graph.words)}
