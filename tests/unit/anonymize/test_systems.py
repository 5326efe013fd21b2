"""Systems as compositions: what they cost, and that they charge what they announce."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made_speech import CHANNELS, M, speak, write_models
from voxveil.audio.frames import frame_count
from voxveil.features.extraction import System
from voxveil.privacy import LaplaceCube, LaplaceSimplex, PublicNoise, SystemNoise
from voxveil.privacy.loss_rule import LossRule, utterance_total
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import InputError, PrivacyError


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


def load(models: Path, pitch: str, content: str) -> System:
    return System.load(models / "pitch" / pitch, models / "content" / content)


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 10_000), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
def test_an_utterance_costs_epsilon1_plus_k_epsilon2(frames: int, first: float, second: float) -> None:
    losses = LossRule(LaplaceCube(first), LaplaceSimplex(second), CHANNELS).losses(frames)
    total = utterance_total(losses, frames)
    assert total.epsilon == pytest.approx(first + frames * second)
    assert total.unit == "utterance"
    assert losses["pitch"].sensitivity == CHANNELS * frames
    assert losses["content"].sensitivity == 2.0


@pytest.mark.parametrize(
    ("pitch", "content", "finite"),
    [("plain", "plain", False), ("dp", "plain", False), ("plain", "dp", False), ("dp", "dp", True)],
)
@pytest.mark.parametrize("samples", [1, 400, 16_000])
def test_released_as_announced(models: Path, pitch: str, content: str, finite: bool, samples: int) -> None:
    system = load(models, pitch, content)
    audio, f0 = speak(120.0, samples)
    features = system.release_features(audio, f0, SystemNoise())
    frames = frame_count(samples)
    assert dict(features.losses) == system.rule.losses(frames)
    assert features.content.value.shape == (frames, M)
    assert features.pitch.value.shape == (frames,)
    np.testing.assert_allclose(np.abs(features.content.value).sum(axis=1), 1.0, atol=1e-5)
    assert math.isfinite(features.utterance.epsilon) == finite
    if finite:
        assert features.utterance.epsilon == pytest.approx(10 + 10 * frames)


def test_noise_comes_from_its_source(models: Path) -> None:
    system = load(models, "dp", "dp")
    audio, f0 = speak(120.0, 8_000)
    secret = [system.release_features(audio, f0, SystemNoise()) for _ in range(2)]
    seeded = [system.release_features(audio, f0, PublicNoise(1, "test")) for _ in range(2)]
    for stream in ("content", "pitch"):
        a, b = (getattr(features, stream).value for features in secret)
        assert not np.array_equal(a, b)
        a, b = (getattr(features, stream).value for features in seeded)
        np.testing.assert_array_equal(a, b)


def test_pitch_and_content_noise_are_different_draws(models: Path) -> None:
    """One source serves both streams in turn; equal draws would cancel."""
    drawn = []

    class Recording(PublicNoise):
        def laplace(self, shape: tuple[int, ...], scale: float) -> np.ndarray:
            drawn.append(super().laplace(shape, scale) / scale)
            return drawn[-1] * scale

    audio, f0 = speak(120.0, 8_000)
    load(models, "dp", "dp").release_features(audio, f0, Recording(1, "test"))
    first, second = (draw.ravel() for draw in drawn)
    count = min(len(first), len(second))
    assert abs(np.corrcoef(first[:count], second[:count])[0, 1]) < 0.15


def test_silence_and_unvoiced_take_the_same_noisy_path(models: Path) -> None:
    system = load(models, "dp", "dp")
    for audio in (np.zeros(8_000, np.float32), speak(120.0, 8_000)[0]):
        features = system.release_features(audio, np.zeros(51, np.float32), SystemNoise())
        again = system.release_features(audio, np.zeros(51, np.float32), SystemNoise())
        assert features.losses == system.rule.losses(51)
        assert not np.array_equal(features.content.value, again.content.value)
        assert not np.array_equal(features.pitch.value, again.pitch.value)


def test_charging_other_than_announced_is_refused(models: Path) -> None:
    system = load(models, "dp", "dp")
    lying = System(system.pitch, system.content, LossRule(LaplaceCube(10.0), LaplaceSimplex(5.0), CHANNELS))
    audio, f0 = speak(120.0, 1_600)
    with pytest.raises(PrivacyError, match="content was released at"):
        lying.release_features(audio, f0, SystemNoise())


def test_frames_must_agree(models: Path) -> None:
    with pytest.raises(InputError, match="frames"):
        load(models, "plain", "plain").release_features(
            np.zeros(1_600, np.float32), np.zeros(10, np.float32), SystemNoise()
        )


def test_the_original_promises_nothing_and_says_so() -> None:
    losses = LossRule.nothing_promised().losses(10)
    assert all(loss.unbounded and "nothing is promised" in loss.note for loss in losses.values())
    assert LossRule.nothing_promised().to_json()["content"]["epsilon"] == "inf"


def test_no_frames_is_refused() -> None:
    with pytest.raises(PrivacyError, match="at least one frame"):
        LossRule.nothing_promised().losses(0)


@pytest.mark.parametrize("key", ["mechanism", "epsilon", "channels"])
def test_a_model_that_hides_its_mechanism_is_refused(models: Path, tmp_path: Path, key: str) -> None:
    facts = read_json(models / "pitch/dp/model.json")
    del facts[key]
    write_json(tmp_path / "model.json", facts)
    with pytest.raises(InputError, match=key):
        LossRule.read(tmp_path, models / "content/dp")


def test_halving_epsilon_halves_what_is_announced(models: Path, tmp_path: Path) -> None:
    for part in ("pitch", "content"):
        (tmp_path / part).mkdir()
        facts = read_json(models / part / "dp/model.json")
        write_json(tmp_path / part / "model.json", {**facts, "epsilon": facts["epsilon"] / 2})
    whole = LossRule.read(models / "pitch/dp", models / "content/dp").losses(100)
    half = LossRule.read(tmp_path / "pitch", tmp_path / "content").losses(100)
    assert utterance_total(half, 100).epsilon == utterance_total(whole, 100).epsilon / 2
