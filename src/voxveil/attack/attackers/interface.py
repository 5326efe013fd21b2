"""The interface of all attackers: train, embed, score.

An attacker turns an utterance into a vector, and its back end compares vectors with enrolments. The
scenario is decided by what it was trained on and what is enrolled, never by the attacker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.backends import Backend, Cosine, unit_mean

__all__ = [
    "Attacker",
    "Conditions",
    "Embeddings",
    "cosine_matrix",
    "embed_utterances",
    "enrol",
    "score_trials",
]

Vector = NDArray[np.float32]

#: Vector of each utterance.
Embeddings = Mapping[str, Vector]


class Attacker(Protocol):
    """A trained attacker: it embeds clips, and a back end compares the embeddings."""

    @property
    def name(self) -> str:
        """Its name in paths and tables, e.g. ``ecapa``."""

    @property
    def speakers(self) -> Sequence[str]:
        """Ids of the public speakers it was trained on, sorted."""

    @property
    def training(self) -> str:
        """State of the speech it was trained on, ``original`` or ``anonymized``."""

    @property
    def backend(self) -> Backend:
        """Scoring back end of its embeddings."""

    def embed(self, audio: NDArray[np.float32], name: str) -> Vector:
        """Return the (E,) vector of a 16 kHz clip called ``name``."""

    def save(self, folder: Path) -> None:
        """Write it into an existing folder."""


@dataclass(frozen=True)
class Conditions:
    """Conditions of an attack, stated in every row of its results.

    Attributes:
        attacker: E.g. ``ecapa``.
        scenario: E.g. ``semi_informed``.
        enrolment: State of enrolment speech, ``original`` or ``anonymized``.
        trial: State of trial speech.
        training: State of the speech the attacker was trained on.
    """

    attacker: str
    scenario: str
    enrolment: str
    trial: str
    training: str


def embed_utterances(
    attacker: Attacker,
    items: Sequence[str],
    read: Callable[[str], NDArray[np.float32]],
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Vector]:
    """Embed utterances one at a time.

    Args:
        attacker: Who embeds.
        items: Utterance ids; one named twice is embedded once.
        read: Returns the audio of an utterance.
        progress: Told how many are done.
    """
    vectors: dict[str, Vector] = {}
    for done, item in enumerate(dict.fromkeys(items), 1):
        vectors[item] = attacker.embed(read(item), f"utterance {item}")
        progress(done)
    return vectors


def enrol(embeddings: Embeddings, items: Iterable[str]) -> NDArray[np.float64]:
    """Return the (E,) unit-norm mean of the embeddings of an enrolment's utterances."""
    return unit_mean(_stacked(embeddings, items))


def cosine_matrix(
    inputs: Sequence[NDArray[np.floating]], references: Sequence[NDArray[np.floating]]
) -> NDArray[np.float64]:
    """Return the (inputs, references) cosines of unit-norm vectors."""
    return np.stack(inputs).astype(np.float64) @ np.stack(references).astype(np.float64).T


def score_trials(
    embeddings: Embeddings,
    enrolments: Mapping[str, Sequence[str]],
    pairs: Sequence[tuple[str, str]],
    backend: Backend | None = None,
) -> NDArray[np.float64]:
    """Score trials.

    Args:
        embeddings: Of every utterance that is enrolled or tested.
        enrolments: Utterances of each enrolment.
        pairs: (enrolment, utterance) of each trial.
        backend: How vectors are compared; cosine where None.

    Returns:
        (trials,) scores; higher = more alike.
    """
    compare = backend or Cosine()
    places: dict[str, list[int]] = {}
    for trial, (enrolment, _) in enumerate(pairs):
        places.setdefault(enrolment, []).append(trial)
    scores = np.empty(len(pairs))
    for enrolment, where in places.items():
        inputs = _stacked(embeddings, (pairs[trial][1] for trial in where))
        scores[where] = compare.matrix(inputs, [_stacked(embeddings, enrolments[enrolment])])[:, 0]
    return scores


def _stacked(embeddings: Embeddings, items: Iterable[str]) -> NDArray[np.float64]:
    return np.stack([embeddings[item].astype(np.float64) for item in items])
