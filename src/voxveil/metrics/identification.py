"""Cosine ranks computed from embeddings in blocks, without the matrix of all pairs.

Cosine scores of a block of inputs against all references, own score and comparison from the same
product so that equal numbers stay equal; memory is one block, whatever the number of inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.metrics.ranks import Ranks
from voxveil.runtime.errors import InputError

__all__ = ["rank_embeddings"]

_BLOCK_ENTRIES = 4_000_000


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
    best, worst = np.empty(x.shape[0], dtype=np.int64), np.empty(x.shape[0], dtype=np.int64)
    step = max(1, _BLOCK_ENTRIES // y.shape[0])
    for start in range(0, x.shape[0], step):
        stop = start + step
        scores = x[start:stop] @ y.T
        true = scores[np.arange(scores.shape[0]), speaker_index[start:stop]][:, None]
        best[start:stop] = 1 + np.count_nonzero(scores > true, axis=1)
        worst[start:stop] = np.count_nonzero(scores >= true, axis=1)
    return Ranks(best, worst, speaker_index, y.shape[0])


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
