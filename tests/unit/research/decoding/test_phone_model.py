from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.research.decoding.phone_model import (
    MIN_FRAMES,
    PhoneModel,
    decode_phones,
    frame_scores,
    frames_right,
    phone_model,
)
from voxveil.research.decoding.phone_posteriors import SCALES, smoothed_posteriors, tuned_scales
from voxveil.runtime.errors import InputError

PHONES = ("SIL", "A", "B")


def labels(seed: int, utterances: int = 30, phones: int = 3) -> list[np.ndarray]:
    """Phones in cycles more often than not, each of 3 to 8 frames."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(utterances):
        phone, runs = 0, []
        for _ in range(12):
            runs.append(np.full(rng.integers(3, 9), phone))
            step = 1 if rng.random() < 0.8 else int(rng.integers(1, phones))
            phone = (phone + step) % phones
        found.append(np.concatenate(runs))
    return found


@pytest.fixture(scope="module")
def model() -> PhoneModel:
    return phone_model(labels(1), PHONES)


def literal_score(path: tuple[int, ...], scores: np.ndarray, model: PhoneModel) -> float:
    """Score of one path by its runs; minus infinity where an inner phone is too short."""
    runs = [(phone, len(list(group))) for phone, group in itertools.groupby(path)]
    result = float(scores[np.arange(len(path)), path].sum() + model.log_priors[path[0]])
    before = len(model.phones)
    for place, (phone, length) in enumerate(runs):
        if 0 < place < len(runs) - 1 and length < MIN_FRAMES:
            return -np.inf
        result += max(0, length - MIN_FRAMES) * model.log_stay[phone]
        if place < len(runs) - 1:
            leave = np.log1p(-np.exp(model.log_stay[phone]))
            result += leave + model.log_next[before, phone, runs[place + 1][0]]
            before = phone
    return result


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.floats(0.1, 2.0))
def test_best_path_is_the_best_of_all_paths(seed: int, frames: int, scale: float) -> None:
    model = phone_model(labels(1), PHONES)
    raw = np.random.default_rng(seed).gumbel(size=(frames, 3)) * 2
    posteriors = raw - np.logaddexp.reduce(raw, axis=1, keepdims=True)
    scores = frame_scores(posteriors, model, scale, 0.5)
    best = max(literal_score(path, scores, model) for path in itertools.product(range(3), repeat=frames))
    found = decode_phones(posteriors, model, acoustic_scale=scale)
    assert literal_score(tuple(int(i) for i in found), scores, model) == pytest.approx(best, abs=1e-9)


def literal_posteriors(scores: np.ndarray, model: PhoneModel) -> np.ndarray:
    """Sum over all paths and over how old the first phone is at the beginning."""
    frames, count = scores.shape
    mass = np.zeros((frames, count))
    for path in itertools.product(range(count), repeat=frames):
        first = len(list(next(itertools.groupby(path))[1]))
        for age in range(MIN_FRAMES):
            # The same path with ``age`` frames of its first phone before it, which nobody saw.
            longer = (path[0],) * age + path
            quiet = np.concatenate([np.zeros((age, count)), scores])
            score = literal_score(longer, quiet, model)
            if first + age < MIN_FRAMES and first < frames:
                continue
            mass[np.arange(frames), path] += np.exp(score)
    return mass / mass.sum(axis=1, keepdims=True)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_smoothed_posteriors_are_the_sum_over_all_paths(seed: int, frames: int) -> None:
    model = phone_model(labels(1), PHONES)
    raw = np.random.default_rng(seed).gumbel(size=(frames, 3)) * 2
    posteriors = raw - np.logaddexp.reduce(raw, axis=1, keepdims=True)
    expected = literal_posteriors(frame_scores(posteriors, model, 0.7, 0.5), model)
    found = np.exp(smoothed_posteriors(posteriors, model, acoustic_scale=0.7))
    assert found == pytest.approx(expected, abs=1e-5)


def test_it_hears_through_noise_better_than_frame_by_frame(model: PhoneModel) -> None:
    truth = labels(2, utterances=10)
    rng = np.random.default_rng(3)
    noisy = []
    for one in truth:
        raw = np.eye(3)[one] * 1.5 + rng.gumbel(size=(len(one), 3))
        noisy.append(raw - np.logaddexp.reduce(raw, axis=1, keepdims=True))
    before = frames_right([one.argmax(axis=1) for one in noisy], truth)
    after = frames_right([decode_phones(one, model) for one in noisy], truth)
    assert 0.5 < before < 0.8 and after > before + 0.1
    smooth = frames_right([smoothed_posteriors(one, model).argmax(axis=1) for one in noisy], truth)
    assert smooth > before + 0.1


def test_model_counts_what_follows_what_and_for_how_long(model: PhoneModel) -> None:
    following = np.exp(model.log_next[0, 1])
    assert following.sum() == pytest.approx(1.0)
    assert following[2] > 0.7 and following[1] == 0.0
    # Runs of 3 to 8 frames last 2.5 beyond the shortest: stay with 2.5 / 3.5.
    assert np.exp(model.log_stay) == pytest.approx(2.5 / 3.5, abs=0.05)
    assert np.exp(model.log_priors).sum() == pytest.approx(1.0)


def test_order_one_forgets_what_was_before() -> None:
    model = phone_model(labels(1), PHONES, order=1)
    assert np.allclose(model.log_next, model.log_next[:1])


def test_saved_model_is_the_same(model: PhoneModel, tmp_path: Path) -> None:
    model.save(tmp_path / "phones.npz")
    again = PhoneModel.load(tmp_path / "phones.npz")
    assert again.phones == model.phones
    for name in ("log_next", "log_stay", "log_priors"):
        assert np.array_equal(getattr(again, name), getattr(model, name))


@pytest.mark.parametrize("shape", [(4,), (4, 2)])
def test_posteriors_of_other_phones_are_refused(model: PhoneModel, shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="for 3 phones"):
        decode_phones(np.zeros(shape), model)


def test_nothing_to_count_and_nothing_to_decode(model: PhoneModel) -> None:
    with pytest.raises(InputError, match="at least one labelled frame"):
        phone_model([np.zeros(0, int)], PHONES)
    assert decode_phones(np.zeros((0, 3)), model).shape == (0,)
    assert smoothed_posteriors(np.zeros((0, 3)), model).shape == (0, 3)
    with pytest.raises(InputError, match="a guess for every frame"):
        frames_right([np.zeros(3, np.int64)], [np.zeros(4, np.int64)])


def test_tuned_scales_get_the_most_frames_right(model: PhoneModel) -> None:
    rng = np.random.default_rng(4)
    spoken = []
    for one in labels(5, utterances=4):
        # The same noise for four frames in a row: trusting every frame alike would count it four times.
        noise = np.repeat(rng.gumbel(size=(len(one) // 4 + 1, 3)), 4, axis=0)[: len(one)]
        spoken.append((np.log(np.exp(np.eye(3)[one] + noise) + 1e-9), one))
    truth = [one for _, one in spoken]
    rights = [
        frames_right(
            [
                smoothed_posteriors(scores, model, acoustic_scale=acoustic, prior_scale=prior).argmax(axis=1)
                for scores, _ in spoken
            ],
            truth,
        )
        for acoustic, prior in SCALES
    ]
    best = SCALES[int(np.argmax(rights))]
    assert min(rights) < max(rights)
    assert tuned_scales(spoken, model) == {"acoustic_scale": best[0], "prior_scale": best[1]}
    with pytest.raises(InputError, match="at least one utterance"):
        tuned_scales([], model)
