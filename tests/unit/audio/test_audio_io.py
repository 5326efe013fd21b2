"""Audio in and out: the stated rules, one by one."""

from __future__ import annotations

import io
from math import ceil
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from made_hostile import Hostile
from voxveil.audio.files import (
    SHORT_SAMPLES,
    decode,
    encode_flac,
    expected_samples,
    pad_short,
    read_recording,
)
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.runtime.errors import IncompleteInputError, InputError


def tone(samples: int, rate: int = SAMPLE_RATE, frequency: float = 440.0, level: float = 0.5) -> np.ndarray:
    return level * np.sin(2 * np.pi * frequency * np.arange(samples) / rate)


def wav(path: Path, audio: np.ndarray, rate: int = SAMPLE_RATE, **kwargs: str) -> Path:
    soundfile.write(path, audio, rate, **kwargs)
    return path


@given(st.integers(1, 10**7), st.sampled_from([8000, 11025, 16000, 22050, 44100, 48000, 192000]))
def test_expected_samples_is_the_exact_ceiling(samples: int, rate: int) -> None:
    got = expected_samples(samples, rate)
    assert (got - 1) * rate < samples * SAMPLE_RATE <= got * rate


@pytest.mark.parametrize("samples", [1, 2, 159, 160, 4096, 15_999, 16_000, 70_001])
def test_flac_keeps_16_bit_samples_exactly(samples: int) -> None:
    integers = np.random.default_rng(samples).integers(-32768, 32768, samples)
    audio = (integers / 32768).astype(np.float32)
    data, clipped = encode_flac(audio, "a")
    assert clipped == 0
    np.testing.assert_array_equal(decode(data, "a"), audio)


def test_samples_beyond_full_scale_are_clipped_and_counted() -> None:
    data, clipped = encode_flac(np.array([0.5, 1.5, -1.5, 1.0, -1.0]), "a")
    integers, _ = soundfile.read(io.BytesIO(data), dtype="int16")
    assert integers.tolist() == [16384, 32767, -32768, 32767, -32768]
    assert clipped == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_samples_that_are_not_numbers_are_refused_by_name(bad: float) -> None:
    audio = np.zeros(10)
    audio[3] = bad
    with pytest.raises(InputError, match="utterance 61-7-0001: 1 of 10 samples"):
        encode_flac(audio, "61-7-0001")


@pytest.mark.parametrize("shape", [(0,), (2, 8)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="utterance a: audio must be"):
        encode_flac(np.zeros(shape), "a")


def test_equal_audio_gives_equal_bytes() -> None:
    audio = tone(5000)
    assert encode_flac(audio, "a")[0] == encode_flac(audio.copy(), "b")[0]


@pytest.mark.parametrize("data", [b"", b"fLaC", b"no audio at all"])
def test_decode_names_the_utterance_it_cannot_read(data: bytes) -> None:
    with pytest.raises(IncompleteInputError, match="utterance u7"):
        decode(data, "u7")


def test_decode_refuses_stored_audio_of_another_form() -> None:
    buffer = io.BytesIO()
    soundfile.write(buffer, np.zeros((100, 2)), 8000, format="FLAC")
    with pytest.raises(IncompleteInputError, match=r"utterance u7.*8000 Hz, 2 channels"):
        decode(buffer.getvalue(), "u7")


@pytest.mark.parametrize("rate", [8000, 11_025, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("samples", [1, 441, 12_345])
def test_resampled_to_the_exact_length(tmp_path: Path, rate: int, samples: int) -> None:
    recording = read_recording(wav(tmp_path / "a.wav", tone(samples, rate), rate))
    assert len(recording.audio) == ceil(samples * 16_000 / rate)
    assert (recording.source_rate, recording.source_samples) == (rate, samples)
    assert "resampled" in recording.flags
    assert ("band_limited" in recording.flags) == (rate < 16_000)
    assert recording.audio.dtype == np.float32


@pytest.mark.parametrize("rate", [22_050, 44_100, 48_000])
def test_resampling_keeps_a_tone(tmp_path: Path, rate: int) -> None:
    recording = read_recording(wav(tmp_path / "a.wav", tone(rate, rate), rate, subtype="FLOAT"))
    middle = slice(2000, 14_000)
    np.testing.assert_allclose(recording.audio[middle], tone(16_000)[middle], atol=2e-3)


def test_a_16_khz_file_passes_unchanged(tmp_path: Path) -> None:
    audio = tone(16_000)
    audio -= audio.mean()
    recording = read_recording(wav(tmp_path / "a.wav", audio, subtype="FLOAT"))
    np.testing.assert_array_equal(recording.audio, audio.astype(np.float32))
    assert recording.flags == ()


def test_channels_are_averaged(tmp_path: Path) -> None:
    left, right = tone(8000), tone(8000, frequency=220.0)
    recording = read_recording(wav(tmp_path / "a.wav", np.stack([left, right], 1), subtype="FLOAT"))
    assert recording.audio.shape == (8000,)
    assert recording.flags == ("downmixed",)
    np.testing.assert_allclose(recording.audio, (left + right) / 2, atol=2e-3)


def test_an_offset_is_removed_and_silence_and_quiet_are_told_apart(tmp_path: Path) -> None:
    shifted = read_recording(wav(tmp_path / "dc.wav", tone(16_000, level=0.3) + 0.25))
    assert shifted.flags == ("dc_offset",)
    assert abs(float(shifted.audio.mean())) < 1e-4
    silent = read_recording(wav(tmp_path / "silent.wav", np.zeros(16_000)))
    assert silent.flags == ("silent",)
    constant = read_recording(wav(tmp_path / "constant.wav", np.full(16_000, 0.5)))
    assert constant.flags == ("dc_offset", "silent")
    assert not constant.audio.any()
    quiet = read_recording(wav(tmp_path / "quiet.wav", tone(16_000, level=5e-4)))
    assert quiet.flags == ("quiet",)


def test_clipping_is_seen(tmp_path: Path) -> None:
    assert read_recording(wav(tmp_path / "a.wav", np.clip(tone(16_000, level=3.0), -1, 1))).flags == (
        "clipped",
    )


def test_the_content_decides_not_the_name(tmp_path: Path) -> None:
    path = tmp_path / "a.flac"
    soundfile.write(path, tone(16_000), 16_000, format="WAV")
    assert read_recording(path).flags == ("mislabelled",)


@pytest.mark.parametrize("samples", [1, 400, 800, SHORT_SAMPLES - 1, SHORT_SAMPLES])
def test_short_recordings_are_flagged_and_padded_to_one_minimum(tmp_path: Path, samples: int) -> None:
    recording = read_recording(wav(tmp_path / "a.wav", tone(samples) + 0.005))
    assert len(recording.audio) == samples
    assert ("short" in recording.flags) == (samples < SHORT_SAMPLES)
    padded = pad_short(recording.audio)
    assert len(padded) == SHORT_SAMPLES
    np.testing.assert_array_equal(padded[:samples], recording.audio)
    assert not padded[samples:].any()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "0 bytes"),
        (b"These are words.\n" * 9, "not readable as audio"),
        (b"fLaC" + bytes(38), "0 samples"),
    ],
)
def test_files_without_audio_are_refused_by_name(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "a.flac"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"a.flac: refused.*{reason}") as caught:
        read_recording(path)
    assert "\n" not in str(caught.value)


