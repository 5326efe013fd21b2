"""Lazy loading of PocketSphinx, and decoding of one utterance at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import to_int16
from voxveil.runtime.errors import optional_module

__all__ = ["feed", "pocketsphinx_module"]


def pocketsphinx_module() -> Any:
    """Return the package.

    Raises:
        MissingExtraError: It is not installed.
    """
    return optional_module("pocketsphinx", "align")


def feed(decoder: Any, audio: NDArray[np.floating]) -> None:
    """Decode one complete utterance, independent of earlier ones.

    Args:
        decoder: A ``pocketsphinx.Decoder``.
        audio: (n,) finite, full scale 1, 16 kHz.

    Raises:
        RuntimeError: The search found no path.
    """
    # Without this the running mean of its features carries over from the utterance before.
    decoder.reinit_feat()
    decoder.start_utt()
    decoder.process_raw(to_int16(audio).astype("<i2").tobytes(), full_utt=True)
    decoder.end_utt()
