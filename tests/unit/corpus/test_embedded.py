"""The embedded corpus: deterministic, varied, transcribed and timed."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections import Counter

import numpy as np
import pytest

from voxveil.audio.frames import HOP, SAMPLE_RATE
from voxveil.corpus.embedded import EmbeddedSource, make_voice
from voxveil.corpus.espeak import espeak_version, speak
from voxveil.corpus.phones import PHONES
from voxveil.corpus.sentences import PRIVATE_SENTENCES, PUBLIC_SENTENCES
from voxveil.features.pitch.yaapt import track_f0
from voxveil.runtime.errors import ParamsError

pytest.importorskip("espeakng_loader", reason="needs the demo extra")


@pytest.fixture(scope="module")
def source() -> EmbeddedSource:
    return EmbeddedSource(17, 6, 4, 3)


def test_sentences_are_many_plain_and_not_shared() -> None:
    everything = [*PUBLIC_SENTENCES, *PRIVATE_SENTENCES]
    assert len(everything) >= 200
    assert len(set(everything)) == len(everything)
    assert all(set(line.lower()) <= set("abcdefghijklmnopqrstuvwxyz ") for line in everything)


def test_speakers_are_balanced_and_sides_differ(source: EmbeddedSource) -> None:
    sexes = Counter((clip.subset, clip.sex) for clip in source.clips)
    assert sexes == {("public", "F"): 9, ("public", "M"): 9, ("private", "F"): 6, ("private", "M"): 6}
    said = {side: {c.text for c in source.clips if c.subset == side} for side in ("public", "private")}
    assert not said["public"] & said["private"]
    assert all(clip.text == clip.text.upper() for clip in source.clips)
    assert len({clip.id for clip in source.clips}) == len(source.clips) == 30


def test_the_same_bytes_in_any_order_and_process(source: EmbeddedSource) -> None:
    clip, other = source.clips[4], source.clips[9]
    first = source.read(clip)
    source.read(other)
    again = source.read(clip)
    np.testing.assert_array_equal(first.audio, again.audio)
    assert first.phones == again.phones
    code = (
        "import hashlib\nfrom voxveil.corpus.embedded import EmbeddedSource\n"
        "s = EmbeddedSource(17, 6, 4, 3)\n"
        "print(hashlib.sha256(s.read(s.clips[4]).audio.tobytes()).hexdigest())"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == hashlib.sha256(first.audio.tobytes()).hexdigest()


def test_another_seed_gives_other_voices_and_sentences(source: EmbeddedSource) -> None:
    other = EmbeddedSource(18, 6, 4, 3)
    assert [clip.text for clip in other.clips] != [clip.text for clip in source.clips]
    assert make_voice(17, "101", "F") != make_voice(18, "101", "F")


def test_phones_cover_each_utterance(source: EmbeddedSource) -> None:
    seen: set[str] = set()
    for clip in source.clips:
        reading = source.read(clip)
        assert reading.phones is not None
        seen |= {phone.label for phone in reading.phones}
        end = reading.phones[-1].start + reading.phones[-1].seconds
        assert end == pytest.approx(len(reading.audio) / SAMPLE_RATE)
        assert 1.0 < end < 4.0
    assert seen <= set(PHONES)
    assert len(seen) > 30


def test_phone_times_lie_on_the_sound(source: EmbeddedSource) -> None:
    """Vowels are louder than silence where the timing says so; a shift of 0.2 s would show."""
    vowels = {"AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IY", "OW", "UW"}
    right = shifted = 0
    for clip in source.clips[:6]:
        reading = source.read(clip)
        f0 = track_f0(reading.audio)
        for phone in reading.phones or ():
            if phone.label in vowels:
                frame = round((phone.start + phone.seconds / 2) * SAMPLE_RATE / HOP)
                right += bool(f0[frame])
                shifted += bool(f0[min(frame + 20, len(f0) - 1)])
    total = sum(p.label in vowels for c in source.clips[:6] for p in source.read(c).phones or ())
    assert right > 0.95 * total
    assert shifted < right


def test_pitch_follows_the_voice(source: EmbeddedSource) -> None:
    inside: list[bool] = []
    for clip in source.clips[::4]:
        low, high = make_voice(17, clip.speaker, clip.sex).pitch
        f0 = track_f0(source.read(clip).audio)
        inside += list((f0[f0 > 0] > 0.7 * low) & (f0[f0 > 0] < 1.4 * high))
    assert np.mean(inside) > 0.95


def test_utterances_of_a_speaker_differ_in_manner() -> None:
    text = "The yellow bird sang above the garden wall."
    plain = speak(text, make_voice(1, "101", "F").variant(), rate=160, pitch=50)
    fast = speak(text, make_voice(1, "101", "F").variant(), rate=200, pitch=50)
    assert len(fast.samples) < 0.95 * len(plain.samples)
    assert [name for _, name in plain.events]
    assert all(a[0] <= b[0] for a, b in zip(plain.events, plain.events[1:]))


def test_more_utterances_than_sentences_are_refused() -> None:
    with pytest.raises(ParamsError, match=r"prepare.utterances: must be at most \d+"):
        _ = EmbeddedSource(1, 2, 2, 1000).clips


def test_espeak_says_its_version() -> None:
    assert espeak_version().split(".")[0].isdigit()


def test_without_espeak_one_line_says_what_to_install() -> None:
    code = (
        "import sys\nsys.modules['espeakng_loader'] = None\n"
        "from voxveil.corpus.espeak import espeak_version\n"
        "from voxveil.runtime.errors import MissingExtraError\n"
        "try: espeak_version()\nexcept MissingExtraError as error: print(error)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "voxveil[demo]" in result.stdout
