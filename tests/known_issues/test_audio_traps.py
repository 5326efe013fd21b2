"""Faults people met with audio files: each is one test."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_corpora import vowel, write_corpus, write_params
from voxveil.audio.files import decode, encode_flac, expected_samples, pad_short, read_recording
from voxveil.cli.main import main
from voxveil.corpus.split import Split
from voxveil.features.pitch.yaapt import track_f0
from voxveil.runtime.errors import InputError


def run_prepare(folder: Path, **values: object) -> int:
    params = write_params(folder / "params.yaml", **values)
    outputs = [f"--out={side}={folder / 'out' / side}" for side in ("public", "private")]
    return main(["stage", "prepare", "--params", str(params), *outputs])


def test_a_speaker_without_voiced_frames_is_listed(tmp_path: Path) -> None:
    """An empty mean of log F0 became NaN, or log(0) was taken."""
    corpus = write_corpus(tmp_path / "corpus")
    for number, path in enumerate(sorted(corpus.glob("part/20/7/*.flac"))):
        soundfile.write(path, np.random.default_rng(number).normal(0, 0.1, 16_000), 16_000)
    assert run_prepare(tmp_path, source=str(corpus)) == 0
    listed = [
        json.loads((tmp_path / "out" / side / "exceptions.json").read_text())[
            "speakers_without_voiced_frames"
        ]
        for side in ("public", "private")
    ]
    assert sorted(listed) == [[], ["20"]]


@pytest.mark.parametrize("samples", [15_999, 16_000, 16_001, 16_159])
def test_frame_counts_agree_at_every_length(tmp_path: Path, samples: int) -> None:
    """Pitch and spectrum differed by one frame."""
    soundfile.write(tmp_path / "a.wav", vowel(samples), 16_000)
    audio = read_recording(tmp_path / "a.wav").audio
    assert len(audio) == samples
    assert len(track_f0(audio)) == samples // 160 + 1


@pytest.mark.parametrize("samples", [1, 400, 800])
def test_very_short_clips_are_padded_and_counted(tmp_path: Path, samples: int) -> None:
    """A clip shorter than a kernel crashed the network; 0 samples are refused by name."""
    corpus = write_corpus(tmp_path / "corpus", each=2)
    paths = sorted(corpus.rglob("*-0001.flac"))
    for path in paths:
        soundfile.write(path, vowel(samples) + 0.01, 16_000)
    if samples == 1:  # a single sample is constant, which is silence
        assert run_prepare(tmp_path, source=str(corpus)) == 2
        return
    assert run_prepare(tmp_path, source=str(corpus)) == 0
    facts = [json.loads((tmp_path / "out" / s / "corpus.json").read_text()) for s in ("public", "private")]
    assert sum(fact["flags"]["padded"] for fact in facts) == len(paths)
    split = Split(tmp_path / "out/private/private")
    assert min(utterance.samples for utterance in split) == 1600
    assert len(pad_short(np.zeros(samples, np.float32))) == 1600


def test_the_rate_is_read_and_narrow_bands_are_flagged(tmp_path: Path) -> None:
    """Audio of another rate was taken as 16 kHz."""
    for rate in (8000, 16_000, 48_000):
        time = np.arange(rate) / rate
        soundfile.write(tmp_path / f"{rate}.wav", 0.3 * np.sin(2 * np.pi * 200 * time), rate)
        recording = read_recording(tmp_path / f"{rate}.wav")
        spectrum = np.abs(np.fft.rfft(recording.audio))
        assert len(recording.audio) == 16_000 == expected_samples(rate, rate)
        assert spectrum.argmax() == 200
        assert ("band_limited" in recording.flags) == (rate == 8000)


def test_stereo_with_equal_channels_is_the_mono_recording(tmp_path: Path) -> None:
    """Two channels broke shapes, or each was taken as a sample."""
    audio = vowel(8000)
    soundfile.write(tmp_path / "mono.wav", audio, 16_000)
    soundfile.write(tmp_path / "stereo.wav", np.stack([audio, audio], axis=1), 16_000)
    mono, stereo = (read_recording(tmp_path / f"{name}.wav").audio for name in ("mono", "stereo"))
    np.testing.assert_array_equal(mono, stereo)


def test_a_damaged_flac_is_named_and_can_be_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A damaged file stopped a long job without its name."""
    corpus = write_corpus(tmp_path / "corpus", each=3)
    damaged = corpus / "part/21/7/21-7-0002.flac"
    damaged.write_bytes(damaged.read_bytes()[: damaged.stat().st_size // 2])
    assert run_prepare(tmp_path, source=str(corpus)) == 2
    assert "21-7-0002.flac: refused" in capsys.readouterr().err
    assert not (tmp_path / "out/public").exists()
    assert run_prepare(tmp_path, source=str(corpus), on_bad_audio="skip") == 0
    assert "skipped 21-7-0002: " in capsys.readouterr().err
    facts = [json.loads((tmp_path / "out" / s / "corpus.json").read_text()) for s in ("public", "private")]
    assert sum(fact["skipped"] for fact in facts) == 1
    assert sum(s["utterances"] for fact in facts for s in fact["splits"].values()) == 35


def test_samples_beyond_full_scale_never_wrap() -> None:
    """A plain cast to 16 bit turned 1.5 into a negative number; NaN became a click."""
    data, clipped = encode_flac(np.array([0.5, 1.5, -1.5] * 100), "u")
    stored = decode(data, "u")
    assert clipped == 200
    np.testing.assert_allclose(stored[:3], [0.5, 1.0, -1.0], atol=1e-4)
    assert soundfile.info(io.BytesIO(data)).subtype == "PCM_16"
    with pytest.raises(InputError, match="utterance u"):
        encode_flac(np.array([0.0, np.nan]), "u")
