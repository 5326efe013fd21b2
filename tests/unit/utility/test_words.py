"""Word recognition, and the verdict whether speech is understood."""

from __future__ import annotations

from pathlib import Path

import jiwer
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pocketsphinx")

from voxveil.audio.files import encode_flac
from voxveil.corpus.embedded import EmbeddedSource
from voxveil.corpus.librispeech import read_librispeech
from voxveil.runtime.errors import InputError
from voxveil.utility.edits import Edits, ErrorRate, count_edits, total
from voxveil.utility.intelligibility import permuted_edits, understood
from voxveil.utility.transcripts import normalize_words
from voxveil.utility.word_recognizer import Recognition, WordRecognizer, words_in

WORDS = st.lists(st.sampled_from(["a", "b", "c", "d"]), min_size=1, max_size=8)


@given(WORDS, st.lists(st.sampled_from(["a", "b", "c", "d"]), max_size=8))
def test_word_errors_are_those_of_jiwer(said: list[str], heard: list[str]) -> None:
    ours = count_edits(said, heard)
    theirs = jiwer.process_words(" ".join(said), " ".join(heard))
    assert ours.errors == theirs.substitutions + theirs.deletions + theirs.insertions


@pytest.fixture(scope="module")
def recognizer() -> WordRecognizer:
    return WordRecognizer()


@pytest.fixture(scope="module")
def spoken() -> dict[str, tuple[str, np.ndarray]]:
    """Sentences, and espeak-ng's speech of them at 16 kHz."""
    pytest.importorskip("espeakng_loader", reason="needs the demo extra")
    source = EmbeddedSource(seed=3, public_speakers=0, private_speakers=3, utterances=2)
    return {clip.id: (clip.text, source.read(clip).audio) for clip in source.clips}


def test_what_is_heard_does_not_depend_on_what_came_before(
    spoken: dict[str, tuple[str, np.ndarray]], recognizer: WordRecognizer
) -> None:
    heard = {name: recognizer.recognize(audio) for name, (_, audio) in spoken.items()}
    for name in reversed([*spoken][:3]):
        assert recognizer.recognize(spoken[name][1]) == heard[name]
    # Hardly a word in five of espeak-ng's is understood, but more of one's own than of others' sentences.
    said = {name: normalize_words(text) for name, (text, _) in spoken.items()}
    words = {name: normalize_words(text) for name, text in heard.items()}
    own = total([count_edits(said[name], words[name]) for name in said])
    assert own.rate < total(permuted_edits(said, words, 1)).rate - 5


def test_real_speech_is_heard(librispeech: Path, recognizer: WordRecognizer) -> None:
    source = read_librispeech(librispeech)
    clips = [clip for clip in source.clips if clip.subset == "dev-true"]
    assert len(clips) >= 9
    audio = {clip.id: source.read(clip).audio for clip in clips}
    heard = {clip.id: recognizer.recognize(audio[clip.id]) for clip in clips}
    edits = [count_edits(normalize_words(c.text), normalize_words(heard[c.id])) for c in clips]
    assert total(edits).rate < 50
    for clip in reversed(clips[:3]):
        assert recognizer.recognize(audio[clip.id]) == heard[clip.id]
    others = permuted_edits(
        {c.id: normalize_words(c.text) for c in clips}, {c.id: normalize_words(heard[c.id]) for c in clips}, 1
    )
    assert total(others).rate > 80


def test_noise_has_words_or_none_but_never_fails(recognizer: WordRecognizer) -> None:
    noise = np.random.default_rng(1).normal(0, 0.05, 16_000).astype(np.float32)
    assert isinstance(recognizer.recognize(noise), str)
    assert isinstance(recognizer.recognize(np.zeros(160, np.float32)), str)
    assert words_in((Recognition(), "u", encode_flac(noise, "u")[0])) == recognizer.recognize(noise)
    with pytest.raises(InputError, match="u: audio must be"):
        recognizer.recognize(np.array([np.nan], np.float32), "u")


@given(st.integers(2, 12), st.integers(0, 5))
def test_nobody_gets_their_own_transcript(count: int, seed: int) -> None:
    said = {f"u{i}": [f"word{i}"] for i in range(count)}
    errors = permuted_edits(said, said, seed)
    assert len(errors) % count == 0 and all(e.errors == 1 for e in errors)


def test_permuting_one_utterance_is_refused() -> None:
    with pytest.raises(InputError, match="at least 2 utterances"):
        permuted_edits({"u": ["a"]}, {"u": ["a"]}, 1)


@pytest.mark.parametrize(
    ("errors", "upper", "permuted", "right"),
    [
        (40, 55, 120, True),
        (61, 70, 120, False),
        (59, 95, 120, False),
        (59, 90, 120, True),
        (40, 50, 70, False),
    ],
)
def test_the_rule_is_the_stated_one(errors: int, upper: float, permuted: float, right: bool) -> None:
    rate = ErrorRate(Edits(errors, 0, 0, 100), (0.0, float(upper)), "", 10, 5, 100)
    assert understood(rate, permuted).understood is right


def test_without_an_interval_nothing_is_understood() -> None:
    rate = ErrorRate(Edits(0, 0, 0, 10), None, "an interval needs at least 2 speakers", 3, 1, 0)
    verdict = understood(rate, 120.0)
    assert not verdict.understood and "2 speakers" in verdict.reason
