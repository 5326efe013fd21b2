"""Whisper by faster-whisper (CTranslate2), in 8-bit integers on a CPU.

Radford et al., "Robust speech recognition via large-scale weak supervision", 2022. Utterances of any length
are recognized whole: faster-whisper moves its window of 30 seconds by the time stamps that it recognizes.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.speaker import require_rate
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError, MissingExtraError, one_line

__all__ = ["TimedWord", "Whisper", "convert", "load"]

_BEAM = 5
_NEEDED = ("model.bin", "config.json", "tokenizer.json")


@dataclass(frozen=True)
class TimedWord:
    """A recognized word with its start and end in seconds."""

    word: str
    start: float
    end: float


class Whisper:
    """A loaded recognizer; a result does not depend on earlier utterances.

    Args:
        model: The checked folder.
        language: Code of the language, e.g. ``en``; empty lets Whisper detect it in each utterance.
        threads: CPU threads.
    """

    def __init__(self, model: PretrainedModel, language: str = "", threads: int = 1) -> None:
        require_rate(model)
        try:
            from faster_whisper import WhisperModel
        except ImportError:
            raise MissingExtraError("faster-whisper", "judges") from None
        try:
            self._network = WhisperModel(
                str(model.folder),
                device="cpu",
                compute_type="int8",
                cpu_threads=threads,
                num_workers=1,
                local_files_only=True,
            )
        except Exception as error:  # CTranslate2 raises RuntimeError, tokenizers its own
            raise InputError(f"{model.folder}: not a Whisper model ({one_line(error)[:200]})") from None
        known = self._network.supported_languages
        if language and language not in known:
            raise InputError(
                f"{model.folder}: language {language!r} is unknown to it, e.g. {', '.join(known[:8])}"
            )
        self._language = language or None
        self.model = model

    def recognize(self, audio: NDArray[Any], name: str) -> str:
        """Return the words of (n,) samples at 16 kHz, with the recognizer's punctuation."""
        return " ".join(segment.text.strip() for segment in self.segments(audio, name))

    def recognize_words(self, audio: NDArray[Any], name: str) -> Sequence[TimedWord]:
        """Return the words with start and end in seconds."""
        segments = self.segments(audio, name, word_timestamps=True)
        return [
            TimedWord(word.word.strip(), float(word.start), float(word.end))
            for segment in segments
            for word in segment.words or ()
        ]

    def tokens_with(self, characters: str) -> list[int]:
        """Return the numbers of all tokens of text with one of ``characters``."""
        vocabulary: Mapping[str, int] = self._network.hf_tokenizer.get_vocab()
        return sorted(
            number
            for token, number in vocabulary.items()
            if set(token) & set(characters) and not token.startswith("<|")
        )

    def segments(self, audio: NDArray[Any], name: str, **options: Any) -> list[Any]:
        """Return the library's segments of (n,) samples at 16 kHz.

        Args:
            audio: (n,) finite, n >= 1.
            name: Utterance id, for errors.
            options: Further ones of ``WhisperModel.transcribe``.
        """
        if audio.ndim != 1 or not len(audio) or not np.isfinite(audio).all():
            raise InputError(f"{name}: audio must be (samples,) of finite numbers, at least 1")
        segments, _ = self._network.transcribe(
            np.ascontiguousarray(audio, np.float32),
            language=self._language,
            beam_size=_BEAM,
            # Temperature 0 alone: a sampled repetition would give other words in another run.
            temperature=0.0,
            condition_on_previous_text=False,
            **options,
        )
        return list(segments)


def convert(files: Mapping[str, Path], folder: Path, name: str) -> dict[str, Any]:
    """Copy the model's files and return the settings."""
    for needed in _NEEDED:
        if needed not in files:
            raise InputError(f"{name} needs {needed}; found: {', '.join(sorted(files))}")
    config = read_json(files["config.json"])
    if not isinstance(config, dict):
        raise InputError(f"{files['config.json']}: must be a JSON object")
    for file, path in files.items():
        shutil.copyfile(path, folder / file)
    return {}


def load(model: PretrainedModel) -> Whisper:
    """Return the recognizer, which detects the language."""
    return Whisper(model)
