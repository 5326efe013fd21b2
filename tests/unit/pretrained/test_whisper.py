"""Whisper as a recognizer: real speech, long utterances, languages, refusals."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("faster_whisper")
soundfile = pytest.importorskip("soundfile")

from voxveil.pretrained.faster_whisper import Whisper
from voxveil.pretrained.folder import read_model
from voxveil.runtime.errors import InputError
from voxveil.utility.edits import count_edits, total
from voxveil.utility.transcripts import normalize_words


@pytest.fixture(scope="module")
def whisper(imported: Callable[[str], Path]) -> Whisper:
    return Whisper(read_model(imported("faster_whisper"), "recognizer"), "en")


def true_speech(librispeech: Path) -> list[tuple[Any, list[str]]]:
    """Return the utterances of dev-true with their words."""
    found = []
    for path in sorted((librispeech / "dev-true").rglob("*.trans.txt")):
        for line in path.read_text().splitlines():
            name, _, words = line.partition(" ")
            audio = soundfile.read(path.with_name(f"{name}.flac"), dtype="float32")[0]
            found.append((audio, normalize_words(words)))
    assert found
    return found


def test_few_words_of_clean_speech_are_wrong(whisper: Whisper, librispeech: Path) -> None:
    edits = []
    for audio, words in true_speech(librispeech)[:5]:
        edits.append(count_edits(words, normalize_words(whisper.recognize(audio, "a"))))
    rate = total(edits).rate
    assert rate is not None and rate < 15


def test_speech_over_thirty_seconds_is_recognized_to_its_end(whisper: Whisper, librispeech: Path) -> None:
    speech = true_speech(librispeech)
    parts, words = [], []
    while sum(len(part) for part in parts) < 33 * 16000:
        audio, said = speech[len(parts)]
        parts.append(audio)
        words.append(said)
    found = normalize_words(whisper.recognize(np.concatenate(parts), "long"))
    edits = count_edits(words[-1], found[-len(words[-1]) :])
    assert edits.rate is not None and edits.rate < 30


def test_words_have_times_in_order(whisper: Whisper, librispeech: Path) -> None:
    audio, _ = true_speech(librispeech)[0]
    words = whisper.recognize_words(audio, "a")
    times = [time for word in words for time in (word.start, word.end)]
    assert times == sorted(times) and times[-1] <= len(audio) / 16000 + 0.5
    assert " ".join(word.word for word in words) == whisper.recognize(audio, "a")


def test_an_unknown_language_and_unusable_audio_are_refused(
    whisper: Whisper, imported: Callable[[str], Path]
) -> None:
    with pytest.raises(InputError, match="language 'klingon' is unknown"):
        Whisper(read_model(imported("faster_whisper")), "klingon")
    with pytest.raises(InputError, match="utterance 3: audio must be"):
        whisper.recognize(np.array([np.inf], np.float32), "utterance 3")
