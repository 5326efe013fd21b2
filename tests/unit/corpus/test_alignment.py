"""Forced alignment: spoken by espeak-ng, whose own phone times are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soxr

pytest.importorskip("pocketsphinx")
pytest.importorskip("espeakng_loader")

from voxveil.audio.files import encode_flac
from voxveil.audio.frames import frame_count
from voxveil.corpus.alignment import AlignedSource, Aligner, Alignment
from voxveil.corpus.embedded import EmbeddedSource
from voxveil.corpus.espeak import pronounce, speak
from voxveil.corpus.librispeech import read_librispeech
from voxveil.corpus.phones import PHONES, pronunciation
from voxveil.corpus.split import Split, SplitWriter, Utterance
from voxveil.features.content.labels import frame_labels, phone_targets, state_targets
from voxveil.runtime.errors import IncompleteInputError, InputError


@pytest.fixture(scope="module")
def source() -> EmbeddedSource:
    return EmbeddedSource(seed=3, public_speakers=2, private_speakers=2, utterances=3)


@pytest.fixture(scope="module")
def aligner() -> Aligner:
    return Aligner()


@pytest.fixture(scope="module")
def aligned(source: EmbeddedSource, aligner: Aligner) -> dict[str, Alignment]:
    return {clip.id: aligner.align(source.read(clip).audio, clip.text, clip.id) for clip in source.clips}


def test_it_agrees_with_the_times_the_speech_was_made_with(
    source: EmbeddedSource, aligned: dict[str, Alignment]
) -> None:
    right = total = 0
    for clip in source.clips:
        reading = source.read(clip)
        frames = frame_count(len(reading.audio))
        truth = frame_labels(reading.phones, frames, PHONES, clip.id)
        found = frame_labels(aligned[clip.id].phones, frames, PHONES, clip.id)
        right, total = right + int((truth == found).sum()), total + frames
    # Two dictionaries differ in vowels; an alignment that is off by 50 ms would get less than 40 %.
    assert right / total > 0.55


def test_a_shift_of_the_labels_fits_worse(source: EmbeddedSource, aligned: dict[str, Alignment]) -> None:
    """The two frame grids are laid over one another right: moving either way by 30 ms agrees less."""
    scores = []
    for shift in (-3, 0, 3):
        right = 0
        for clip in source.clips:
            reading = source.read(clip)
            frames = frame_count(len(reading.audio))
            truth = frame_labels(reading.phones, frames, PHONES, clip.id)
            found = frame_labels(aligned[clip.id].phones, frames, PHONES, clip.id)
            right += int((truth == np.roll(found, shift)).sum())
        scores.append(right)
    assert scores[1] > scores[0] and scores[1] > scores[2]


def test_phones_cover_the_utterance_and_states_every_frame(
    source: EmbeddedSource, aligned: dict[str, Alignment]
) -> None:
    for clip in source.clips:
        audio, found = source.read(clip).audio, aligned[clip.id]
        assert found.phones[0].start == 0.0
        for before, after in zip(found.phones, found.phones[1:]):
            assert after.start == pytest.approx(before.start + before.seconds)
            assert after.label != before.label
        last = found.phones[-1]
        assert last.start + last.seconds == pytest.approx(len(audio) / 16_000)
        assert found.states.shape == (frame_count(len(audio)),) and found.states.min() >= 0


def test_an_utterance_does_not_depend_on_those_before_it(
    source: EmbeddedSource, aligned: dict[str, Alignment]
) -> None:
    other = Aligner()
    for clip in reversed(source.clips):
        again = other.align(source.read(clip).audio, clip.text, clip.id)
        assert again.phones == aligned[clip.id].phones
        assert (again.states == aligned[clip.id].states).all()


def test_words_outside_the_dictionary_are_pronounced_by_espeak(aligner: Aligner) -> None:
    expected = ("K", "W", "IH", "L", "T", "ER", "Z")
    assert pronunciation(pronounce("quilter's"), "quilter's") == expected
    speech = speak("See the quilter's house.", "language variant\nname plain\n", rate=140, pitch=50)
    audio = soxr.resample(speech.samples / 32768.0, speech.rate, 16_000)
    found = [phone.label for phone in aligner.align(audio, "SEE THE QUILTER'S HOUSE", "u").phones]
    start = found.index("K")
    assert tuple(found[start : start + 7]) == expected


def test_another_transcript_is_refused_by_name(source: EmbeddedSource, aligner: Aligner) -> None:
    short = source.read(source.clips[0]).audio[:8000]
    with pytest.raises(InputError, match="utterance u1: its transcript does not fit its audio"):
        aligner.align(short, "this half second cannot hold so many words as are written here " * 3, "u1")
    with pytest.raises(InputError, match="utterance u2: has no transcript to align"):
        aligner.align(short, " ", "u2")


def test_states_are_classes_of_one_phone_each(
    source: EmbeddedSource, aligned: dict[str, Alignment], tmp_path: Path
) -> None:
    with SplitWriter(tmp_path) as writer:
        for clip in source.clips:
            reading = AlignedSource(source).read(clip)
            samples = len(reading.audio)
            writer.add(
                Utterance(clip.id, clip.speaker, clip.sex, samples),
                encode_flac(reading.audio, clip.id)[0],
                phones=reading.phones,
                states=reading.states,
            )
    split = Split(tmp_path)
    phones = phone_targets(split, split.utterances, PHONES)
    states = state_targets(split, split.utterances, phones)
    assert len(states.class_phones) > len(PHONES)
    # The phone of a frame's state is the phone of the frame, but where neighbours were rounded.
    for name, labels in states.labels.items():
        same = np.asarray(states.class_phones)[labels] == phones.labels[name]
        assert same.mean() > 0.9


def test_states_of_another_length_are_refused(tmp_path: Path) -> None:
    flac, _ = encode_flac(np.zeros(1600, np.float32), "u")
    refused = pytest.raises(IncompleteInputError, match="utterance u: states must be 11 numbers")
    with refused, SplitWriter(tmp_path) as writer:
        writer.add(Utterance("u", "s", "F", 1600), flac, states=np.zeros(10, np.int16))
    assert not (tmp_path / "manifest.jsonl").exists()


def test_fewer_than_two_percent_of_real_speech_fail(librispeech: Path, aligner: Aligner) -> None:
    """Every tenth utterance of the excerpt; all of it: 6 of 935, each with a transcript made by machine."""
    source = read_librispeech(librispeech)
    clips = [clip for clip in source.clips if clip.subset in ("dev-true", "test-other", "test-mini")][::10]
    failed = []
    for clip in clips:
        try:
            aligner.align(source.read(clip).audio, clip.text, clip.id)
        except InputError:
            failed.append(clip.id)
    assert len(clips) > 20 and len(failed) / len(clips) < 0.02
