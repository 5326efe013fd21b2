"""Long recordings in windows: each vector once, pitch charged per window, speech without a seam."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from made_speech import made_bundles, speak
from voxveil.anonymize.anonymizer import Anonymizer
from voxveil.audio.frames import HOP, frame_count
from voxveil.audio.mcadams import mcadams
from voxveil.cli.main import main
from voxveil.features.extraction import System
from voxveil.privacy import LaplaceCube, LaplaceSimplex, SystemNoise
from voxveil.privacy.ledger import read_ledgers
from voxveil.privacy.loss_rule import LossRule, utterance_total


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    return made_bundles(folder)


def windowed(bundles: Path, system: str, window: int) -> Anonymizer:
    """Return an anonymizer that releases windows of at most ``window`` frames."""
    loaded = Anonymizer.load(bundles / system)
    return Anonymizer(replace(loaded.bundle, rule=replace(loaded.bundle.rule, window=window)))


def blocks(audio: np.ndarray, size: int = 5_000) -> list[np.ndarray]:
    return [audio[start : start + size] for start in range(0, len(audio), size)]


@given(st.integers(1, 5_000), st.integers(1, 700), st.integers(1, 5))
def test_spans_tile_the_frames_and_never_cut_a_vector(frames: int, window: int, every: int) -> None:
    window = max(window, every)
    rule = LossRule(LaplaceCube(2.0), LaplaceSimplex(3.0), 4, every, window)
    spans = rule.spans(frames)
    assert spans[0][0] == 0 and spans[-1][1] == frames
    assert all(first[1] == second[0] for first, second in zip(spans, spans[1:]))
    assert all(start % every == 0 for start, _ in spans)
    sizes = [stop - start for start, stop in spans]
    assert max(sizes) < window + every and len(spans) == -(-frames // window)
    assert sum(rule.vectors(size) for size in sizes) == rule.vectors(frames)
    losses = rule.losses(frames)
    assert losses["pitch"].epsilon == pytest.approx(2.0 * len(spans))
    assert losses["pitch"].sensitivity == 4.0 * max(sizes)
    total = utterance_total(losses, rule.vectors(frames)).epsilon
    assert total == pytest.approx(2.0 * len(spans) + 3.0 * rule.vectors(frames))


def test_windows_speak_as_one_does(bundles: Path) -> None:
    """Content, phase, noise and spectra run on: an identity system sounds the same either way."""
    samples = 40_123
    audio, f0 = speak(130.0, samples)
    whole = Anonymizer.load(bundles / "anon")
    system, synthesizer = whole.system.extraction, whole.system.synthesizer
    target = whole.system.target(np.random.default_rng(0), None)
    f0 = np.where(f0 > 0, f0, 100.0).astype(np.float32)
    features = system.release_features(audio, f0, SystemNoise())
    expected = synthesizer.synthesize(features.content, features.pitch, target, samples)

    from voxveil.synthesis.synthesizer import WindowedSpeech

    rule = replace(system.rule, window=60)
    speech, context = WindowedSpeech(synthesizer, target, samples), system.content.context
    pieces, frames = [], frame_count(samples)
    for start, stop in rule.spans(frames):
        first, last = max(0, start - context), min(frames, stop + context)
        heard = audio[HOP * first : samples if last == frames else HOP * (last - 1)]
        span = slice(start - first, stop - first)
        content, pitch = system.release_window(heard, f0[first:last], span, SystemNoise())
        np.testing.assert_allclose(content.value, features.content.value[start:stop], atol=1e-5)
        pieces.append(speech.push(content, pitch))
    pieces.append(speech.finish())
    made = np.concatenate(pieces)
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, atol=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("samples", [16_000, 40_123, 79_999, 80_000])
@pytest.mark.parametrize("system", ["anon_dp", "anon_pc", "mcadams", "copy", "original"])
def test_any_length_comes_back_exactly_and_is_charged_as_announced(
    bundles: Path, system: str, samples: int
) -> None:
    anonymizer = windowed(bundles, system, 150)
    losses: dict = {}
    audio = speak(120.0, samples)[0]
    pieces = list(anonymizer.anonymize_windows(blocks(audio), samples, losses))
    made = np.concatenate(pieces)
    assert made.shape == (samples,)
    assert np.isfinite(made).all()
    assert losses == anonymizer.losses(samples)
    if system == "original":
        np.testing.assert_array_equal(made, audio)


def test_mcadams_in_windows_is_mcadams(bundles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anonymizer = windowed(bundles, "mcadams", 100)
    object.__setattr__(anonymizer.bundle, "coefficients", (0.7, 0.7))
    audio = speak(120.0, 50_001)[0]
    made = np.concatenate(list(anonymizer.anonymize_windows(blocks(audio), 50_001, {})))
    np.testing.assert_allclose(made, mcadams(audio, 0.7), atol=1e-6)


def test_no_vector_and_no_pitch_frame_is_released_twice(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: dict[str, int] = {"content": 0, "pitch": 0, "windows": 0}
    real = System.release_window

    def counted(self, audio, f0, span, noise):  # type: ignore[no-untyped-def]
        content, pitch = real(self, audio, f0, span, noise)
        assert isinstance(noise, SystemNoise)
        assert len(f0) > len(pitch.value)
        released["content"] += len(content.value)
        released["pitch"] += len(pitch.value)
        released["windows"] += 1
        return content, pitch

    monkeypatch.setattr(System, "release_window", counted)
    anonymizer = windowed(bundles, "anon_dp", 150)
    losses: dict = {}
    list(anonymizer.anonymize_windows(blocks(speak(120.0, 80_000)[0]), 80_000, losses))
    assert released == {"content": 501, "pitch": 501, "windows": 4}
    assert losses["pitch"].epsilon == 40.0
    assert "4 windows of at most 150 frames, epsilon 10 each" in losses["pitch"].note


def test_a_long_file_by_command(
    bundles: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    audio = speak(120.0, 12 * 44_100 + 5)[0]
    soundfile.write(tmp_path / "long.wav", np.stack([audio, audio], axis=1), 44_100)
    samples = -(-len(audio) * 16_000 // 44_100)
    command = ["anonymize", "long.wav", "out.wav", "--model", str(bundles / "anon_dp")]
    assert main([*command, "--format", "wav", "--window", "5"]) == 0
    said = capsys.readouterr().out
    assert "real-time factor" in said and "12.0 s of speech" in said
    info = soundfile.info("out.wav")
    assert (info.frames, info.samplerate, info.format) == (samples, 16_000, "WAV")
    (release,) = read_ledgers(tmp_path)
    (entry,) = release.entries
    assert entry.vectors == frame_count(samples)
    assert entry.losses["pitch"].epsilon == 30.0
    assert entry.utterance.epsilon == pytest.approx(30 + 10 * entry.vectors)
    assert not list(tmp_path.glob("*.partial"))
    assert main([*command, "--format", "wav", "--window", "5"]) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert main([*command, "--format", "wav", "--window", "6"]) == 2
    assert "2 windows" not in capsys.readouterr().err
