"""The synthesizer accepts released values only, and nothing random enters it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_origin, get_type_hints

import numpy as np
import pytest

from made_speech import CHANNELS, E, M, write_models
from voxveil.audio.frames import frame_count
from voxveil.features.speaker.targets import Target
from voxveil.privacy import Identity, LaplaceCube, LaplaceSimplex, PublicNoise, Released
from voxveil.runtime.errors import InputError, PrivacyError
from voxveil.synthesis.synthesizer import Synthesizer

pytestmark = pytest.mark.torch

TARGET = Target(np.full(E, E**-0.5, np.float32), float(np.log(150.0)), 0.15, 0)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    write_models(folder)
    return folder


@pytest.fixture(scope="module")
def synthesizer(models: Path) -> Synthesizer:
    return Synthesizer.load(models / "synthesis", models / "vocoder", pitch_conversion=False)


def features(samples: int, *, noisy: bool = False) -> tuple[Released, Released]:
    frames, noise = frame_count(samples), PublicNoise(1, "test", samples)
    vectors = np.random.default_rng(frames).standard_normal((frames, M))
    content = LaplaceSimplex(10.0) if noisy else Identity("vector")
    pitch = LaplaceCube(10.0) if noisy else Identity("utterance")
    unit = np.full((CHANNELS, frames), 0.5)
    return content.release(vectors, noise), pitch.release(unit, noise).map(lambda value: value[0])


@pytest.mark.parametrize("samples", [1, 160, 15_999, 16_000, 16_001])
@pytest.mark.parametrize("noisy", [False, True])
def test_exactly_the_samples_and_repeatable(synthesizer: Synthesizer, samples: int, noisy: bool) -> None:
    content, pitch = features(samples, noisy=noisy)
    first = synthesizer.synthesize(content, pitch, TARGET, samples)
    assert first.shape == (samples,)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, synthesizer.synthesize(content, pitch, TARGET, samples))


@pytest.mark.parametrize("bare", ["content", "pitch"])
def test_bare_arrays_are_refused(synthesizer: Synthesizer, bare: str) -> None:
    content, pitch = features(1_600)
    arguments = {"content": content, "pitch": pitch, bare: {"content": content, "pitch": pitch}[bare].value}
    with pytest.raises(PrivacyError, match=f"{bare} must be a Released value"):
        synthesizer.synthesize(**arguments, target=TARGET, samples=1_600)


def test_the_signature_asks_for_released_values_and_for_nothing_private() -> None:
    hints = get_type_hints(Synthesizer.synthesize)
    assert get_origin(hints["content"]) is get_origin(hints["pitch"]) is Released
    assert list(inspect.signature(Synthesizer.synthesize).parameters) == [
        "self",
        "content",
        "pitch",
        "target",
        "samples",
    ]


@pytest.mark.parametrize("samples", [1_599, 1_760, 0])
def test_frames_must_fit_the_samples(synthesizer: Synthesizer, samples: int) -> None:
    content, pitch = features(1_600)
    with pytest.raises(InputError, match="needs"):
        synthesizer.synthesize(content, pitch, TARGET, samples)


def test_pitch_conversion_changes_what_is_heard(models: Path, synthesizer: Synthesizer) -> None:
    converting = Synthesizer.load(models / "synthesis", models / "vocoder", pitch_conversion=True)
    frames = frame_count(8_000)
    content, _ = features(8_000)
    unit = np.linspace(0.3, 0.6, frames).astype(np.float32)
    low, high = (Identity("utterance").release(unit + shift, PublicNoise(0)) for shift in (0.0, 0.3))
    same = [converting.synthesize(content, pitch, TARGET, 8_000) for pitch in (low, high)]
    # The level of the source's F0 does not pass a conversion; without one it does.
    np.testing.assert_allclose(same[0], same[1], atol=1e-3 * float(np.abs(same[0]).max() + 1))
    other = [synthesizer.synthesize(content, pitch, TARGET, 8_000) for pitch in (low, high)]
    assert not np.allclose(other[0], other[1], atol=1e-3 * float(np.abs(other[0]).max()))
