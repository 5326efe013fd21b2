"""Word recognition by PocketSphinx with the 16 kHz English model, dictionary and trigram of its package.

A weak recognizer by today's standards, and the same one for everybody, offline: about 29 % of the
words of clean LibriSpeech come out wrong. Its rate compares systems; it is not what people hear.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import decode
from voxveil.audio.sphinx import feed, pocketsphinx_module
from voxveil.runtime.errors import InputError

__all__ = ["WordRecognizer", "recognizer_name", "words_in"]


class WordRecognizer:
    """A loaded recognizer; a result does not depend on earlier utterances.

    Raises:
        MissingExtraError: PocketSphinx is not installed.
    """

    def __init__(self) -> None:
        self._decoder = pocketsphinx_module().Decoder(loglevel="FATAL")

    def recognize(self, audio: NDArray[Any], name: str = "audio") -> str:
        """Return the words in lower case, separated by spaces; empty if none is heard.

        Args:
            audio: (n,) in [-1, 1], 16 kHz.
            name: Utterance id, for errors.
        """
        if audio.ndim != 1 or not len(audio) or not np.isfinite(audio).all():
            raise InputError(f"{name}: audio must be (samples,) of finite numbers, at least 1")
        feed(self._decoder, audio)
        found = self._decoder.hyp()
        return "" if found is None else str(found.hypstr)


def recognizer_name() -> str:
    """Return the name and version of the word recognizer."""
    pocketsphinx_module()
    return f"pocketsphinx {version('pocketsphinx')}, en-us model and trigram of its package"


def words_in(item: tuple[str, bytes]) -> str:
    """Return the words in the FLAC bytes of one utterance ``(id, flac)``; for worker processes."""
    name, flac = item
    return _recognizer().recognize(decode(flac, name), f"utterance {name}")


@lru_cache(maxsize=1)
def _recognizer() -> WordRecognizer:
    """One per process: loading takes half a second."""
    return WordRecognizer()
