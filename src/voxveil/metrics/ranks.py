"""Similarity ranks: the rank of an input's own reference among all N references, best first.

Ties spread: an input whose own score is tied with t others puts 1/(t+1) on each of the t+1 tied
ranks, so constant scores give the uniform histogram. The two ends are kept beside it: the
optimistic rank (a tie is a win for the attacker) and the strict one (a tie is a loss).

Cosine ranks are computed from embeddings in blocks, without the matrix of all pairs: own score and
comparison come from the same product, so that equal numbers stay equal, and memory is one block, whatever
the number of inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.metrics.data import FloatArray, IntArray, RankSet
from voxveil.runtime.errors import InputError

__all__ = ["Ranks", "permuted_histograms", "rank_embeddings", "rank_inputs", "speaker_histograms"]

_BLOCK_ENTRIES = 4_000_000


@dataclass(frozen=True)
class Ranks:
    """Ranks of the inputs' own references.

    Attributes:
        best: Optimistic rank, 1 + references strictly higher, shape ``(n_inputs,)``.
        worst: Strict rank, references at least as high, shape ``(n_inputs,)``.
        speaker_index: Index of each input's speaker, shape ``(n_inputs,)``.
        n_references: N.
    """

    best: IntArray
    worst: IntArray
    speaker_index: IntArray
    n_references: int

    @property
    def n_tied(self) -> int:
        """Inputs whose own score is tied with another reference's."""
        return int(np.count_nonzero(self.best != self.worst))

    def histogram(self) -> FloatArray:
        """Return the tie-spread rank histogram, index 0 is rank 1, sums to n_inputs."""
        result: FloatArray = _spread(self.best, self.worst, np.zeros_like(self.best), 1, self.n_references)[0]
        return result

    def identification_ends(self) -> tuple[float, float]:
        """Return (strict, optimistic) identification rates as fractions."""
        return float(np.mean(self.worst == 1)), float(np.mean(self.best == 1))


def rank_inputs(ranks: RankSet) -> Ranks:
    """Rank every input's own reference, in blocks of rows."""
    return _rank_rows(lambda rows: ranks.scores[rows], ranks.speaker_index, ranks.n_references)


