"""A text-to-speech voice: the same words give the same samples, with the times of the words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("onnxruntime")
pytest.importorskip("soxr")

from voxveil.pretrained.faster_whisper import Whisper
from voxveil.pretrained.folder import read_model
from voxveil.pretrained.hibari import HibariVoice, phrases
from voxveil.pretrained.importing import import_model
from voxveil.runtime.errors import InputError

TEXT = "there was a young lady who didn't know that the old king waited at nine o'clock"
WORDS = tuple(TEXT.split())


@pytest.fixture(scope="module")
def folder(imported: Callable[[str], Path]) -> Path:
    pytest.importorskip("hibari")
    return imported("hibari")


@pytest.fixture(scope="module")
def voice(folder: Path) -> HibariVoice:
    return HibariVoice(read_model(folder, "voice"))


def test_the_same_words_give_the_same_samples(voice: HibariVoice, folder: Path) -> None:
    first, second = voice.speak(WORDS), HibariVoice(read_model(folder, "voice")).speak(list(WORDS))
    assert np.array_equal(first.audio, second.audio) and np.array_equal(first.spans, second.spans)
    assert first.audio.dtype == np.float32 and np.isfinite(first.audio).all()
    assert 2 * 16_000 < len(first.audio) < 10 * 16_000
    assert not np.array_equal(voice.speak(WORDS[:-1]).audio[:16_000], np.zeros(16_000))


def test_times_are_in_order_and_hold_the_speech(voice: HibariVoice) -> None:
    spoken = voice.speak(WORDS)
    assert spoken.words == WORDS and spoken.spans.shape == (len(WORDS), 2)
    flat = spoken.spans.reshape(-1)
    assert (np.diff(flat) >= 0).all() and flat[0] >= 0 and flat[-1] <= len(spoken.audio)
    power = spoken.audio.astype(np.float64) ** 2
    assert power[flat[0] : flat[-1]].sum() > 0.99 * power.sum()
    assert (spoken.spans[:, 1] > spoken.spans[:, 0]).all()


def test_no_words_are_a_second_of_silence(voice: HibariVoice) -> None:
    for words in ((), ("\u4e2d\u6587",)):
        spoken = voice.speak(words)
        assert len(spoken.audio) == 16_000 and not spoken.audio.any()
        assert spoken.spans.tolist() == [[0, 0]] * len(words)
    assert len(voice.speak((), 77).audio) == 77


def test_a_word_that_cannot_be_pronounced_is_left_out(voice: HibariVoice) -> None:
    spoken = voice.speak(("hello", "\u4e2d\u6587", "friend"))
    (_, first), (start, end), (second, _) = spoken.spans.tolist()
    assert first == start == end <= second


@pytest.mark.parametrize("factor", [0.02, 0.5, 0.9, 1.7, 8.0])
def test_a_length_is_kept_to_the_sample(voice: HibariVoice, factor: float) -> None:
    samples = round(factor * len(voice.speak(WORDS).audio)) + 1
    spoken = voice.speak(WORDS, samples)
    assert len(spoken.audio) == samples and spoken.spans.max() <= samples
    assert np.isfinite(spoken.audio).all() and spoken.audio.any()
    # Stretched as a whole: what is spoken fills the time, but for the pauses of very slow speech.
    if 0.5 <= factor <= 4:
        assert spoken.spans[-1, 1] > 0.85 * samples


def test_a_length_below_one_sample_is_refused(voice: HibariVoice) -> None:
    with pytest.raises(InputError, match="at least 1 sample"):
        voice.speak(WORDS, 0)


def test_more_phones_than_the_network_takes_are_spoken_in_pieces(voice: HibariVoice) -> None:
    words = ("antidisestablishmentarianism",) * 20
    spoken = voice.speak(words)
    assert len(spoken.spans) == 20 and len(spoken.audio) > 20 * 16_000
    assert voice.speak(("a" * 3_000,)).audio.any()


def test_the_words_are_recognized_where_their_times_say(
    voice: HibariVoice, imported: Callable[[str], Path]
) -> None:
    pytest.importorskip("faster_whisper")
    whisper = Whisper(read_model(imported("faster_whisper"), "recognizer"), "en")
    text = "the old king waited for the rain and the wind"
    spoken = voice.speak(text.split())
    found = whisper.recognize_words(spoken.audio, "a")
    assert " ".join(word.word for word in found).lower().strip(" .") == text
    starts = np.array([word.start for word in found]) - spoken.spans[:, 0] / 16_000
    assert np.median(np.abs(starts)) < 0.15


def test_a_file_that_is_no_voice_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "from").mkdir()
    (tmp_path / "from/hibari.onnx").write_bytes(b"no network")
    with pytest.raises(InputError, match="not a voice of hibari"):
        import_model([str(tmp_path / "from")], "hibari", tmp_path / "to", licence="Apache-2.0")
    assert not (tmp_path / "to").exists()


@given(st.lists(st.sampled_from(["and", "that", "a", "horse", "grey"]), max_size=90))
def test_phrases_hold_all_words_in_order(words: list[str]) -> None:
    found = phrases(words)
    assert [word for phrase in found for word in phrase] == words
    assert all(len(phrase) <= 20 for phrase in found)
    assert len(found) == 1 or all(len(phrase) >= 10 for phrase in found[:-1])
