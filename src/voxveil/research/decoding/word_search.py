"""Beam search for words in the decoding graph, and word errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.research.decoding.graph import Graph
from voxveil.runtime.errors import InputError, MissingExtraError
from voxveil.utility.edits import Edits, count_edits, total
from voxveil.utility.transcripts import normalize_words

__all__ = ["SCALES", "SearchKnobs", "decode_words", "tuned", "word_errors"]

#: Acoustic scales that :func:`tuned` tries.
SCALES = (0.15, 0.2, 0.25, 0.35, 0.5)


@dataclass(frozen=True)
class SearchKnobs:
    """Parameters of the search.

    Attributes:
        acoustic_scale: Weight of a frame's log-likelihood against the language model. Neighbouring
            frames say nearly the same, so it is below 1; noisier posteriors want another.
        prior_scale: Weight of the log prior that is taken off a log posterior.
        beam: Paths worse than the best by more than this (nat) are dropped.
        max_active: Most paths that go on from one frame to the next.
    """

    acoustic_scale: float = 0.2
    prior_scale: float = 0.8
    beam: float = 12.0
    max_active: int = 4000


def decode_words(log_posteriors: NDArray[Any], graph: Graph, knobs: SearchKnobs | None = None) -> list[str]:
    """Return the words of the best path; if none within the beam ends, those of the best unfinished one.

    Args:
        log_posteriors: (K, P) natural logarithms, columns as the graph's phones; -inf is allowed.
        graph: As :func:`voxveil.research.decoding.graph.build_graph` makes it.
        knobs: Scales and beam.

    Raises:
        InputError: Another shape, or NaN.
        MissingExtraError: kaldi-decoder is not installed.
    """
    try:
        import kaldi_decoder
        import kaldifst
    except ImportError:
        raise MissingExtraError("kaldi-decoder", "research") from None
    knobs = knobs or SearchKnobs()
    value = np.asarray(log_posteriors, np.float64)
    if value.ndim != 2 or value.shape[1] != len(graph.phones) or np.isnan(value).any():
        raise InputError(f"posteriors of shape {value.shape} for {len(graph.phones)} phones, or NaN")
    if not len(value):
        return []
    # A floor keeps sums finite; no sensible path depends on how impossible a phone is.
    scores = knobs.acoustic_scale * (np.maximum(value, -70.0) - knobs.prior_scale * graph.log_priors)
    options = kaldi_decoder.FasterDecoderOptions(beam=knobs.beam, max_active=knobs.max_active)
    decoder = kaldi_decoder.FasterDecoder(graph.fst, options)
    decoder.decode(kaldi_decoder.DecodableCtc(np.ascontiguousarray(scores, np.float32)))
    found, path = decoder.get_best_path()
    if not found:
        return []
    labels = kaldifst.get_linear_symbol_sequence(path)[2]
    return [graph.words[label - 1] for label in labels]


def word_errors(transcript: str, decoded: Sequence[str]) -> Edits:
    """Return the errors of decoded words against a transcript, after normalization of both."""
    return count_edits(normalize_words(transcript), normalize_words(" ".join(decoded)))


def tuned(
    utterances: Mapping[str, tuple[NDArray[Any], str]], graph: Graph, knobs: SearchKnobs | None = None
) -> SearchKnobs:
    """Return the knobs with the acoustic scale of the fewest word errors.

    Args:
        utterances: (log posteriors, transcript) of utterances of training speakers: never of the test.
        graph: The graph.
        knobs: The others.
    """
    if not utterances:
        raise InputError("tuning the acoustic scale needs at least one utterance")
    tried = [replace(knobs or SearchKnobs(), acoustic_scale=scale) for scale in SCALES]
    errors = [
        total(
            word_errors(text, decode_words(scores, graph, one)) for scores, text in utterances.values()
        ).errors
        for one in tried
    ]
    return tried[int(np.argmin(errors))]
