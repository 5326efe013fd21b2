"""Words and phones that a recognizer finds in clips, for attackers of words and of rhythm.

The recognizer is PocketSphinx or an imported model of kind ``recognizer``. Phones come from forced alignment
of the recognized words, so nothing but the audio is used.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.alignment import Aligner
from voxveil.corpus.phones import PHONES
from voxveil.features.speaker.clips import at_least_minimum
from voxveil.pretrained.folder import PretrainedModel, locate_pretrained, read_model
from voxveil.pretrained.kinds import SpeechRecognizer
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.utility.transcripts import normalize_words
from voxveil.utility.word_recognizer import Recognition, open_recognizer

__all__ = ["PhoneTimes", "RecognizedSpeech", "WordSource"]

_PARAMETER = "train_attacker.words_recognizer"
#: Value of the parameter for the recognizer that needs no imported model.
_EMBEDDED = "pocketsphinx"
#: Copy of the imported model in an attacker's folder.
_COPY = "recognizer"
_INDEX = {label: index for index, label in enumerate(PHONES)}


@dataclass(frozen=True)
class PhoneTimes:
    """Phones of a clip in order, without gaps.

    Attributes:
        labels: (n,) index of each phone in :data:`voxveil.corpus.phones.PHONES`; 0 is a pause.
        seconds: (n,) duration of each phone, above 0.
    """

    labels: NDArray[np.int64]
    seconds: NDArray[np.float64]


class RecognizedSpeech:
    """A loaded recognizer whose results are kept, since several attackers read the same clips.

    A result depends on the samples of the clip alone, never on earlier clips.

    Args:
        recognizer: Returns the words of a clip.
        aligner: Aligns words; loaded at the first use where None.
    """

    def __init__(self, recognizer: SpeechRecognizer, aligner: Aligner | None = None) -> None:
        self._recognizer = recognizer
        self._aligner = aligner
        self._words: dict[bytes, tuple[str, ...]] = {}
        self._phones: dict[bytes, PhoneTimes | None] = {}

    def words(self, audio: NDArray[np.float32], name: str) -> tuple[str, ...]:
        """Return the normalized words of a 16 kHz clip called ``name``; none where none is recognized.

        Raises:
            InputError: The clip is empty, not one-dimensional or holds NaN or infinity.
        """
        clip, key = _checked(audio, name)
        if key not in self._words:
            self._words[key] = tuple(normalize_words(self._recognizer.recognize(clip, name)))
        return self._words[key]

    def phones(self, audio: NDArray[np.float32], name: str) -> PhoneTimes | None:
        """Return the aligned phones of a 16 kHz clip called ``name``.

        Returns:
            None where no word is recognized, a word has no pronunciation, or the words do not align.

        Raises:
            InputError: The clip is empty, not one-dimensional or holds NaN or infinity.
            MissingExtraError: PocketSphinx, or espeak-ng for a word outside its dictionary, is not installed.
        """
        clip, key = _checked(audio, name)
        if key not in self._phones:
            self._phones[key] = self._align(clip, self.words(audio, name), name)
        return self._phones[key]

    def _align(self, clip: NDArray[np.float32], words: Sequence[str], name: str) -> PhoneTimes | None:
        if not words:
            return None
        if self._aligner is None:
            self._aligner = Aligner()
        try:
            found = self._aligner.align(clip, " ".join(words), name).phones
        except InputError:
            return None
        labels = np.array([_INDEX[phone.label] for phone in found], np.int64)
        return PhoneTimes(labels, np.array([phone.seconds for phone in found]))


@dataclass(frozen=True)
class WordSource:
    """The recognizer of an attacker, as its folder keeps it.

    Attributes:
        language: Code of the language for a recognizer that takes one.
        digest: Digest of the imported model; empty for PocketSphinx.
        model: The imported model; PocketSphinx where None.
    """

    language: str
    digest: str = ""
    model: PretrainedModel | None = field(default=None, compare=False)

    @classmethod
    def named(cls, params: TrainAttackerParams) -> WordSource:
        """Return the recognizer that ``train_attacker.words_recognizer`` names.

        Raises:
            ParamsError: The parameter is empty.
            InputError: There is no such model, or it is of another kind.
        """
        if not params.words_recognizer:
            raise ParamsError(
                f"{_PARAMETER}: is empty; must be {_EMBEDDED} or the folder of an imported recognizer"
                " ('voxveil model import')"
            )
        if params.words_recognizer == _EMBEDDED:
            return cls(params.words_language)
        model = locate_pretrained(params.words_recognizer, "recognizer", _PARAMETER)
        return cls(params.words_language, model.digest, model)

    @classmethod
    def read(cls, folder: Path, content: dict[str, Any]) -> WordSource:
        """Read what :meth:`write` wrote; ``content`` is the attacker's ``model.json``.

        Raises:
            InputError: ``model.json`` does not name the recognizer, or its copy is missing or changed.
        """
        about = content.get("recognizer")
        if not isinstance(about, dict) or not isinstance(about.get("language"), str):
            raise InputError(f"{folder / 'model.json'}: recognizer must be an object with a language")
        if "digest" not in about:
            return cls(about["language"])
        model = read_model(folder / _COPY, "recognizer")
        return cls(about["language"], model.digest, model)

    def write(self, folder: Path) -> dict[str, Any]:
        """Copy the imported model into an attacker's folder; return what ``model.json`` states of it."""
        if self.model is None:
            return {"recognizer": {"name": _EMBEDDED, "language": self.language}}
        shutil.copytree(self.model.folder, folder / _COPY)
        return {"recognizer": {"language": self.language, **self.model.facts()}}

    def open(self) -> RecognizedSpeech:
        """Load the recognizer, or return the one of an attacker that has the same."""
        return _opened(self)


@lru_cache(maxsize=2)
def _opened(source: WordSource) -> RecognizedSpeech:
    """One for each recognizer: the attackers of a run read the same clips."""
    return RecognizedSpeech(open_recognizer(Recognition(source.language, source.model)))


def _checked(audio: NDArray[np.float32], name: str) -> tuple[NDArray[np.float32], bytes]:
    """Return a checked clip, at least 0.5 s long, with the digest of its samples."""
    clip = at_least_minimum(audio, name)
    return clip, hashlib.sha256(clip.tobytes()).digest()