def test_a_recording_of_0_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a.wav: refused, it has 0 samples"):
        read_recording(wav(tmp_path / "a.wav", np.zeros(0)))


def test_missing_files_and_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="b.wav: no such file"):
        read_recording(tmp_path / "b.wav")
    with pytest.raises(InputError, match="not a regular file"):
        read_recording(tmp_path)


def test_low_rates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"4000 Hz; at least 8000 Hz"):
        read_recording(wav(tmp_path / "a.wav", tone(4000, 4000), 4000))


def test_not_a_number_in_a_float_file_is_refused(tmp_path: Path) -> None:
    audio = tone(4000)
    audio[7] = np.nan
    with pytest.raises(InputError, match="a.wav: refused, it holds samples that are NaN"):
        read_recording(wav(tmp_path / "a.wav", audio, subtype="FLOAT"))


@pytest.mark.parametrize(
    ("peak", "accepted"), [(32_768.0, True), (2.0**31, True), (1e10, False), (3e38, False)]
)
def test_samples_of_any_integer_scale_are_read_and_larger_ones_refused(
    tmp_path: Path, peak: float, accepted: bool
) -> None:
    """Samples of 1e37 overflowed in the spectrum, after their loss was announced."""
    path = wav(tmp_path / "a.wav", tone(16_000, level=1.0) * peak, subtype="FLOAT")
    if accepted:
        assert "clipped" in read_recording(path).flags
    else:
        with pytest.raises(InputError, match=r"a\.wav: refused, its peak is .* times full scale"):
            read_recording(path)


@pytest.mark.parametrize("level", [1e-6, 1e-10, 1e-38])
def test_what_16_bit_cannot_hold_is_silence(tmp_path: Path, level: float) -> None:
    """A corpus stored it as zeros, and called it quiet."""
    recording = read_recording(wav(tmp_path / "a.wav", tone(16_000, level=level), subtype="FLOAT"))
    assert recording.flags == ("silent",)


def test_what_the_system_does_not_let_read_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = wav(tmp_path / "a.wav", tone(4000))

    def refuses(*_: object, **__: object) -> None:  # permissions do not stop the superuser
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuses)
    with pytest.raises(InputError, match=r"a\.wav: refused, cannot be read \(Permission denied\)"):
        read_recording(path)


def test_every_hostile_file_is_read_or_refused_in_one_line(hostile: Hostile) -> None:
    refused, flags = {}, {}
    for name in hostile.names:
        path = hostile.folder / name
        try:
            recording = read_recording(path)
        except InputError as error:
            refused[name] = str(error)
            continue
        assert np.isfinite(recording.audio).all()
        assert len(recording.audio) == expected_samples(recording.source_samples, recording.source_rate)
        flags[name] = set(recording.flags)
    assert set(refused) == set(hostile.refused)
    for name, line in refused.items():
        assert line.startswith(f"{hostile.folder / name}: refused, {hostile.refused[name]}")
        assert "\n" not in line
    assert flags == {name: set(expected.split()) for name, expected in hostile.flags.items()}
