"""Training batches of utterances of similar length, read ahead by threads.

The batch of a step depends on (seed, step) only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import SAMPLE_RATE, frame_count
from voxveil.corpus.split import Utterance
from voxveil.research.asr.network import encoded_frames
from voxveil.research.asr.tokens import Tokens
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["Batches", "Read", "Reader", "Said", "fitting"]

#: Returns the (samples,) 16 kHz audio of an utterance.
Read = Callable[[str], NDArray[np.float32]]

#: How far, in batches, an utterance may move from its place by length.
_SPREAD = 4


@dataclass(frozen=True)
class Said:
    """An utterance to train on.

    Attributes:
        id: Utterance id.
        speaker: For holding speakers out.
        samples: Sample count at 16 kHz.
        tokens: What is said.
    """

    id: str
    speaker: str
    samples: int
    tokens: tuple[int, ...]


def fitting(
    utterances: Sequence[Utterance], tokens: Tokens, *, max_seconds: float, fastest: float
) -> list[Said]:
    """Return the utterances that are suitable for training.

    CTC needs a frame for each token and one between two alike; speech said faster than that has no path.

    Args:
        utterances: Speech with transcripts.
        tokens: What spells them.
        max_seconds: The longest.
        fastest: The highest playing speed.

    Raises:
        InputError: None is left.
    """
    kept = []
    for utterance in utterances:
        spelt = tokens.encode(utterance.text)
        needed = len(spelt) + sum(one == other for one, other in pairwise(spelt))
        frames = encoded_frames(frame_count(int(utterance.samples / fastest)))
        if spelt and needed <= frames and utterance.samples <= max_seconds * SAMPLE_RATE:
            kept.append(Said(utterance.id, utterance.speaker, utterance.samples, tuple(spelt)))
    if not kept:
        raise InputError(
            f"no utterance of {len(utterances)} can be trained on: each is longer than asr.max_seconds"
            f" ({max_seconds:g}), without a word, or shorter than its words"
        )
    return kept


class Batches:
    """Batches of bounded padded length; every pass over the speech is dealt anew.

    Args:
        said: What is said.
        seconds: Speech of a batch at most, padding included; one utterance is always in it.
        seed: The run's seed.
        name: Names the random stream.
    """

    def __init__(self, said: Sequence[Said], seconds: float, seed: int, name: str) -> None:
        self._said = sorted(said, key=lambda utterance: (utterance.samples, utterance.id))
        self._seed, self._name = seed, name
        self._ends: list[int] = []
        start = 0
        for index, clip in enumerate(self._said):
            if index > start and clip.samples * (index - start + 1) > seconds * SAMPLE_RATE:
                self._ends.append(index)
                start = index
        self._ends.append(len(self._said))

    def __len__(self) -> int:
        """Return the number of batches of a pass."""
        return len(self._ends)

    def in_order(self, index: int) -> list[Said]:
        """Return batch ``index`` by length, shortest first."""
        return self._said[self._start(index) : self._ends[index]]

    def of_step(self, step: int) -> list[Said]:
        """Return the batch of a step."""
        number, position = divmod(step, len(self))
        rng = stream(self._seed, self._name, "pass", number)
        # Nearly by length: neighbours change places, sizes stay.
        spread = _SPREAD * len(self._said) / len(self)
        order = np.argsort(np.arange(len(self._said)) + rng.uniform(0, spread, len(self._said)))
        index = int(rng.permutation(len(self))[position])
        return [self._said[i] for i in order[self._start(index) : self._ends[index]]]

    def _start(self, index: int) -> int:
        return self._ends[index - 1] if index else 0


class Reader:
    """Reads the audio of batches with threads, that of the next one while this one is computed.

    Args:
        read: Reads an utterance; may be called by several threads.
        threads: How many.
    """

    def __init__(self, read: Read, threads: int) -> None:
        self._read, self._pool = read, ThreadPoolExecutor(threads, "read-speech")
        self._ahead: tuple[list[Said], list[Future[NDArray[np.float32]]]] | None = None

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=True)

    def audio(self, batch: list[Said], following: list[Said]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the audio of a batch and start to read the one that follows.

        Returns:
            (batch, N) with zeros after each utterance, and (batch,) samples of each.
        """
        ready = self._ahead[1] if self._ahead and self._ahead[0] == batch else self._start(batch)
        self._ahead = (following, self._start(following))
        clips = [torch.from_numpy(future.result()) for future in ready]
        samples = torch.tensor([len(clip) for clip in clips])
        return torch.nn.utils.rnn.pad_sequence(clips, batch_first=True), samples

    def _start(self, batch: list[Said]) -> list[Future[NDArray[np.float32]]]:
        return [self._pool.submit(self._read, utterance.id) for utterance in batch]
