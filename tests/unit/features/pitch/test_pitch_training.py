"""Training the F0 autoencoder through its noise."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import voxveil.features.pitch.train as training
from voxveil.config.features import PitchVariant, TrainPitchParams
from voxveil.features.pitch.train import PitchUtterance, correlation, fit_affine, train_pitch
from voxveil.privacy import PublicNoise
from voxveil.runtime.errors import InputError

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


def made(key: int) -> PitchUtterance:
    rng = np.random.default_rng(key)
    time = np.arange(int(rng.integers(60, 160)))
    f0 = 150 * np.exp(0.3 * np.sin(time / rng.uniform(9, 20) + rng.uniform(0, 6)) + rng.normal(0, 0.2))
    voiced = np.sin(time / rng.uniform(5, 8) + rng.uniform(0, 6)) > -0.5
    return PitchUtterance(f"u{key}", f"s{key % 4}", (f0 * voiced).astype(np.float32))


def params(epsilon: float, **more: float) -> tuple[TrainPitchParams, PitchVariant]:
    chosen = {"steps": 50, "batch": 8, "channels": 8, **more}
    return TrainPitchParams(**chosen), PitchVariant("laplace", epsilon)


UTTERANCES = [made(key) for key in range(24)]
UNSEEN = [made(key) for key in range(100, 112)]


def mean_correlation(epsilon: float) -> float:
    extractor = train_pitch(UTTERANCES, *params(epsilon), "dp", 3).extractor
    values = [correlation(extractor.release(u.f0, PublicNoise(1, u.id)).value, u.f0) for u in UNSEEN]
    return float(np.mean([value for value in values if value is not None]))


def test_almost_without_noise_the_sequence_comes_through() -> None:
    assert mean_correlation(1e6) > 0.9


def test_at_small_epsilon_correlation_is_at_the_floor() -> None:
    """Delta_1 = C K: at epsilon 10 nothing of the melody can pass, and nothing here pretends it does."""
    assert abs(mean_correlation(10.0)) < 0.15


@pytest.mark.parametrize("batch", [2, 8])
def test_training_noise_is_per_utterance_and_step_whatever_the_batch(
    monkeypatch: pytest.MonkeyPatch, batch: int
) -> None:
    drawn: dict[tuple, tuple[tuple[int, ...], float]] = {}

    class Watched(PublicNoise):
        def __init__(self, seed: int, *keys: str | int) -> None:
            super().__init__(seed, *keys)
            self.keys = keys

        def laplace(self, shape: tuple[int, ...], scale: float) -> np.ndarray:
            assert self.keys not in drawn, "noise drawn twice from one stream"
            drawn[self.keys] = (shape, scale)
            return super().laplace(shape, scale)

    monkeypatch.setattr(training, "PublicNoise", Watched)
    train_pitch(UTTERANCES, *params(5.0, steps=3, batch=batch), "dp", 3)
    frames = {u.id: len(u.f0) for u in UTTERANCES}
    steps = [keys for keys in drawn if keys[3] != "affine"]
    assert len(steps) == 3 * batch
    assert {keys[3] for keys in steps} == {0, 1, 2}
    for keys, (shape, scale) in drawn.items():
        assert shape == (8, frames[keys[2]])
        assert scale == pytest.approx(8 * frames[keys[2]] / 5.0)


def test_equal_seeds_train_equal_models() -> None:
    first, second = (train_pitch(UTTERANCES, *params(100.0, steps=5), "dp", 3) for _ in range(2))
    other = train_pitch(UTTERANCES, *params(100.0, steps=5), "dp", 4)
    states = [{k: v.clone() for k, v in t.model.state_dict().items()} for t in (first, second, other)]
    assert all(torch.equal(states[0][k], states[1][k]) for k in states[0])
    assert any(not torch.equal(states[0][k], states[2][k]) for k in states[0])
    assert first.description == second.description


def test_the_affine_map_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(200)
    y = 0.3 * x + 0.5 + 0.1 * rng.standard_normal(200)
    assert fit_affine(x, y) == pytest.approx(np.polyfit(x, y, 1))
    assert fit_affine(np.full(5, 2.0), np.arange(5.0)) == pytest.approx((0.0, 2.0))


def test_the_identity_needs_no_training_and_says_so() -> None:
    trained = train_pitch([], TrainPitchParams(), PitchVariant(), "plain", 1)
    assert trained.curve == [] and not trained.model.state_dict()
    assert trained.description["loss"]["epsilon"] == "inf"


def test_nothing_to_learn_from_is_said() -> None:
    flat = [PitchUtterance("u", "s", np.zeros(40, np.float32))]
    with pytest.raises(InputError, match=r"train_pitch\[dp\].*varying"):
        train_pitch(flat, *params(1.0), "dp", 1)
    assert correlation(np.arange(40.0), flat[0].f0) is None
