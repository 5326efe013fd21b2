"""Training and test speech of U_ASR, and the interface of its recognizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.corpus.split import Split, Utterance
from voxveil.features.content.labels import require_phones
from voxveil.runtime.errors import IncompleteInputError, InputError

__all__ = ["STATES", "Cell", "Judge", "Read", "Speeches", "judged", "u_asr"]

STATES = ("original", "anonymized")

#: Reads the (samples,) audio of an utterance.
Read = Callable[[str], NDArray[np.float32]]

#: ``phones`` and ``words``, each an error rate with its U_ASR, or None where it is not decoded.
Cell = dict[str, dict[str, Any] | None]


@dataclass(frozen=True)
class Speeches:
    """Training and test speech, each original and anonymized.

    Attributes:
        training: Public speech with phone timing (for the hybrid recognizer) and transcripts (for words).
        training_anonymized: The same utterances, anonymized.
        tested: Private speech with phone timing and transcripts.
        tested_anonymized: The same utterances, released.
    """

    training: Split
    training_anonymized: Split
    tested: Split
    tested_anonymized: Split

    def read_training(self, state: str) -> Read:
        """Return the reader of training speech in one of :data:`STATES`."""
        return (self.training if state == STATES[0] else self.training_anonymized).audio

    def read_tested(self, state: str) -> Read:
        """Return the reader of test speech in one of :data:`STATES`."""
        return (self.tested if state == STATES[0] else self.tested_anonymized).audio

    def check(self, *, phones: bool) -> None:
        """Raise an error if anonymized speech has other utterances or lengths than the original.

        Args:
            phones: Phone timing is needed too.

        Raises:
            IncompleteInputError: An utterance is missing or has another number of frames.
        """
        for before, after in (
            (self.training, self.training_anonymized),
            (self.tested, self.tested_anonymized),
        ):
            if phones:
                require_phones(before, "probe utility")
            for utterance in before:
                if utterance.id not in after:
                    raise IncompleteInputError(f"utterance {utterance.id}: not in {after.folder}")
                if after[utterance.id].frames != utterance.frames:
                    raise IncompleteInputError(
                        f"utterance {utterance.id}: {after[utterance.id].frames} frames in {after.folder},"
                        f" {utterance.frames} in {before.folder}; phone timing does not fit"
                    )


class Judge(Protocol):
    """A recognizer of U_ASR: trained on speech in one state, tested on speech in each state."""

    @property
    def name(self) -> str:
        """Name of the recognizer in the table."""

    @property
    def tested(self) -> Sequence[Utterance]:
        """Test utterances."""

    def trained_on(self, state: str) -> Callable[[str], Cell]:
        """Train on speech in a state; returns the test function of speech in a state."""

    def training(self) -> dict[str, Any]:
        """Return the facts of the trainings that were done."""


def judged(split: Split, subsets: Sequence[str]) -> list[Utterance]:
    """Return the utterances of some subsets, of all where none is named.

    Raises:
        InputError: There is none.
    """
    chosen = [u for u in split if not subsets or u.subset in subsets]
    if not chosen:
        raise InputError(f"{split.folder}: no utterance of subsets {', '.join(subsets)}")
    return chosen


def u_asr(rate: Mapping[str, Any]) -> dict[str, Any]:
    """Return an error rate with U_ASR = 100 - errors in %, not clipped at 0, and its interval."""
    bounds = rate["ci95"]
    return {
        **rate,
        "u_asr": None if rate["value"] is None else 100.0 - rate["value"],
        "u_asr_ci95": None if bounds is None else [100.0 - bounds[1], 100.0 - bounds[0]],
    }
