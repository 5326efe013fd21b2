"""The anonymizer: both doors, odd inputs, constant loudness, exact lengths."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pytest

from made_speech import made_bundles, speak
from voxveil.anonymize.anonymizer import Anonymizer
from voxveil.audio.files import decode, encode_flac
from voxveil.audio.frames import frame_count
from voxveil.audio.loudness import to_loudness
from voxveil.features.extraction import System
from voxveil.privacy import PublicNoise, SystemNoise
from voxveil.runtime.errors import InputError

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    return made_bundles(folder)


@pytest.fixture(scope="module")
def dp(bundles: Path) -> Anonymizer:
    return Anonymizer.load(bundles / "anon_dp")


@pytest.fixture(scope="module")
def anon(bundles: Path) -> Anonymizer:
    return Anonymizer.load(bundles / "anon")


@pytest.mark.parametrize("samples", [1, 159, 160, 400, 800, 15_999, 16_000, 16_001, 16_159, 64_123])
def test_exactly_the_input_s_samples_and_announced_losses(dp: Anonymizer, samples: int) -> None:
    made = dp.anonymize_private(speak(120.0, samples)[0])
    assert made.audio.shape == (samples,)
    assert dict(made.losses) == dp.losses(samples)
    assert made.utterance.epsilon == pytest.approx(10 + 10 * frame_count(samples))


def test_no_seed_reaches_the_noise_on_private_speech(dp: Anonymizer, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = []
    release = System.release_features

    def spy(self: System, audio, f0, noise):  # type: ignore[no-untyped-def]
        sources.append(noise)
        return release(self, audio, f0, noise)

    monkeypatch.setattr(System, "release_features", spy)
    audio, f0 = speak(120.0, 4_000)
    dp.anonymize_private(audio, np.random.default_rng(1), f0=f0)
    dp.anonymize_public(audio, 1, "u", f0=f0)
    assert isinstance(sources[0], SystemNoise)
    assert isinstance(sources[1], PublicNoise)
    parameters = inspect.signature(Anonymizer.anonymize_private).parameters
    assert list(parameters) == ["self", "audio", "rng", "f0", "name", "source"]


def test_equal_targets_still_get_fresh_noise(dp: Anonymizer) -> None:
    audio, f0 = speak(120.0, 4_000)
    first, second = (dp.anonymize_private(audio, np.random.default_rng(1), f0=f0).audio for _ in range(2))
    assert not np.array_equal(first, second)


def test_public_speech_is_repeatable_and_keyed_by_utterance(dp: Anonymizer) -> None:
    audio, f0 = speak(120.0, 4_000)
    first, again, other = (dp.anonymize_public(audio, 1, item, f0=f0).audio for item in ("u", "u", "v"))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_without_noise_only_the_target_is_random(anon: Anonymizer) -> None:
    audio, f0 = speak(120.0, 4_000)
    same = [anon.anonymize_private(audio, anon.target_stream(1, "u"), f0=f0).audio for _ in range(2)]
    np.testing.assert_array_equal(*same)
    fresh = [anon.anonymize_private(audio, f0=f0).audio.tobytes() for _ in range(6)]
    assert len(set(fresh)) > 1


@pytest.mark.parametrize("kind", ["silence", "noise", "click", "constant"])
def test_odd_inputs_take_the_same_path(dp: Anonymizer, kind: str) -> None:
    rng = np.random.default_rng(0)
    audio = {
        "silence": np.zeros(8_000),
        "noise": rng.standard_normal(8_000) * 0.1,
        "click": np.eye(1, 8_000, 4_000)[0],
        "constant": np.full(8_000, 0.5),
    }[kind].astype(np.float32)
    made = dp.anonymize_private(audio)
    assert made.audio.shape == audio.shape
    assert np.isfinite(made.audio).all()
    assert np.ptp(made.audio) > 0
    assert dict(made.losses) == dp.losses(8_000)


@pytest.mark.parametrize(
    ("audio", "words"),
    [
        (np.zeros(0, np.float32), "at least 1"),
        (np.zeros((2, 800), np.float32), r"shape \(2, 800\)"),
        (np.array([0.0, np.nan, 0.0], np.float32), "NaN or infinite"),
        (np.array([0.0, np.inf], np.float32), "NaN or infinite"),
    ],
)
@pytest.mark.parametrize("system", ["anon_dp", "original"])
def test_what_is_not_audio_is_refused_by_name(
    bundles: Path, system: str, audio: np.ndarray, words: str
) -> None:
    with pytest.raises(InputError, match=words) as error:
        Anonymizer.load(bundles / system).anonymize_private(audio, name="take-7")
    assert "take-7" in str(error.value)


def test_output_loudness_does_not_tell_the_input_s(anon: Anonymizer) -> None:
    audio, f0 = speak(120.0, 16_000)
    for gain in (0.1, 1.0, 8.0):
        made = anon.anonymize_private(gain * audio, anon.target_stream(1, "u"), f0=f0).audio
        np.testing.assert_allclose(made, to_loudness(made, -23.0), atol=1e-5)


def test_the_original_passes_through_and_says_so(bundles: Path) -> None:
    audio, _ = speak(120.0, 4_000)
    made = Anonymizer.load(bundles / "original").anonymize_private(audio)
    np.testing.assert_array_equal(made.audio, audio)
    assert made.utterance.unbounded


def test_clipping_is_counted_not_wrapped(bundles: Path) -> None:
    loud = Anonymizer.load(bundles / "anon", loudness=0.0)
    audio, f0 = speak(120.0, 16_000)
    made = loud.anonymize_private(audio, loud.target_stream(1, "u"), f0=f0).audio
    beyond = int((np.abs(made) > 1).sum())
    assert beyond > 0
    flac, clipped = encode_flac(made, "u")
    assert clipped == beyond
    stored = decode(flac, "u")
    assert (np.sign(stored[np.abs(made) > 1]) == np.sign(made[np.abs(made) > 1])).all()


def test_a_long_input(anon: Anonymizer) -> None:
    samples = 60 * 16_000 + 7
    audio, f0 = speak(120.0, samples)
    assert anon.anonymize_private(audio, f0=f0).audio.shape == (samples,)
