"""Voice activity by Silero VAD on speech of espeak-ng, noise and silence; spans by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("onnxruntime")
resample = pytest.importorskip("soxr").resample

from voxveil.pretrained.architectures import load
from voxveil.pretrained.folder import read_model
from voxveil.pretrained.importing import import_model
from voxveil.pretrained.silero import SileroVad, speech_spans
from voxveil.runtime.errors import InputError


@pytest.fixture(scope="module")
def detector(imported: Callable[[str], Path]) -> SileroVad:
    return load(read_model(imported("silero_vad"), "voice_activity"))


@pytest.fixture(scope="module")
def speech() -> np.ndarray:
    """A sentence of two to four seconds."""
    pytest.importorskip("espeakng_loader", reason="the extra demo is not installed")
    from voxveil.corpus.espeak import speak

    spoken = speak("The boat was full of heavy boxes, and nobody knew why.", "", rate=160, pitch=50)
    return resample(spoken.samples / 32768.0, spoken.rate, 16_000).astype(np.float32)


def test_speech_is_found_between_silences(detector: SileroVad, speech: np.ndarray) -> None:
    rng = np.random.default_rng(1)
    quiet = rng.normal(0, 1e-4, 24_000)
    clip = np.concatenate([quiet, speech, quiet]).astype(np.float32)
    spans = detector.spans(clip, "clip")
    first, last = spans[0][0], spans[-1][1]
    assert abs(first - 24_000) < 4_000 and abs(last - 24_000 - len(speech)) < 6_000
    assert sum(stop - start for start, stop in spans) > 0.6 * len(speech)
    assert detector.spans(clip, "again") == spans


@pytest.mark.parametrize("level", [0.0, 1e-3, 0.05])
def test_silence_and_noise_are_no_speech(detector: SileroVad, level: float) -> None:
    noise = np.random.default_rng(2).normal(0, level, 48_000).astype(np.float32)
    assert detector.spans(noise, "noise") == []


def test_a_clip_shorter_than_a_window_is_taken_and_an_empty_one_refused(detector: SileroVad) -> None:
    assert detector.spans(np.zeros(10, np.float32), "short") == []
    with pytest.raises(InputError, match="empty: audio must be"):
        detector.spans(np.zeros(0, np.float32), "empty")


def test_licence_comes_from_the_package(imported: Callable[[str], Path]) -> None:
    model = read_model(imported("silero_vad"))
    assert model.licence == "MIT License"
    assert model.source.startswith("package silero-vad==")


def test_another_network_is_refused(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    other = weights / "speechmos/dnsmos_models/sig_bak_ovr.onnx"
    (tmp_path / "source/silero_vad.onnx").write_bytes(other.read_bytes())
    with pytest.raises(InputError, match="not a silero_vad network; its inputs are input_1"):
        import_model([str(tmp_path / "source")], "silero_vad", tmp_path / "out", licence="MIT")


@pytest.mark.parametrize(
    ("speaking", "spans"),
    [
        ("", []),
        ("..........", []),
        # Two windows (64 ms) are too short; ten (320 ms) are padded by 480 samples.
        ("..##......", []),
        (".##########.....", [(512 - 480, 11 * 512 + 480)]),
        # A silence below 100 ms belongs to the speech, one above parts it.
        (".#####..#####....", [(32, 13 * 512 + 480)]),
        (".##########.....##########...", [(32, 11 * 512 + 480), (16 * 512 - 480, 26 * 512 + 480)]),
        # Below 0.5 no speech starts, and above 0.35 none ends.
        ("oooooooooo", []),
        (".#oooooooooo....", [(32, 12 * 512 + 480)]),
        ("##########", [(0, 5_000)]),
    ],
)
def test_spans_by_hand(speaking: str, spans: list[tuple[int, int]]) -> None:
    values = np.array([{".": 0.1, "o": 0.4, "#": 0.9}[letter] for letter in speaking])
    samples = 5_000 if spans == [(0, 5_000)] else 512 * len(speaking)
    assert speech_spans(values, samples) == spans
