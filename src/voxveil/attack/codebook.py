"""Vector quantization: a k-means codebook."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["fit_codebook", "nearest"]

FloatArray = NDArray[np.float64]

_ROUNDS = 20
_BLOCK = 8192


def fit_codebook(frames: FloatArray, size: int, seed: int, *, at_most: int) -> FloatArray:
    """Return the (size, D) centres of k-means (Lloyd) over frames.

    Starting centres are drawn as in k-means++; a centre that loses all its frames stays where it is.

    Args:
        frames: (F, D).
        size: Number of codes.
        seed: The run's seed.
        at_most: Frames that are used; drawn without replacement where there are more.

    Raises:
        InputError: There are fewer frames than codes.
    """
    if len(frames) < size:
        raise InputError(f"a codebook of {size} codes needs at least as many frames, got {len(frames)}")
    rng = stream(seed, "attack", "codebook")
    rows = frames[rng.choice(len(frames), at_most, replace=False)] if len(frames) > at_most else frames
    centres = rows[[int(rng.integers(len(rows)))]]
    distance = ((rows - centres[0]) ** 2).sum(axis=1)
    for _ in range(1, size):
        total = float(distance.sum())
        chosen = rng.choice(len(rows), p=distance / total) if total > 0 else int(rng.integers(len(rows)))
        centres = np.concatenate([centres, rows[[chosen]]])
        distance = np.minimum(distance, ((rows - rows[chosen]) ** 2).sum(axis=1))
    for _ in range(_ROUNDS):
        codes = nearest(rows, centres)
        counts = np.bincount(codes, minlength=size)
        sums = np.stack([np.bincount(codes, rows[:, d], size) for d in range(rows.shape[1])], axis=1)
        moved = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        if np.allclose(moved, centres, atol=1e-6):
            break
        centres = moved
    return centres


def nearest(frames: FloatArray, codes: FloatArray) -> NDArray[np.int64]:
    """Return the (F,) index of the nearest code of each (F, D) frame."""
    squares = (codes**2).sum(axis=1)
    blocks = [
        (squares - 2.0 * frames[start : start + _BLOCK] @ codes.T).argmin(axis=1)
        for start in range(0, len(frames), _BLOCK)
    ]
    return np.concatenate(blocks)
