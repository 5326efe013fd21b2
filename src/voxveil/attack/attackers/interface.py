"""Interface of all attackers: train, embed, score.

An attacker turns an utterance into a vector, and its back end compares vectors with enrolments. The
scenario is decided by what it was trained on and what is enrolled, never by the attacker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.backends import Backend, Cosine
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Speech
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.training.loop import CurveSink

__all__ = [
    "Attacker",
    "Conditions",
    "Embeddings",
    "TrainedAttacker",
    "TrainingSetup",
    "attacker_facts",
    "embed_utterances",
    "score_trials",
    "training_clips",
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
class TrainingSetup:
    """What the training of an attacker depends on besides the speech.

    Attributes:
        params: Sizes, steps and augmentation.
        training: State of the speech, ``original`` or ``anonymized``.
        seed: Seed of this attacker.
        checkpoints: Folder to resume from and save to; it must hold nothing else.
        sink: Receives each point of the curve, where there is one.
    """

    params: TrainAttackerParams
    training: str
    seed: int
    checkpoints: Path | None = None
    sink: CurveSink | None = None


@dataclass(frozen=True)
class TrainedAttacker:
    """A trained attacker with its training curve.

    Attributes:
        attacker: Ready to embed.
        curve: Points of its loss; empty where nothing is trained step by step.
        accuracy: Training accuracy in [0, 1], where there is one.
    """

    attacker: Attacker
    curve: list[dict[str, float]] = field(default_factory=list)
    accuracy: float | None = None


@dataclass(frozen=True)
class Conditions:
    """Conditions of an attack, stated in every row of its results.

    Attributes:
        attacker: E.g. ``ecapa``.
        scenario: E.g. ``semi_informed``.
        enrolment: State of enrolment speech, ``original`` or ``anonymized``.
        trial: State of trial speech.
        training: State of the speech the attacker was trained on.
        pretrained: Architecture, digest, licence and source of its imported network; empty without one.
    """

    attacker: str
    scenario: str
    enrolment: str
    trial: str
    training: str
    pretrained: Mapping[str, str] = field(default_factory=dict, hash=False)


def embed_utterances(
    attacker: Attacker,
    items: Sequence[str],
    read: Callable[[str], NDArray[np.float32]],
    progress: Callable[[int], None] = lambda done: None,
) -> dict[str, Vector]:
    """Embed utterances one at a time.

    Args:
        attacker: The attacker.
        items: Utterance ids; one named twice is embedded once.
        read: Returns the audio of an utterance.
        progress: Receives the number of embedded utterances.

    Raises:
        InputError: All embeddings are equal.
    """
    vectors: dict[str, Vector] = {}
    for done, item in enumerate(dict.fromkeys(items), 1):
        vectors[item] = attacker.embed(read(item), f"utterance {item}")
        progress(done)
    _require_different(attacker, vectors)
    return vectors


def _require_different(attacker: Attacker, vectors: Embeddings) -> None:
    """Refuse an attacker that gives every utterance the same embedding: its scores say nothing.

    Raises:
        InputError: All embeddings are equal.
    """
    rows = list(vectors.values())
    if len(rows) > 2 and all(np.allclose(row, rows[0], rtol=0, atol=1e-7) for row in rows[1:]):
        raise InputError(
            f"attacker {attacker.name}: the embeddings of all {len(rows)} utterances are equal; an attacker"
            " that tells nothing apart gives no verdict (train it again)"
        )


def attacker_facts(attacker: Attacker) -> dict[str, Any]:
    """Return what ``model.json`` states of every attacker: its kind, training speakers and their state."""
    return {"attacker": attacker.name, "speakers": list(attacker.speakers), "training": attacker.training}


def training_clips(speech: Speech) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Yield the name and audio of each utterance, in order."""
    for utterance in speech:
        yield f"utterance {utterance.id}", speech.audio(utterance.id)


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