def _rank_rows(
    scores_of: Callable[[slice], NDArray[np.floating[Any]]], speaker_index: IntArray, n_references: int
) -> Ranks:
    """Rank every input's own reference by the scores of some rows at a time, shape ``(rows, N)``."""
    best, worst = np.empty(speaker_index.size, np.int64), np.empty(speaker_index.size, np.int64)
    step = max(1, _BLOCK_ENTRIES // n_references)
    for start in range(0, speaker_index.size, step):
        rows = slice(start, start + step)
        scores = scores_of(rows)
        true = scores[np.arange(scores.shape[0]), speaker_index[rows]][:, None]
        best[rows] = 1 + np.count_nonzero(scores > true, axis=1)
        worst[rows] = np.count_nonzero(scores >= true, axis=1)
    return Ranks(best, worst, speaker_index, n_references)


def speaker_histograms(ranks: Ranks) -> tuple[IntArray, FloatArray]:
    """Return the speakers that have inputs and the tie-spread histogram of each.

    Returns:
        Speaker indices, shape ``(S,)``, and histograms, shape ``(S, N)``.
    """
    speakers, row = np.unique(ranks.speaker_index, return_inverse=True)
    return speakers, _spread(ranks.best, ranks.worst, row, speakers.size, ranks.n_references)


def permuted_histograms(ranks: RankSet, permutations: IntArray) -> FloatArray:
    """Return the histogram that each relabelling of the references gives.

    Args:
        ranks: The scores.
        permutations: Shape ``(R, N)``: input speaker s is held to be reference ``p[s]``.

    Returns:
        Tie-spread histograms, shape ``(R, N)``.
    """
    n, n_permutations = ranks.n_references, permutations.shape[0]
    result = np.zeros((n_permutations, n))
    step = max(1, _BLOCK_ENTRIES // n)
    for start in range(0, ranks.n_inputs, step):
        block = ranks.scores[start : start + step]
        speaker_index = ranks.speaker_index[start : start + step]
        best, worst = _all_ranks(block)
        rows = np.arange(block.shape[0])
        for r in range(n_permutations):
            at = permutations[r, speaker_index]
            result[r] += _spread(best[rows, at], worst[rows, at], np.zeros_like(speaker_index), 1, n)[0]
    return result


def _all_ranks(block: NDArray[np.floating[Any]]) -> tuple[IntArray, IntArray]:
    """Return the optimistic and strict rank of every column in every row."""
    n_rows, n = block.shape
    order = np.argsort(-block, axis=1, kind="stable")
    ordered = np.take_along_axis(block, order, axis=1)
    new = np.ones((n_rows, n), dtype=np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    index = np.arange(n)
    first = np.maximum.accumulate(np.where(new, index, 0), axis=1) + 1
    ends = np.ones((n_rows, n), dtype=np.bool_)
    ends[:, :-1] = new[:, 1:]
    last = np.minimum.accumulate(np.where(ends, index, n)[:, ::-1], axis=1)[:, ::-1] + 1
    best, worst = np.empty((n_rows, n), dtype=np.int64), np.empty((n_rows, n), dtype=np.int64)
    np.put_along_axis(best, order, first, axis=1)
    np.put_along_axis(worst, order, last, axis=1)
    return best, worst


def _spread(best: IntArray, worst: IntArray, row: IntArray, n_rows: int, n: int) -> FloatArray:
    """Return histograms in which each input spreads weight 1 over ranks best..worst."""
    plain = best == worst
    flat = row[plain] * n + best[plain] - 1
    result: FloatArray = np.bincount(flat, minlength=n_rows * n).astype(np.float64).reshape(n_rows, n)
    if not plain.all():
        tied = ~plain
        share = 1.0 / (worst[tied] - best[tied] + 1)
        step = np.zeros((n_rows, n + 1))
        np.add.at(step, (row[tied], best[tied] - 1), share)
        np.add.at(step, (row[tied], worst[tied]), -share)
        spread = np.cumsum(step, axis=1)[:, :n]
        result += np.where(spread > 1e-9 / n, spread, 0.0)
    return result


def rank_embeddings(
    inputs: Any, references: Any, input_labels: Sequence[Any], reference_labels: Sequence[Any]
) -> Ranks:
    """Rank every input's own reference by cosine.

    Args:
        inputs: Embeddings, shape ``(n_inputs, d)``; float32 is scored in float32, all else in float64.
        references: One embedding per speaker, shape ``(N, d)``, N >= 2.
        input_labels: Speaker of each input.
        reference_labels: Speaker of each reference, all different.

    Raises:
        InputError: If shapes or labels do not fit, or an embedding is zero or not finite.
    """
    x, y = _unit_rows(inputs, "inputs"), _unit_rows(references, "references")
    if x.shape[1] != y.shape[1]:
        raise InputError(f"inputs have {x.shape[1]} dimensions and references {y.shape[1]}; they must agree")
    if len(input_labels) != x.shape[0] or len(reference_labels) != y.shape[0] or y.shape[0] < 2:
        raise InputError(
            f"got {x.shape[0]} inputs with {len(input_labels)} labels and {y.shape[0]} references with "
            f"{len(reference_labels)} labels; each needs one label, and ranks need 2 references"
        )
    position = {label: j for j, label in enumerate(reference_labels)}
    if len(position) != y.shape[0]:
        raise InputError("a reference label stands twice; each speaker has one reference")
    strangers = sorted({str(label) for label in input_labels if label not in position})
    if strangers:
        raise InputError(f"speaker {strangers[0]} of an input is not among the references")
    speaker_index = np.array([position[label] for label in input_labels], dtype=np.int64)
    return _rank_rows(lambda rows: x[rows] @ y.T, speaker_index, y.shape[0])


def _unit_rows(embeddings: Any, name: str) -> NDArray[np.floating[Any]]:
    array = np.asarray(embeddings)
    if array.dtype != np.float32:
        array = array.astype(np.float64)
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{name}: got an array of shape {array.shape}; it must be (n, dimensions)")
    norms = np.linalg.norm(array, axis=1, keepdims=True)
    bad = ~(np.isfinite(norms[:, 0]) & (norms[:, 0] > 0))
    if bad.any():
        raise InputError(f"{name}[{int(np.argmax(bad))}] is zero or not finite; it has no direction")
    unit: NDArray[np.floating[Any]] = array / norms
    return unit
