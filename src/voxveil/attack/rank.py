"""The pooled, utterance-disjoint rank protocol.

Every private speaker has one reference, made from all utterances any of their enrolments uses.
Inputs are other utterances of the same speakers. Each input is scored against all N references,
both sexes pooled, and the rank of its own speaker says how well it is identified.

Where enrolment and trial utterances may have been treated differently (somebody else's anonymized
speech), references are drawn from both: otherwise a voice that is merely changed in trials, the
same way each time, would look like one that is hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import Embeddings
from voxveil.attack.backends import Backend, Cosine
from voxveil.runtime.arrays import read_arrays, write_arrays
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["RankProtocol", "RankScores", "draw_rank_protocol", "score_ranks"]


@dataclass(frozen=True)
class RankProtocol:
    """Inputs and references of the rank protocol.

    Attributes:
        references: Enrolment utterances of each speaker, speakers sorted.
        inputs: (utterance, speaker) of each input, sorted by speaker, then utterance.
    """

    references: dict[str, tuple[str, ...]]
    inputs: tuple[tuple[str, str], ...]

    @property
    def utterances(self) -> list[str]:
        """Every utterance that must be embedded."""
        enrolled = [item for items in self.references.values() for item in items]
        return [*enrolled, *(item for item, _ in self.inputs)]


@dataclass(frozen=True)
class RankScores:
    """Scores of the rank protocol.

    Attributes:
        scores: (I, N) float64; higher = more alike.
        inputs: (I,) utterance of each row.
        input_labels: (I,) speaker of each row.
        reference_labels: (N,) speaker of each column, all different.
    """

    scores: NDArray[np.float64]
    inputs: NDArray[np.str_]
    input_labels: NDArray[np.str_]
    reference_labels: NDArray[np.str_]

    def save(self, path: Path) -> None:
        """Write ``rank.npz``; text labels, no objects."""
        write_arrays(path, vars(self))

    @classmethod
    def load(cls, path: Path) -> RankScores:
        """Read the file of :meth:`save`."""
        return cls(**read_arrays(path, cls.__dataclass_fields__))


def draw_rank_protocol(
    enrolments: Mapping[str, Sequence[str]],
    speaker_of: Mapping[str, str],
    per_speaker: int,
    seed: int,
    *,
    pooled: bool = False,
) -> RankProtocol:
    """Draw the inputs of every enrolled speaker.

    Args:
        enrolments: Utterances of each enrolment.
        speaker_of: Speaker of every utterance of the private split.
        per_speaker: Inputs of each speaker; all that are left where a speaker has fewer.
        seed: The run's seed; the draw of a speaker depends on nothing else but the speaker.
        pooled: References are as many utterances as are enrolled, drawn from enrolled and other ones alike.

    Raises:
        InputError: An enrolment mixes speakers, fewer than 2 speakers are enrolled, or a speaker has
            no utterance besides the enrolled ones.
    """
    enrolled: dict[str, set[str]] = {}
    for name, items in enrolments.items():
        speakers = {speaker_of[item] for item in items}
        if len(speakers) != 1:
            raise InputError(f"enrolment {name}: its utterances are of {len(speakers)} speakers, allowed: 1")
        enrolled.setdefault(speakers.pop(), set()).update(items)
    if len(enrolled) < 2:
        raise InputError(f"{len(enrolled)} enrolled speaker: ranks need at least 2")
    if pooled:
        enrolled = {
            speaker: _pooled(speaker, len(enrolled[speaker]), speaker_of, seed) for speaker in enrolled
        }
    left: dict[str, list[str]] = {speaker: [] for speaker in enrolled}
    for item in sorted(speaker_of):
        speaker = speaker_of[item]
        if speaker in enrolled and item not in enrolled[speaker]:
            left[speaker].append(item)
    inputs: list[tuple[str, str]] = []
    for speaker in sorted(enrolled):
        items = left[speaker]
        if not items:
            raise InputError(
                f"speaker {speaker}: no utterance besides the enrolled ones; "
                "lower prepare.enrolment_utterances"
            )
        rng = stream(seed, "score", "rank", speaker)
        chosen = rng.choice(len(items), min(per_speaker, len(items)), replace=False)
        inputs += [(items[i], speaker) for i in sorted(chosen.tolist())]
    return RankProtocol({s: tuple(sorted(enrolled[s])) for s in sorted(enrolled)}, tuple(inputs))


def _pooled(speaker: str, count: int, speaker_of: Mapping[str, str], seed: int) -> set[str]:
    items = sorted(item for item, owner in speaker_of.items() if owner == speaker)
    # At least one utterance must be left to be tested.
    count = min(count, max(1, len(items) - 1))
    chosen = stream(seed, "score", "references", speaker).permutation(len(items))[:count]
    return {items[index] for index in chosen}


def score_ranks(embeddings: Embeddings, protocol: RankProtocol, backend: Backend | None = None) -> RankScores:
    """Score every input against every reference; by cosine where no back end is given."""
    references = [np.stack([embeddings[item] for item in items]) for items in protocol.references.values()]
    inputs = np.stack([embeddings[item] for item, _ in protocol.inputs])
    return RankScores(
        (backend or Cosine()).matrix(inputs, references),
        np.array([item for item, _ in protocol.inputs]),
        np.array([speaker for _, speaker in protocol.inputs]),
        np.array(list(protocol.references)),
    )
