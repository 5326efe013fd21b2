"""Pitch by a few coefficients, and the naive baseline: what they keep, cost and refuse."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as some

torch = pytest.importorskip("torch")

from voxveil.config.features import PitchVariant, TrainPitchParams
from voxveil.features.pitch.extractor import ContourCodec, PitchExtractor
from voxveil.features.pitch.scale import hz_to_unit
from voxveil.features.pitch.train import PitchUtterance, correlation, train_pitch
from voxveil.privacy import LaplaceBall, PublicNoise, SystemNoise
from voxveil.privacy.ball import BALL_BITS
from voxveil.privacy.discrete import to_grid
from voxveil.runtime.errors import InputError, PrivacyError
from voxveil.training.checkpoint import write_trained

pytestmark = pytest.mark.torch


def f0_of(frames: int, key: int) -> np.ndarray:
    """A rising and falling voice with a pause, another for each key."""
    draw = np.random.default_rng(key)
    base, swing = draw.uniform(90, 220), draw.uniform(0.1, 0.4)
    time = np.linspace(0, 1, frames)
    f0 = base * np.exp(swing * np.sin(2 * np.pi * draw.uniform(0.5, 1.5) * time + key))
    pause = int(draw.integers(0, max(1, frames - frames // 4)))
    f0[pause : pause + frames // 4] = 0.0
    return f0.astype(np.float32)


def trained(mechanism: str, epsilon: float, **more: int) -> PitchExtractor:
    params = TrainPitchParams(**more)
    return train_pitch(utterances(), params, PitchVariant(mechanism, epsilon), "v", 1).extractor


def utterances() -> list[PitchUtterance]:
    return [PitchUtterance(f"u{i}", f"s{i % 5}", f0_of(120 + 13 * i, i)) for i in range(20)]


def literal_coefficients(values: np.ndarray, count: int) -> np.ndarray:
    size = len(values)
    found = []
    for order in range(min(count, size)):
        wave = np.cos(np.pi * order * (2 * np.arange(size) + 1) / (2 * size))
        norm = np.sqrt((1 if order == 0 else 2) / size)
        found.append(norm * float(values @ wave) / np.sqrt(size))
    return np.array(found + [0.0] * (count - len(found)))


@given(st.integers(1, 60), st.integers(0, 5))
def test_coefficients_are_the_cosine_sums(frames: int, key: int) -> None:
    unit = hz_to_unit(f0_of(frames, key))
    found = ContourCodec.coefficients(unit, 6, 4)
    voiced = unit > 0
    run = np.interp(np.arange(frames), np.flatnonzero(voiced), unit[voiced]) if voiced.any() else 0.6
    contour = (np.broadcast_to(run, frames) - 0.6) / 0.4
    assert np.allclose(found[:6], literal_coefficients(contour, 6), atol=1e-6)
    assert np.allclose(found[6:], literal_coefficients(np.where(voiced, 1.0, -1.0), 4), atol=1e-6)


@given(some.arrays(np.float64, st.integers(1, 40), elements=st.floats(-1e6, 1e6)))
def test_any_two_vectors_differ_by_at_most_two_whole_units_on_the_grid(value: np.ndarray) -> None:
    inside = value / max(1.0, float(np.abs(value).sum()))
    steps = to_grid(inside, BALL_BITS)
    assert Fraction(int(np.abs(steps).sum()), 2**BALL_BITS) <= 1


def test_its_epsilon_is_per_utterance_whatever_the_length() -> None:
    extractor = trained("contour", 20.0)
    for frames in (1, 30, 500):
        released = extractor.release(f0_of(frames, 3), SystemNoise())
        loss = released.loss
        assert (loss.epsilon, loss.unit, loss.sensitivity) == (20.0, "utterance", 2.0)
        assert loss.mechanism == "laplace_ball" and loss.version == "2"
        assert released.value.shape == (frames,)
        assert released.value.min() >= 0 and released.value.max() <= 1


def test_noise_has_the_claimed_scale_and_lies_on_the_grid() -> None:
    mechanism = LaplaceBall(4.0)
    value = np.array([0.25, -0.5, 0.125])
    noisy = np.stack([mechanism.release(value, SystemNoise()).value for _ in range(4000)])
    assert (np.ldexp(noisy, BALL_BITS) % 1 == 0).all()
    assert np.abs(noisy - value).mean() == pytest.approx(0.5, rel=0.05)
    # Outside the ball it is drawn back first, so no coefficient carries more than the bound.
    far = np.stack([mechanism.release(1000 * value, SystemNoise()).value for _ in range(4000)])
    assert np.abs(np.median(far, axis=0) - value / 0.875).max() < 0.05


def test_it_follows_a_contour_at_an_epsilon_where_the_cube_is_noise() -> None:
    found = {}
    for mechanism in ("contour", "naive"):
        extractor = trained(mechanism, 100.0)
        unseen = [f0_of(200, key) for key in range(50, 60)]
        values = [
            correlation(extractor.release(f0, PublicNoise(1, mechanism, i)).value, f0)
            for i, f0 in enumerate(unseen)
        ]
        found[mechanism] = float(np.mean([value for value in values if value is not None]))
    assert found["contour"] > 0.6 > 0.3 > found["naive"]


def test_the_naive_baseline_costs_what_the_cube_of_one_channel_does() -> None:
    released = trained("naive", 5.0).release(f0_of(80, 1), SystemNoise())
    assert (released.loss.mechanism, released.loss.sensitivity) == ("laplace_cube", 80.0)


@pytest.mark.parametrize("mechanism", ["contour", "naive"])
def test_stored_and_loaded_it_releases_the_same(mechanism: str, tmp_path: Path) -> None:
    made = train_pitch(utterances(), TrainPitchParams(), PitchVariant(mechanism, 30.0), "v", 1)
    write_trained(tmp_path, made.model, made.description, [{"step": 0, "loss": 0.0}], {})
    loaded = PitchExtractor.load(tmp_path)
    for frames in (3, 90):
        ours, theirs = (
            each.release(f0_of(frames, 7), PublicNoise(2, "u")).value for each in (made.extractor, loaded)
        )
        assert (ours == theirs).all()
    assert loaded.loss == made.extractor.loss


def test_mechanism_and_codec_must_fit() -> None:
    with pytest.raises(InputError, match="laplace_ball does not go with"):
        PitchExtractor(LaplaceBall(1.0))
    with pytest.raises(PrivacyError, match="laplace_ball: needs one vector"):
        LaplaceBall(1.0).release(np.zeros((2, 2)), SystemNoise())
    with pytest.raises(PrivacyError, match="NaN"):
        LaplaceBall(1.0).release(np.array([np.nan]), SystemNoise())
