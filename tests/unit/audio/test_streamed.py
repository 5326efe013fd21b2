"""Audio a block at a time is the audio that is read at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_hostile import Hostile
from voxveil.audio import streamed
from voxveil.audio.files import read_recording
from voxveil.audio.loudness import LoudnessMeter, to_loudness
from voxveil.audio.streamed import SlidingAudio, Spool, announced_seconds, survey
from voxveil.runtime.errors import InputError


def signal(samples: int, level: float = 0.1, offset: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(samples)
    return (np.cumsum(rng.standard_normal(samples)) % 1.0 - 0.5) * level + offset


@pytest.mark.parametrize(("rate", "channels"), [(16_000, 1), (44_100, 2), (8_000, 1), (48_000, 1)])
@pytest.mark.parametrize("offset", [0.0, 0.05])
def test_blocks_are_the_recording(tmp_path: Path, rate: int, channels: int, offset: float) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.stack([signal(150_001, offset=offset)] * channels, axis=1), rate)
    whole, found = read_recording(path), survey(path)
    assert (found.source_rate, found.source_samples) == (whole.source_rate, whole.source_samples)
    assert found.flags == whole.flags
    made = np.concatenate(list(found.blocks()))
    assert len(made) == found.samples == len(whole.audio)
    np.testing.assert_allclose(made, whole.audio, atol=1e-5)
    assert announced_seconds(path) == pytest.approx(150_001 / rate)


@pytest.mark.parametrize(("level", "flag"), [(0.0, "silent"), (1e-4, "quiet"), (2.5, "clipped")])
def test_flags_are_seen_in_blocks_too(tmp_path: Path, level: float, flag: str) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, np.clip(signal(100_000, level), -1, 1), 16_000)
    assert flag in survey(path).flags
    assert survey(path).flags == read_recording(path).flags


def test_what_is_refused_at_once_is_refused_in_blocks(hostile: Hostile) -> None:
    assert hostile.refused and hostile.flags
    for name in hostile.names:
        path = hostile.folder / name
        try:
            read_recording(path)
        except InputError as error:
            assert name in hostile.refused
            with pytest.raises(InputError) as again:
                survey(path)
            assert str(again.value) == str(error)
        else:
            assert name in hostile.flags
            assert survey(path).source_samples > 0


def test_a_recording_that_changes_between_two_readings_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    soundfile.write(path, signal(50_000), 16_000)
    found = survey(path)
    soundfile.write(path, signal(40_000), 16_000)
    with pytest.raises(InputError, match=r"a\.wav: changed"):
        list(found.blocks())


@pytest.mark.parametrize("samples", [6_400, 6_401, 8_000, 16_000, 47_999, 100_000])
@pytest.mark.parametrize("level", [1e-4, 0.1, 3.0])
def test_the_meter_is_the_measure(samples: int, level: float) -> None:
    audio = (signal(samples, level) * np.linspace(0.1, 1, samples)).astype(np.float32)
    meter = LoudnessMeter()
    for start in range(0, samples, 1_234):
        meter.push(audio[start : start + 1_234])
    np.testing.assert_allclose(meter.gain(-23.0) * audio, to_loudness(audio, -23.0), rtol=1e-3, atol=1e-9)


def test_silence_has_no_gain_and_a_click_takes_the_plain_mean() -> None:
    silence, click = LoudnessMeter(), LoudnessMeter()
    silence.push(np.zeros(16_000, np.float32))
    assert silence.gain(-23.0) == 1.0
    audio = np.zeros(160_000, np.float32)
    audio[80_000] = 0.5
    click.push(audio)
    np.testing.assert_allclose(click.gain(-23.0) * audio, to_loudness(audio, -23.0), rtol=1e-3)


def test_sliding_pieces_and_zeros_behind_the_end() -> None:
    whole = np.arange(1_000, dtype=np.float32)
    sliding = SlidingAudio(whole[start : start + 130] for start in range(0, 1_000, 130))
    for start, stop in ((0, 10), (5, 400), (300, 310), (350, 990), (900, 1_100)):
        expected = np.pad(whole, (0, 200))[start:stop]
        np.testing.assert_array_equal(sliding.take(start, stop), expected)


@pytest.mark.parametrize("form", ["FLAC", "WAV"])
def test_a_spool_stores_at_a_loudness_and_leaves_nothing_else(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamed, "_BLOCK", 1_000)
    audio = signal(30_000, 0.01).astype(np.float32)
    output = tmp_path / f"deep/a.{form.lower()}"
    with Spool.beside(output) as spool:
        spool.write(audio[:10_000])
        spool.write(audio[10_000:])
        clipped = spool.store(output, form, -23.0)
    stored, rate = soundfile.read(output, dtype="float32")
    wanted = to_loudness(audio, -23.0)
    assert rate == 16_000
    np.testing.assert_allclose(stored, np.clip(wanted, -1, 1), atol=1e-4 * np.abs(wanted).max() + 1 / 32768)
    assert clipped == np.count_nonzero(np.abs(wanted) > 1)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == [output.name]
