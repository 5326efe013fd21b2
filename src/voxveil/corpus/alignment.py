"""Forced alignment: which phone and which triphone state each 10 ms frame belongs to.

PocketSphinx with the 16 kHz English model and dictionary that its package carries. Words that
the dictionary does not have get espeak-ng's pronunciation. First the words are aligned (with
optional pauses between them), then phones and states within them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.audio.sphinx import feed, pocketsphinx_module
from voxveil.corpus.espeak import pronounce
from voxveil.corpus.phones import PHONES, SILENCE, merge_phones, pronunciation
from voxveil.corpus.source import Clip, Reading, Source
from voxveil.corpus.split import Phone
from voxveil.runtime.errors import InputError

__all__ = ["AlignedSource", "Aligner", "Alignment"]

#: PocketSphinx's frame i is 410 samples from sample 160 i on: its centre is nearest to our frame i + 1.
_LATER = 1
#: Widths of the search: the usual one is quick, the second finds hard utterances.
_BEAMS: tuple[dict[str, float], ...] = ({}, {"beam": 1e-100, "pbeam": 1e-100, "wbeam": 1e-80})


@dataclass(frozen=True)
class Alignment:
    """The phones and states of one utterance.

    Attributes:
        phones: Without gaps, from 0 to the end.
        states: (K,) int16, the tied triphone state (senone of the acoustic model) at the centre of
            each frame.
    """

    phones: tuple[Phone, ...]
    states: NDArray[np.int16]


class Aligner:
    """A loaded aligner.

    Raises:
        MissingExtraError: PocketSphinx is not installed.
    """

    def __init__(self) -> None:
        # The lattice's best path can leave a phone less frames than it has states, and the second pass
        # then reads beyond its tables.
        self._make: Callable[..., Any] = partial(
            pocketsphinx_module().Decoder, lm=None, bestpath=False, loglevel="FATAL"
        )
        self._decoders: dict[int, Any] = {}

    def align(self, audio: NDArray[Any], text: str, name: str) -> Alignment:
        """Align one utterance.

        Args:
            audio: (n,) in [-1, 1], 16 kHz.
            text: What is said, words separated by spaces.
            name: Utterance id, for errors.

        Raises:
            InputError: No transcript, a word without pronunciation, or a transcript that does not fit
                the audio.
        """
        words = text.lower().split()
        if not words:
            raise InputError(f"utterance {name}: has no transcript to align")
        for attempt, beams in enumerate(_BEAMS):
            if attempt not in self._decoders:
                self._decoders[attempt] = self._make(**beams)
            found = _align(self._decoders[attempt], words, audio)
            if found is not None:
                return _on_our_frames(found, len(audio))
        raise InputError(f"utterance {name}: its transcript does not fit its audio (no alignment)")


@dataclass(frozen=True)
class AlignedSource:
    """A corpus whose clips are aligned as they are read.

    Attributes:
        source: Where audio and transcripts come from.
    """

    source: Source

    @property
    def name(self) -> str:
        """Name in reports."""
        return self.source.name

    @property
    def synthetic(self) -> bool:
        """True for synthetic speech."""
        return self.source.synthetic

    @property
    def clips(self) -> tuple[Clip, ...]:
        """All clips, sorted by id."""
        return self.source.clips

    def read(self, clip: Clip) -> Reading:
        """Return the audio of a clip with its phones and states."""
        reading = self.source.read(clip)
        found = _aligner().align(reading.audio, clip.text, clip.id)
        return replace(reading, phones=found.phones, states=found.states)


@lru_cache(maxsize=1)
def _aligner() -> Aligner:
    """One per process: loading takes as long as aligning ten utterances."""
    return Aligner()


@dataclass(frozen=True)
class _Segment:
    """One state of one phone, in PocketSphinx's frames."""

    phone: str
    state: int
    start: int
    frames: int


def _align(decoder: Any, words: Sequence[str], audio: NDArray[Any]) -> list[_Segment] | None:
    """Return the states in order; None if no path fits."""
    for word in dict.fromkeys(words):
        if decoder.lookup_word(word) is None:
            decoder.add_word(word, " ".join(pronunciation(pronounce(word), word)), False)
    decoder.set_align_text(" ".join(words))
    # hyp() of the second pass writes through a null pointer, so it is asked for here only.
    if not _decode(decoder, audio) or decoder.hyp() is None:
        return None
    decoder.set_alignment()
    if not _decode(decoder, audio):
        return None
    return [
        _Segment(phone.name, int(state.name), state.start, state.duration)
        for word in decoder.get_alignment()
        for phone in word
        for state in phone
    ]


def _decode(decoder: Any, audio: NDArray[Any]) -> bool:
    try:
        feed(decoder, audio)
    except RuntimeError:
        return False
    return True


def _on_our_frames(segments: Sequence[_Segment], samples: int) -> Alignment:
    """Move segments to the frame grid of :mod:`voxveil.audio.frames`; the ends are stretched to fit."""
    seconds, frame = samples / SAMPLE_RATE, HOP / SAMPLE_RATE
    states = np.repeat([s.state for s in segments], [s.frames for s in segments]).astype(np.int16)
    places = np.clip(np.arange(frame_count(samples)) - _LATER, 0, len(states) - 1)
    # A phone holds the frames whose middles lie in it.
    starts = [0.0, *(min((s.start + _LATER - 0.5) * frame, seconds) for s in segments[1:]), seconds]
    pieces = [
        (start, end, s.phone if s.phone in PHONES else SILENCE)
        for s, (start, end) in zip(segments, pairwise(starts), strict=True)
        if end > start
    ]
    return Alignment(tuple(merge_phones(pieces)), states[places])
