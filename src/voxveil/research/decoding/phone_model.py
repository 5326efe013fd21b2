"""The phone language model with durations, used to post-process released content.

A phone trigram and the phones' durations, counted on public alignments, stand over the frame
posteriors. A state is (phone before, phone, frames so far): a phone lasts at least
:data:`MIN_FRAMES` frames and then goes on with its own probability. Only Released posteriors go in, so
nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.errors import InputError
from voxveil.utility.language.estimation import kneser_ney
from voxveil.utility.language.ngrams import BEGIN

__all__ = [
    "MIN_FRAMES",
    "PhoneModel",
    "decode_phones",
    "frame_scores",
    "frames_right",
    "log_shares",
    "phone_model",
]

#: Shortest phone in frames: three states of the aligner's model, one frame each.
MIN_FRAMES = 3

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PhoneModel:
    """A phone trigram with durations.

    Attributes:
        phones: The P labels; the posteriors' columns.
        log_next: (P + 1, P, P) log p(c | a, b) of the next phone; the last a stands for the beginning.
        log_stay: (P,) log-probability that a phone of at least ``MIN_FRAMES`` frames goes on.
        log_priors: (P,) log share of the frames.
    """

    phones: tuple[str, ...]
    log_next: Floats
    log_stay: Floats
    log_priors: Floats

    def save(self, path: Path) -> None:
        """Write an ``.npz``."""
        write_arrays(
            path,
            {
                "phones": np.array(self.phones),
                "log_next": self.log_next,
                "log_stay": self.log_stay,
                "log_priors": self.log_priors,
            },
        )

    @staticmethod
    def load(path: Path) -> PhoneModel:
        """Read the file of :meth:`save`.

        Raises:
            InputError: Not such a file.
        """
        found = read_arrays(path, ("phones", "log_next", "log_stay", "log_priors"))
        count = len(found["phones"])
        shapes = tuple(found[name].shape for name in ("log_next", "log_stay", "log_priors"))
        if shapes != ((count + 1, count, count), (count,), (count,)):
            raise InputError(f"{path}: not a phone model of {count} phones")
        phones = tuple(str(phone) for phone in found["phones"])
        return PhoneModel(phones, found["log_next"], found["log_stay"], found["log_priors"])


def phone_model(
    labels: Sequence[NDArray[np.integer[Any]]], phones: Sequence[str], order: int = 3
) -> PhoneModel:
    """Count a phone model on public alignments.

    Args:
        labels: (K,) phone indices per frame, by utterance.
        phones: The P labels.
        order: 1 to 3: how far the model looks back, itself included.

    Raises:
        InputError: No frame.
    """
    if not sum(len(one) for one in labels):
        raise InputError("a phone model needs at least one labelled frame")
    runs = [_runs(np.asarray(one)) for one in labels if len(one)]
    model = kneser_ney([[phones[i] for i in which] for which, _ in runs], phones, order)
    columns = np.array([model.words.index(phone) for phone in phones])
    before = np.array([*columns, model.words.index(BEGIN)])
    grid = np.stack(np.meshgrid(before, columns, columns, indexing="ij"), axis=-1).reshape(-1, 3)
    count = len(phones)
    log_next = model.log_prob(grid).reshape(count + 1, count, count)
    # A phone that follows itself is one longer phone; where an utterance ends is known.
    log_next[:, np.arange(count), np.arange(count)] = -np.inf
    log_next -= np.logaddexp.reduce(log_next, axis=2, keepdims=True)
    which = np.concatenate([one for one, _ in runs])
    lengths = np.concatenate([one for _, one in runs])
    beyond = np.maximum(lengths - MIN_FRAMES, 0)
    # One more run of one more frame each, so that no phone has a probability of 0 or 1.
    extra = (np.bincount(which, beyond, count) + 1.0) / (np.bincount(which, minlength=count) + 1.0)
    log_stay = np.log(extra / (1.0 + extra))
    return PhoneModel(tuple(phones), log_next, log_stay, log_shares(labels, count))


def log_shares(labels: Sequence[NDArray[np.integer[Any]]], count: int) -> Floats:
    """Return the (count,) log share of the frames of each label, each counted once more than it is seen."""
    frames = sum((np.bincount(one, minlength=count) for one in labels), np.ones(count))
    shares: Floats = np.log(frames / frames.sum())
    return shares


def frame_scores(
    log_posteriors: NDArray[Any], model: PhoneModel, acoustic_scale: float, prior_scale: float
) -> Floats:
    """Return (K, P) scaled log-likelihoods: ``acoustic_scale * (log posterior - prior_scale * log prior)``.

    Raises:
        InputError: Another shape, NaN, or a scale that is not positive.
    """
    value = np.asarray(log_posteriors, np.float64)
    if value.ndim != 2 or value.shape[1] != len(model.phones) or np.isnan(value).any():
        raise InputError(f"posteriors of shape {value.shape} for {len(model.phones)} phones, or NaN")
    if acoustic_scale <= 0 or prior_scale < 0:
        raise InputError(f"scales must be positive, got {acoustic_scale:g} and {prior_scale:g}")
    return np.asarray(acoustic_scale * (np.maximum(value, -70.0) - prior_scale * model.log_priors))


def decode_phones(
    log_posteriors: NDArray[Any],
    model: PhoneModel,
    *,
    acoustic_scale: float = 0.5,
    prior_scale: float = 0.5,
) -> NDArray[np.int64]:
    """Return the phone of each frame on the best path through the phone model.

    Args:
        log_posteriors: (K, P) natural logarithms of Released content, columns as ``model.phones``.
        model: Counted on public alignments.
        acoustic_scale: Weight of a frame against the model: below 1, since neighbouring frames agree.
        prior_scale: Weight of the log prior that is taken off.

    Returns:
        (K,) indices; every phone lasts at least ``MIN_FRAMES`` frames, except at the ends.
    """
    scores = frame_scores(log_posteriors, model, acoustic_scale, prior_scale)
    frames, count = scores.shape
    if not frames:
        return np.zeros(0, np.int64)
    log_leave = np.log(-np.expm1(model.log_stay))
    follow = model.log_next + log_leave[:, None]
    # An utterance may begin anywhere within its first phone.
    total = np.full((count + 1, count, MIN_FRAMES), -np.inf)
    total[count] = (model.log_priors + scores[0])[:, None]
    entered = np.empty((frames, count, count), np.uint8)
    stayed = np.empty((frames, count + 1, count), bool)
    for frame in range(1, frames):
        ready = total[:, :, -2]
        long = total[:, :, -1] + model.log_stay
        arrivals = total[:, :, -1, None] + follow
        best = arrivals.argmax(axis=0)
        entered[frame], stayed[frame] = best, long >= ready
        moved = np.full_like(total, -np.inf)
        moved[:count, :, 0] = np.take_along_axis(arrivals, best[None], axis=0)[0]
        moved[:, :, 1:-1] = total[:, :, :-2]
        moved[:, :, -1] = np.maximum(ready, long)
        total = moved + scores[frame][:, None]
    before, phone, age = (int(i) for i in np.unravel_index(total.argmax(), total.shape))
    path = np.empty(frames, np.int64)
    path[-1] = phone
    for frame in range(frames - 1, 0, -1):
        if age == 0:
            before, phone, age = int(entered[frame, before, phone]), before, MIN_FRAMES - 1
        elif not (age == MIN_FRAMES - 1 and stayed[frame, before, phone]):
            age -= 1
        path[frame - 1] = phone
    return path


def frames_right(guesses: Sequence[NDArray[np.int64]], labels: Sequence[NDArray[np.integer[Any]]]) -> float:
    """Return the share of frames whose phone is right, over all utterances.

    Args:
        guesses: (K,) phone indices by utterance.
        labels: The truth, alike.
    """
    if [len(one) for one in guesses] != [len(one) for one in labels] or not labels:
        raise InputError("frame accuracy needs a guess for every frame of at least one utterance")
    return float((np.concatenate(guesses) == np.concatenate(labels)).mean())


def _runs(labels: NDArray[np.integer[Any]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the phones of one utterance in order, and the frames each lasts."""
    starts = np.flatnonzero(np.concatenate([[True], labels[1:] != labels[:-1]]))
    return labels[starts].astype(np.int64), np.diff([*starts, len(labels)])
