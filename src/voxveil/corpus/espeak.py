"""Deterministic speech synthesis by espeak-ng through ctypes: samples and phoneme times of a text.

espeak-ng is GPL-3.0 and comes with the extra ``demo`` only. The library keeps hidden state
(noise generators, filter memories) from one utterance to the next; here it is loaded anew
for each utterance, 5 ms, so an utterance does not depend on what was spoken before it.
"""

from __future__ import annotations

import atexit
import ctypes
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.runtime.errors import InputError, MissingExtraError

__all__ = ["Speech", "espeak_version", "pronounce", "speak"]

_SYNCHRONOUS = 2
_PHONEME_EVENTS = 0x0001
_DONT_EXIT = 0x8000
_EVENT_END, _EVENT_PHONEME = 0, 7
_RATE, _PITCH = 1, 3
_UTF8 = 1
_BUFFER_MS = 200
#: Bits 8 to 23 of the phoneme mode are the character between phonemes.
_BETWEEN = "_"


@dataclass(frozen=True)
class Speech:
    """Speech by espeak-ng: samples and phoneme events.

    Attributes:
        samples: (n,) int16.
        rate: Sampling rate in Hz (22 050).
        events: (start in seconds, phoneme mnemonic) in order.
    """

    samples: NDArray[np.int16]
    rate: int
    events: tuple[tuple[float, str], ...]


class _Id(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Id),
    )


_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


def speak(text: str, variant: str, *, rate: int, pitch: int) -> Speech:
    """Speak one sentence of American English.

    Args:
        text: The sentence.
        variant: An espeak-ng voice variant file, as text.
        rate: Words per minute, 80 to 450.
        pitch: 0 to 100; 50 leaves the variant's own pitch.

    Raises:
        MissingExtraError: espeakng-loader is not installed.
        InputError: espeak-ng refused; its return code is given.
    """
    (_data_home() / "espeak-ng-data/voices/!v/voxveil").write_text(variant, encoding="utf-8")
    chunks: list[NDArray[np.int16]] = []
    events: list[tuple[int, str]] = []

    def collect(wave: Any, count: int, marks: Any) -> int:
        if wave and count > 0:
            chunks.append(np.ctypeslib.as_array(wave, (count,)).copy())
        index = 0
        while marks[index].type != _EVENT_END:
            mark = marks[index]
            if mark.type == _EVENT_PHONEME:
                events.append((mark.sample, bytes(mark.id.string).decode("utf-8", "replace")))
            index += 1
        return 0

    callback = _CALLBACK(collect)
    with _started(_PHONEME_EVENTS | _DONT_EXIT) as (library, sample_rate):
        # Roughness comes from the C library's generator, which espeak-ng seeds with the process id.
        ctypes.CDLL(None).srand(1)
        library.espeak_SetSynthCallback(callback)
        _check(library.espeak_SetVoiceByName(b"en-us+voxveil"), "voice en-us")
        _check(library.espeak_SetParameter(_RATE, rate, 0), f"rate {rate}")
        _check(library.espeak_SetParameter(_PITCH, pitch, 0), f"pitch {pitch}")
        data = text.encode() + b"\0"
        _check(library.espeak_Synth(data, len(data), 0, 0, 0, _UTF8, None, None), f"text {text!r}")
        _check(library.espeak_Synchronize(), "synchronize")
    if not chunks:
        raise InputError(f"espeak-ng said nothing for {text!r}")
    return Speech(np.concatenate(chunks), sample_rate, tuple((at / sample_rate, name) for at, name in events))


def pronounce(word: str) -> tuple[str, ...]:
    """Return espeak-ng's phoneme mnemonics of one American English word, stress marks included.

    Args:
        word: In lower case.

    Raises:
        MissingExtraError: espeakng-loader is not installed.
        InputError: espeak-ng refused, or has nothing to say for the word.
    """
    with _started(_DONT_EXIT) as (library, _):
        _check(library.espeak_SetVoiceByName(b"en-us"), "voice en-us")
        library.espeak_TextToPhonemes.restype = ctypes.c_char_p
        text = ctypes.c_char_p(word.encode())
        # A clause at a time; the pointer is moved on, and is null after the last.
        mnemonics: list[str] = []
        while text.value:
            clause = library.espeak_TextToPhonemes(ctypes.byref(text), _UTF8, ord(_BETWEEN) << 8)
            mnemonics += clause.decode("utf-8", "replace").replace(" ", _BETWEEN).split(_BETWEEN)
    phonemes = tuple(mnemonic for mnemonic in mnemonics if mnemonic)
    if not phonemes:
        raise InputError(f"espeak-ng has no pronunciation for {word!r}")
    return phonemes


def espeak_version() -> str:
    """Return the version of the espeak-ng library."""
    with _fresh_library() as library:
        library.espeak_Info.restype = ctypes.c_char_p
        return str(library.espeak_Info(None).decode().split()[0])


def _check(code: int, what: str) -> None:
    if code != 0:
        raise InputError(f"espeak-ng refused {what} (code {code})")


@contextmanager
def _fresh_library() -> Iterator[ctypes.CDLL]:
    import _ctypes

    library = ctypes.CDLL(str(_loader().get_library_path()))
    try:
        yield library
    finally:
        _ctypes.dlclose(library._handle)


@contextmanager
def _started(options: int) -> Iterator[tuple[ctypes.CDLL, int]]:
    """Yield a library that is loaded anew and initialized, and its sampling rate in Hz."""
    home = _data_home()
    with _fresh_library() as library:
        rate = int(library.espeak_Initialize(_SYNCHRONOUS, _BUFFER_MS, str(home).encode(), options))
        if rate <= 0:
            raise InputError(f"espeak-ng could not start from {home} (code {rate})")
        yield library, rate
        library.espeak_Terminate()


def _loader() -> Any:
    try:
        import espeakng_loader
    except ImportError:
        raise MissingExtraError("espeakng-loader", "demo") from None
    return espeakng_loader


@lru_cache(maxsize=1)
def _data_home() -> Path:
    # Variants must lie among espeak-ng's own data; links stand for the rest, and the package stays as it is.
    data = Path(_loader().get_data_path())
    home = Path(tempfile.mkdtemp(prefix="voxveil-espeak-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    (home / "espeak-ng-data" / "voices" / "!v").mkdir(parents=True)
    for path in data.iterdir():
        if path.name != "voices":
            (home / "espeak-ng-data" / path.name).symlink_to(path)
    return home
