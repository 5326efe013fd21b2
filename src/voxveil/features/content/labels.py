"""Frame labels: phones, or tied triphone states that each belong to one phone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.corpus.phones import SILENCE
from voxveil.corpus.split import Phone, Split, Utterance
from voxveil.runtime.errors import IncompleteInputError, InputError

__all__ = ["Targets", "frame_labels", "phone_targets", "require_phones", "state_targets"]


@dataclass(frozen=True)
class Targets:
    """Classes and frame labels of a classifier.

    Attributes:
        class_phones: Index of the phone of each class.
        labels: (K,) class indices by utterance.
    """

    class_phones: tuple[int, ...]
    labels: Mapping[str, NDArray[np.int64]]


def phone_targets(split: Split, utterances: Sequence[Utterance], phones: Sequence[str]) -> Targets:
    """Return targets with one class per phone."""
    labels = {u.id: frame_labels(split.phones(u.id), u.frames, phones, u.id) for u in utterances}
    return Targets(tuple(range(len(phones))), labels)


def state_targets(split: Split, utterances: Sequence[Utterance], phones: Targets) -> Targets:
    """Return targets with one class per tied triphone state that occurs.

    A state belongs to the phone that most of its frames carry. States that occur nowhere in these
    utterances are no classes.

    Args:
        split: Where the states lie.
        utterances: What to train on.
        phones: The phones of at least these utterances (:func:`phone_targets`).
    """
    states = {u.id: split.states(u.id).astype(np.int64) for u in utterances}
    known, places = np.unique(np.concatenate(list(states.values())), return_inverse=True)
    votes = np.zeros((len(known), len(phones.class_phones)), np.int64)
    np.add.at(votes, (places, np.concatenate([phones.labels[name] for name in states])), 1)
    labels = {name: np.searchsorted(known, values).astype(np.int64) for name, values in states.items()}
    return Targets(tuple(int(phone) for phone in votes.argmax(axis=1)), labels)


def frame_labels(
    phones: Sequence[Phone], frames: int, phone_set: Sequence[str], name: str
) -> NDArray[np.int64]:
    """Return the index of the phone at the centre of each frame.

    Args:
        phones: Of one utterance, in order of time.
        frames: K; frame k is centred at k * 10 ms.
        phone_set: All phones; a label's index is its place here.
        name: Utterance id, for errors.

    Returns:
        (K,) int64; silence where no phone is.

    Raises:
        InputError: A label outside the set, or phones out of order.
    """
    index = {label: i for i, label in enumerate(phone_set)}
    times = np.arange(frames) * (HOP / SAMPLE_RATE)
    labels = np.full(frames, index[SILENCE], dtype=np.int64)
    last = 0.0
    for phone in phones:
        if phone.label not in index:
            raise InputError(f"utterance {name}: phone {phone.label!r} is not in the phone set")
        if phone.start < last:
            raise InputError(f"utterance {name}: phone at {phone.start:g} s stands after one at {last:g} s")
        last = phone.start
        first, end = np.searchsorted(times, [phone.start - 1e-6, phone.start + phone.seconds - 1e-6])
        labels[first:end] = index[phone.label]
    return labels


def require_phones(split: Split, purpose: str) -> None:
    """Raise an error, before any work, if a split has no phone timing.

    Args:
        split: What is about to be used.
        purpose: What needs the phones, e.g. ``train-content``.

    Raises:
        IncompleteInputError: The split has no ``phones.ctm``.
    """
    path = split.folder / "phones.ctm"
    if not path.is_file():
        raise IncompleteInputError(
            f"{path}: this corpus has no phone timing, and {purpose} needs it"
            " (prepare.alignment: pocketsphinx makes it from the transcripts)"
        )
