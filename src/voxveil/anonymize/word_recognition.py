"""Recognition of the words of a recording, as the first step of a system that speaks them again.

A recognizer returns segments of text; :func:`joined_text` keeps their text alone, in order. Everything that
the words depend on beside the recording stands in :func:`recognition_settings`: recognizer and its versions,
digest of its weights, segmentation, decoding and normalization. Their digest names the invariant of the
release.

Decoding is deterministic: Whisper has temperature 0 alone, no sampled repetition, and takes nothing over from
the words before. The language is a setting and never chosen by the audio.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import to_int16
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.audio.sphinx import feed, pocketsphinx_module
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import InputError, optional_module

if TYPE_CHECKING:
    from voxveil.pretrained.folder import PretrainedModel

__all__ = [
    "POCKETSPHINX",
    "Segment",
    "SegmentRecognizer",
    "joined_text",
    "load_recognizer",
    "recognition_settings",
    "speech_pieces",
    "sphinx_weights",
]

#: Name of the recognizer that comes with voxveil's extra ``align``.
POCKETSPHINX = "pocketsphinx"
_WHISPER = "faster_whisper"
#: Silero's voice activity detector: thresholds of its documentation, times in ms, and the longest piece in
#: seconds, which with its padding stays below the 30 s that Whisper reads at once.
_SEGMENTATION: dict[str, Any] = {
    "detector": "silero v6",
    "threshold": 0.5,
    "min_speech_ms": 250,
    "min_silence_ms": 500,
    "pad_ms": 300,
    "longest_s": 28.0,
}
_WHISPER_DECODING: dict[str, Any] = {
    "beam_size": 5,
    "temperature": 0.0,
    "condition_on_previous_text": False,
    "without_timestamps": True,
    "compute_type": "int8",
    "suppressed_characters": "0123456789$%&+=@#\u00a3\u20ac\u00b0",
    "no_speech_above": 0.6,
    "log_probability_below": -1.0,
    "compression_above": 2.4,
}
_SPHINX_DECODING: dict[str, Any] = {"model": "en-us of the package", "settings": "defaults of the package"}
#: Abbreviations that a recognizer writes, by what is spoken.
_SPOKEN = {"mr": "mister", "mrs": "missus", "dr": "doctor", "st": "saint"}
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


def recognition_settings(architecture: str, weights: str, language: str) -> dict[str, Any]:
    """Return everything that recognized words depend on beside the recording.

    Args:
        architecture: ``pocketsphinx``, or that of an imported recognizer.
        weights: SHA-256 that identifies its weights.
        language: Code of the language, e.g. ``en``.

    Returns:
        The arguments of :func:`voxveil.privacy.words.recognition_digest`.

    Raises:
        InputError: A recognizer that cannot be used here, or no language.
        MissingExtraError: A package of the recognizer is not installed.
    """
    if not language:
        raise InputError("the language must be given, e.g. en: one that the audio chooses would tell of it")
    if architecture == POCKETSPHINX:
        if language != "en":
            raise InputError(
                f"language {language!r}: PocketSphinx recognizes en only; import a Whisper model"
            )
        packages, decoding = ("pocketsphinx", "faster-whisper"), _SPHINX_DECODING
    elif architecture == _WHISPER:
        packages, decoding = ("faster-whisper", "ctranslate2"), _WHISPER_DECODING
    else:
        raise InputError(f"recognizer {architecture!r}: must be {POCKETSPHINX} or of {_WHISPER}")
    return {
        "recognizer": " ".join((architecture, *(f"{name}=={_version(name)}" for name in packages))),
        "weights": weights,
        "segmentation": dict(_SEGMENTATION),
        "decoding": {**decoding, "language": language},
        "normalization": {"spoken": dict(_SPOKEN) if language == "en" else {}},
    }


def load_recognizer(model: PretrainedModel | None, language: str) -> SegmentRecognizer:
    """Return a recognizer: an imported Whisper, or PocketSphinx where there is no model."""
    if model is None:
        return SphinxSegments()
    return WhisperSegments(model, language)


@cache
def sphinx_weights() -> str:
    """Return the SHA-256 over the digests of all files of PocketSphinx's English model."""
    folder = Path(pocketsphinx_module().get_model_path("en-us"))
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{file_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in files]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def speech_pieces(audio: NDArray[np.float32]) -> list[tuple[int, int]]:
    """Return first and last sample (exclusive) of each piece of a recording with speech, at most 28 s each.

    A piece goes from speech to speech, with the pauses between; it ends at a pause where there is one.
    """
    vad = optional_module("faster_whisper.vad", "judges", "faster-whisper")
    options = vad.VadOptions(
        threshold=_SEGMENTATION["threshold"],
        min_speech_duration_ms=_SEGMENTATION["min_speech_ms"],
        min_silence_duration_ms=_SEGMENTATION["min_silence_ms"],
        speech_pad_ms=_SEGMENTATION["pad_ms"],
        max_speech_duration_s=_SEGMENTATION["longest_s"],
    )
    longest = round(_SEGMENTATION["longest_s"] * SAMPLE_RATE)
    pieces: list[tuple[int, int]] = []
    for chunk in vad.get_speech_timestamps(np.ascontiguousarray(audio, np.float32), options):
        start, stop = int(chunk["start"]), int(chunk["end"])
        if pieces and stop - pieces[-1][0] <= longest:
            pieces[-1] = (pieces[-1][0], stop)
        else:
            pieces.append((start, stop))
    return pieces


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
        self._suppressed = self._whisper.tokens_with(_WHISPER_DECODING["suppressed_characters"])

    def segments(self, audio: NDArray[np.float32], name: str) -> Sequence[Segment]:
        """Return the segments of a recording, without what Whisper calls no speech, and without loops."""
        found = []
        rule = _WHISPER_DECODING
        for start, stop in speech_pieces(audio):
            for part in self._whisper.segments(
                audio[start:stop],
                name,
                without_timestamps=rule["without_timestamps"],
                suppress_tokens=[-1, *self._suppressed],
                no_speech_threshold=rule["no_speech_above"],
                log_prob_threshold=rule["log_probability_below"],
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
    return _ABBREVIATION.sub(lambda found: _SPOKEN[found[1].lower()], text)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        extra = "align" if package == POCKETSPHINX else "judges"
        optional_module(package.replace("-", "_"), extra, package)
        raise InputError(f"{package}: is installed without its version") from None
