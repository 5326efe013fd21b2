"""Recognition of the words of a recording, as the first step of a system that speaks them again.

A recognizer returns segments of text; :func:`joined_text` keeps their text alone, in order. Settings are in
:mod:`voxveil.anonymize.word_source`.

Decoding is deterministic: Whisper has temperature 0 alone, no sampled repetition, and takes nothing over from
the words before. The language is a setting and never chosen by the audio.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.anonymize.word_source import SEGMENTATION, SPOKEN, WHISPER_DECODING, WordSource
from voxveil.audio.files import to_int16
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.audio.sphinx import feed, pocketsphinx_module
from voxveil.runtime.errors import optional_module

if TYPE_CHECKING:
    from voxveil.pretrained.folder import PretrainedModel

__all__ = [
    "Segment",
    "SegmentRecognizer",
    "joined_text",
    "load_recognizer",
    "open_recognizer",
    "speech_pieces",
]

_ABBREVIATION = re.compile(r"\b(Mr|Mrs|Dr|St)\b\.?")


@dataclass(frozen=True)
class Segment:
    """A piece of a recognizer's output; only its text goes any further.

    Attributes:
        text: As the recognizer writes it.
        start: First second of it in the recording.
        end: Last second.
        language: Code of the language.
        confidence: Mean log-probability of its tokens in nat.
    """

    text: str
    start: float
    end: float
    language: str = ""
    confidence: float = 0.0


class SegmentRecognizer(Protocol):
    """A recognizer of words; the same recording gives the same segments on every call."""

    def segments(self, audio: NDArray[np.float32], name: str) -> Sequence[Segment]:
        """Return the segments of (n,) samples at 16 kHz called ``name``, in order; none without speech."""


def joined_text(segments: Sequence[Segment]) -> str:
    """Return the text of all segments, without their boundaries."""
    return " ".join(segment.text for segment in segments)


def load_recognizer(model: PretrainedModel | None, language: str) -> SegmentRecognizer:
    """Return a recognizer: an imported Whisper, or PocketSphinx where there is no model."""
    if model is None:
        return SphinxSegments()
    return WhisperSegments(model, language)


def open_recognizer(source: WordSource) -> SegmentRecognizer:
    """Return the loaded recognizer of a system of words.

    Raises:
        InputError: It is missing, or not the one of the bundle; nothing was released.
    """
    return load_recognizer(source.model(), source.language)


def speech_pieces(audio: NDArray[np.float32]) -> list[tuple[int, int]]:
    """Return first and last sample (exclusive) of each piece of a recording with speech, at most 29.5 s each.

    A piece goes from speech to speech, with the pauses between; it ends at a pause where there is one. Up to
    a second of the pauses around it belongs to it: Whisper misses words where a clip begins with one.
    """
    vad = optional_module("faster_whisper.vad", "judges", "faster-whisper")
    options = vad.VadOptions(
        threshold=SEGMENTATION["threshold"],
        min_speech_duration_ms=SEGMENTATION["min_speech_ms"],
        min_silence_duration_ms=SEGMENTATION["min_silence_ms"],
        speech_pad_ms=SEGMENTATION["pad_ms"],
        max_speech_duration_s=SEGMENTATION["longest_s"],
    )
    longest = round(SEGMENTATION["longest_s"] * SAMPLE_RATE)
    pieces: list[tuple[int, int]] = []
    for chunk in vad.get_speech_timestamps(np.ascontiguousarray(audio, np.float32), options):
        start, stop = int(chunk["start"]), int(chunk["end"])
        if pieces and stop - pieces[-1][0] <= longest:
            pieces[-1] = (pieces[-1][0], stop)
        else:
            pieces.append((start, stop))
    context = round(SEGMENTATION["context_s"] * SAMPLE_RATE)
    edges = [0, *((a[1] + b[0]) // 2 for a, b in pairwise(pieces)), len(audio)]
    return [
        (max(before, start - context), min(after, stop + context))
        for (start, stop), (before, after) in zip(pieces, pairwise(edges), strict=bool(pieces))
    ]


class WhisperSegments:
    """Whisper on the pieces with speech of a recording.

    Args:
        model: The imported recognizer.
        language: Code of the language.
    """

    def __init__(self, model: PretrainedModel, language: str) -> None:
        # CTranslate2 is loaded only where Whisper is asked for.
        from voxveil.pretrained.faster_whisper import Whisper

        self._whisper = Whisper(model, language)
        self._language = language
        # Numbers in digits have no one reading, and normal form has no digits.
        self._suppressed = self._whisper.tokens_with(WHISPER_DECODING["suppressed_characters"])

    def segments(self, audio: NDArray[np.float32], name: str) -> Sequence[Segment]:
        """Return the segments of a recording, without what Whisper calls no speech, and without loops."""
        found = []
        rule = WHISPER_DECODING
        for start, stop in speech_pieces(audio):
            for part in self._whisper.segments(
                audio[start:stop],
                name,
                without_timestamps=rule["without_timestamps"],
                suppress_tokens=[-1, *self._suppressed],
                no_speech_threshold=rule["no_speech_above"],
                # However likely its words are: on music Whisper is sure of some.
                log_prob_threshold=None,
                compression_ratio_threshold=rule["compression_above"],
            ):
                if part.compression_ratio > rule["compression_above"]:
                    continue
                text = _spoken(part.text) if self._language == "en" else part.text
                offset = start / SAMPLE_RATE
                found.append(
                    Segment(text, offset + part.start, offset + part.end, self._language, part.avg_logprob)
                )
        return found


class SphinxSegments:
    """PocketSphinx with the English model of its package, on the pieces with speech of a recording."""

    def __init__(self) -> None:
        self._decoder = pocketsphinx_module().Decoder(loglevel="FATAL")
        # One search at a time; recordings may come from several threads.
        self._lock = threading.Lock()

    def segments(self, audio: NDArray[np.float32], name: str) -> Sequence[Segment]:
        """Return one segment for each piece with words."""
        del name
        found = []
        for start, stop in speech_pieces(audio):
            with self._lock:
                text = self._words(audio[start:stop])
            if text:
                found.append(Segment(text, start / SAMPLE_RATE, stop / SAMPLE_RATE, "en"))
        return found

    def _words(self, piece: NDArray[np.float32]) -> str:
        if not to_int16(piece).any():
            return ""
        try:
            feed(self._decoder, piece)
        except RuntimeError:  # the search found no path: no words
            return ""
        hypothesis = self._decoder.hyp()
        return "" if hypothesis is None else str(hypothesis.hypstr)


def _spoken(text: str) -> str:
    return _ABBREVIATION.sub(lambda found: SPOKEN[found[1].lower()], text)
