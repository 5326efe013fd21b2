"""Word recognition: PocketSphinx with the English model of its package, or an imported Whisper.

PocketSphinx is the same for everybody, offline, and weak: about 29 % of the words of clean LibriSpeech come
out wrong. Its rate compares systems. Whisper (``voxveil model import``) is close to what people understand.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import decode
from voxveil.audio.sphinx import feed, pocketsphinx_module
from voxveil.pretrained.folder import read_model
from voxveil.runtime.errors import InputError, ParamsError

__all__ = ["Recognition", "WordRecognizer", "words_in"]


class _Recognizer(Protocol):
    def recognize(self, audio: NDArray[Any], name: str) -> str:
        """Return the words, separated by blanks."""


class WordRecognizer:
    """PocketSphinx, loaded; a result does not depend on earlier utterances.

    Raises:
        MissingExtraError: PocketSphinx is not installed.
    """

    def __init__(self) -> None:
        self._decoder = pocketsphinx_module().Decoder(loglevel="FATAL")

    def recognize(self, audio: NDArray[Any], name: str = "audio") -> str:
        """Return the words in lower case, separated by spaces; empty if none is recognized.

        Args:
            audio: (n,) in [-1, 1], 16 kHz.
            name: Utterance id, for errors.
        """
        if audio.ndim != 1 or not len(audio) or not np.isfinite(audio).all():
            raise InputError(f"{name}: audio must be (samples,) of finite numbers, at least 1")
        feed(self._decoder, audio)
        found = self._decoder.hyp()
        return "" if found is None else str(found.hypstr)


@dataclass(frozen=True)
class Recognition:
    """Which recognizer turns speech into words.

    Attributes:
        kind: ``pocketsphinx`` or ``whisper``.
        folder: Folder of the imported model, of kind ``whisper``.
        language: Language code for Whisper, e.g. ``en``; empty lets it detect the language of each utterance.
    """

    kind: str
    folder: str = ""
    language: str = ""

    @property
    def name(self) -> str:
        """What tables call the recognizer: version, or digest of the weights."""
        if self.kind == "pocketsphinx":
            pocketsphinx_module()
            number = version("pocketsphinx")
            return f"pocketsphinx {number} (weak), en-us model and trigram of its package"
        model = read_model(Path(self.folder), "recognizer", "transcribe.recognizer")
        language = f"language {self.language}" if self.language else "language detected"
        return f"Whisper, {model.name}, {language}"

    @property
    def facts(self) -> dict[str, str]:
        """What results record of an imported model; empty for PocketSphinx."""
        if self.kind == "pocketsphinx":
            return {}
        return read_model(Path(self.folder), "recognizer", "transcribe.recognizer").facts()


def words_in(item: tuple[Recognition, str, bytes]) -> str:
    """Return the words in the FLAC bytes of one utterance (recognizer, id, flac); for worker processes."""
    recognition, name, flac = item
    return _recognizer(recognition).recognize(decode(flac, name), f"utterance {name}")


@lru_cache(maxsize=1)
def _recognizer(recognition: Recognition) -> _Recognizer:
    """One per process: loading takes half a second and more."""
    if recognition.kind == "pocketsphinx":
        return WordRecognizer()
    if not recognition.folder:
        raise ParamsError(
            "transcribe.recognizer: is empty; must be the folder of an imported Whisper"
            " ('voxveil model import')"
        )
    # CTranslate2 is loaded only where Whisper is asked for.
    from voxveil.pretrained.faster_whisper import Whisper

    model = read_model(Path(recognition.folder), "recognizer", "transcribe.recognizer")
    return Whisper(model, recognition.language)
