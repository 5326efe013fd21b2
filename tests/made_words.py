"""A system of words for tests: a recognizer that returns given segments, and a voice of tones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from voxveil.anonymize.bundle import write_bundle
from voxveil.anonymize.word_recognition import Segment
from voxveil.anonymize.word_source import WordSource
from voxveil.config.model import SystemParams
from voxveil.pretrained.folder import PretrainedModel, write_model
from voxveil.pretrained.kinds import SpokenWords
from voxveil.runtime.atomic import write_text

SETTINGS: dict[str, Any] = {
    "recognizer": "stub 1",
    "weights": "ab" * 32,
    "segmentation": {},
    "decoding": {"language": "en"},
    "normalization": {},
}
SOURCE = WordSource("pocketsphinx", "", "", "en", SETTINGS)
#: Samples of each word of :class:`ToneVoice`.
WORD = 3200


class StubRecognizer:
    """Returns what a function gives for a recording, and notes what it was given."""

    def __init__(self, answer: Callable[[NDArray[np.float32]], Sequence[Segment]]) -> None:
        self._answer = answer
        self.lengths: list[int] = []

    def segments(self, audio: NDArray[np.float32], name: str) -> Sequence[Segment]:
        self.lengths.append(len(audio))
        return self._answer(audio)


class ToneVoice:
    """Speaks each word as a tone of 0.2 s, whose frequency follows from its letters."""

    def speak(self, words: Sequence[str], samples: int | None = None) -> SpokenWords:
        time = np.arange(WORD) / 16_000
        tones = [np.sin(2 * np.pi * (200 + sum(map(ord, word)) % 700) * time) for word in words]
        audio = np.concatenate(tones) if tones else np.zeros(16_000)
        if samples is not None:
            audio = np.resize(audio, samples)
        spans = np.array([(WORD * i, WORD * (i + 1)) for i in range(len(words))], np.int64).reshape(-1, 2)
        return SpokenWords(audio.astype(np.float32), tuple(words), spans)


def write_voice(folder: Path) -> Path:
    """Write an imported voice without a network; :class:`ToneVoice` stands in for it. Return its folder."""
    write_text(folder / "model.onnx", "no network")
    described = PretrainedModel(folder, "hibari", "voice", "Apache-2.0", "made", 16_000, {}, {})
    write_model(folder, described)
    return folder


def write_words_bundle(folder: Path, name: str = "words_voice") -> Path:
    """Write the bundle of a system of words, whose voice is a file that nothing reads."""
    voice = write_voice(folder / "voice")
    write_bundle(
        folder / name,
        name,
        SystemParams(kind="words_voice", voice="voice"),
        {"voice": voice},
        {"name": "made", "synthetic": False, "public": True, "revision": "ab" * 32},
        words=SOURCE,
    )
    return folder / name


def use_stubs(monkeypatch: pytest.MonkeyPatch, recognizer: StubRecognizer) -> None:
    """Let every system of words load a recognizer and the voice of tones."""
    monkeypatch.setattr("voxveil.anonymize.systems.open_recognizer", lambda source: recognizer)
    monkeypatch.setattr("voxveil.pretrained.architectures.load", lambda model: ToneVoice())
