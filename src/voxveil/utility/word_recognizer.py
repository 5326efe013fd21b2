"""Word recognition: PocketSphinx with the English model of its package, or an imported Whisper.

PocketSphinx is the same for everybody, offline, and weak: about 29 % of the words of clean LibriSpeech come
out wrong. Its rate compares systems. Whisper (``voxveil model import``) is close to what people understand.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import decode
from voxveil.audio.sphinx import feed, pocketsphinx_module
from voxveil.pretrained.folder import PretrainedModel
from voxveil.pretrained.kinds import SpeechRecognizer
from voxveil.runtime.errors import InputError

__all__ = ["Recognition", "WordRecognizer", "words_in"]


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
        language: Language code for Whisper, e.g. ``en``; empty lets it detect the language of each utterance.
        model: The imported Whisper; PocketSphinx where None.
    """

    language: str = ""
    model: PretrainedModel | None = field(default=None, hash=False)

    @property
    def kind(self) -> str:
        """Name of the recognizer in ``transcribe.words`` and in MLflow metrics: pocketsphinx or whisper."""
        return "pocketsphinx" if self.model is None else "whisper"

    @property
    def name(self) -> str:
        """What tables call the recognizer: version, or digest of the weights."""
        if self.model is None:
            pocketsphinx_module()
            number = version("pocketsphinx")
            return f"pocketsphinx {number} (weak), en-us model and trigram of its package"
        language = f"language {self.language}" if self.language else "language detected"
        return f"Whisper, {self.model.name}, {language}"

    @property
    def facts(self) -> dict[str, str]:
        """What results record of an imported model; empty for PocketSphinx."""
        return {} if self.model is None else self.model.facts()


def words_in(item: tuple[Recognition, str, bytes]) -> str:
    """Return the words in the FLAC bytes of one utterance (recognizer, id, flac); for worker processes."""
    recognition, name, flac = item
    return _recognizer(recognition).recognize(decode(flac, name), f"utterance {name}")


@lru_cache(maxsize=1)
def _recognizer(recognition: Recognition) -> SpeechRecognizer:
    """One per process: loading takes half a second and more."""
    if recognition.model is None:
        return WordRecognizer()
    # CTranslate2 is loaded only where Whisper is asked for.
    from voxveil.pretrained.faster_whisper import Whisper

    return Whisper(recognition.model, recognition.language)
