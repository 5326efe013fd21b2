"""Automatic speaker verification as an attack: train, embed, score.

Every attacker turns an utterance into a unit-norm vector, an enrolment into the mean of its
vectors, and a pair into a cosine. The scenario is decided by what it is trained on and what is
enrolled, never by the attacker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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

#: Unit-norm vector of each utterance.
Embeddings = Mapping[str, Vector]


class Attacker(Protocol):
    """What an adversary can do once trained."""

    @property
    def name(self) -> str:
        """Its name in paths and tables, e.g. ``ecapa``."""

    def embed(self, audio: NDArray[np.float32], name: str) -> Vector:
        """Return the (E,) unit-norm vector of a 16 kHz clip called ``name``."""


@dataclass(frozen=True)
class Conditions:
    """What a row of results must say about the attack it comes from.

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
    total = np.sum([embeddings[item].astype(np.float64) for item in items], axis=0)
    unit: NDArray[np.float64] = total / max(float(np.linalg.norm(total)), 1e-12)
    return unit


def cosine_matrix(
    inputs: Sequence[NDArray[np.floating]], references: Sequence[NDArray[np.floating]]
) -> NDArray[np.float64]:
    """Return the (inputs, references) cosines of unit-norm vectors."""
    return np.stack(inputs).astype(np.float64) @ np.stack(references).astype(np.float64).T


def score_trials(
    embeddings: Embeddings, enrolments: Mapping[str, Sequence[str]], pairs: Sequence[tuple[str, str]]
) -> NDArray[np.float64]:
    """Score trials.

    Args:
        embeddings: Of every utterance that is enrolled or tested.
        enrolments: Utterances of each enrolment.
        pairs: (enrolment, utterance) of each trial.

    Returns:
        (trials,) cosines in [-1, 1]; higher = more alike.
    """
    models = {name: enrol(embeddings, items) for name, items in enrolments.items()}
    return np.array([float(models[e] @ embeddings[u].astype(np.float64)) for e, u in pairs])
