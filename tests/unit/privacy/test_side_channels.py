"""Nothing but Released values, the sample count and the target reaches the output.

The strongest form of the claim: put constants in the place of what the mechanisms release, and any
two inputs of equal length give bit-identical speech. Whatever leaked past the mechanisms, voicing,
energy, statistics for pitch conversion, loudness, would show.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch", reason="torch is not installed")

from made_speech import made_bundles, speak
from voxveil.anonymize.anonymizer import Anonymizer
from voxveil.audio.files import encode_flac
from voxveil.privacy import LaplaceCube, LaplaceSimplex, NoiseSource

pytestmark = pytest.mark.torch

Array = NDArray[np.float32]


@pytest.fixture(scope="module")
def anonymizer(tmp_path_factory: pytest.TempPathFactory) -> Anonymizer:
    folder = tmp_path_factory.mktemp("side")
    made_bundles(folder)
    return Anonymizer.load(folder / "bundles" / "anon_dp")


@pytest.fixture
def constant_releases(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is released no longer depends on what went in."""

    def constant(self: object, value: NDArray[np.float64], noise: NoiseSource) -> NDArray[np.float64]:
        pattern = np.random.default_rng(9).random(value.shape)
        return pattern / pattern.sum(axis=-1, keepdims=True) if isinstance(self, LaplaceSimplex) else pattern

    monkeypatch.setattr(LaplaceCube, "perturb", constant)
    monkeypatch.setattr(LaplaceSimplex, "perturb", constant)


def inputs(samples: int) -> dict[str, Array]:
    rng = np.random.default_rng(4)
    low, _ = speak(90.0, samples)
    high, _ = speak(260.0, samples, 7)
    return {
        "low voice": low,
        "high voice": high,
        "loud": np.clip(low * 20, -1, 1),
        "quiet": low * 1e-4,
        "silence": np.zeros(samples, np.float32),
        "unvoiced": (0.1 * rng.standard_normal(samples)).astype(np.float32),
        "click": np.eye(1, samples, samples // 2, dtype=np.float32)[0],
    }


@pytest.mark.parametrize("samples", [1, 400, 8_000])
def test_inputs_of_equal_length_differ_only_through_what_is_released(
    anonymizer: Anonymizer, constant_releases: None, samples: int
) -> None:
    made = {
        name: anonymizer.anonymize_private(audio, np.random.default_rng(1))
        for name, audio in inputs(samples).items()
    }
    reference = made["low voice"]
    assert len(reference.audio) == samples
    for name, other in made.items():
        assert np.array_equal(other.audio, reference.audio), name
        assert dict(other.losses) == dict(reference.losses), name


def test_the_check_would_see_a_leak(anonymizer: Anonymizer) -> None:
    """Without the constants the outputs do differ."""
    first, second = (
        anonymizer.anonymize_private(audio, np.random.default_rng(1)).audio
        for audio in (inputs(8_000)["low voice"], inputs(8_000)["high voice"])
    )
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("name", ["silence", "unvoiced", "click", "low voice"])
@pytest.mark.parametrize("samples", [1, 400, 8_000])
def test_every_input_takes_the_same_noisy_path(anonymizer: Anonymizer, name: str, samples: int) -> None:
    audio = inputs(samples)[name]
    calls: list[tuple[int, ...]] = []

    with pytest.MonkeyPatch.context() as patch:
        for kind in (LaplaceCube, LaplaceSimplex):
            original = kind.perturb

            def counted(
                self: object, value: NDArray[np.float64], noise: NoiseSource, original: object = original
            ) -> NDArray[np.float64]:
                calls.append(value.shape)
                return original(self, value, noise)  # type: ignore[operator]

            patch.setattr(kind, "perturb", counted)
        anonymizer.anonymize_private(audio, np.random.default_rng(1))
    frames = samples // 160 + 1
    assert sorted(calls) == sorted([(4, frames), (frames, 12)])


def test_two_releases_of_silence_differ(anonymizer: Anonymizer) -> None:
    silence = inputs(8_000)["silence"]
    first, second = (anonymizer.anonymize_private(silence, np.random.default_rng(1)).audio for _ in range(2))
    assert not np.array_equal(first, second)


def test_the_file_holds_the_samples_and_nothing_of_their_source() -> None:
    audio = inputs(8_000)["low voice"]
    flac, _ = encode_flac(audio, "SECRET-NAME")
    assert flac == encode_flac(audio, "another")[0]
    assert b"SECRET" not in flac
