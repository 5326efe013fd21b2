"""Fewer vectors than frames, and codes instead of vectors: released, charged and trained alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from made_phones import phone_speech
from voxveil.audio.frames import frame_count
from voxveil.config.features import ContentVariant, TrainContentParams
from voxveil.corpus.phones import PHONES
from voxveil.features.content.extractor import ContentExtractor, pooled, spread
from voxveil.features.content.labels import frame_labels
from voxveil.features.content.model import ContentModel, ContentSize, pooled_frames, spread_frames
from voxveil.features.content.train import (
    LabelledUtterance,
    TrainedContent,
    frame_accuracy,
    mel_features,
    train_content,
)
from voxveil.privacy import (
    Identity,
    LaplaceSimplex,
    PublicNoise,
    RandomizedResponse,
    SubsetSelection,
    SystemNoise,
)
from voxveil.privacy.loss_rule import LossRule
from voxveil.training.loop import seeded

pytestmark = pytest.mark.torch


@given(st.integers(1, 40), st.integers(1, 9))
def test_groups_have_the_mean_of_their_frames(frames: int, every: int) -> None:
    rows = np.random.default_rng(frames).normal(size=(frames, 3))
    found = pooled(rows, every)
    assert len(found) == -(-frames // every)
    literal = [rows[start : start + every].mean(axis=0) for start in range(0, frames, every)]
    assert np.allclose(found, literal)
    assert np.allclose(spread(found, every)[:frames][::every], found)
    both = pooled_frames(torch.from_numpy(rows)[None], torch.ones(1, frames, dtype=torch.float64), every)
    assert np.allclose(both[0].numpy(), found)
    assert spread_frames(both, every, frames).shape == (1, frames, 3)


def test_padding_takes_no_part_in_a_group() -> None:
    rows = torch.tensor([[[1.0], [3.0], [100.0], [100.0]]])
    mask = torch.tensor([[1.0, 1.0, 0.0, 0.0]])
    assert pooled_frames(rows, mask, 3).flatten().tolist() == [2.0, 0.0]


@pytest.mark.parametrize("mechanism", [LaplaceSimplex(5.0), RandomizedResponse(5.0), SubsetSelection(1.0)])
@pytest.mark.parametrize("every", [1, 3, 8])
def test_what_is_drawn_is_what_is_charged(mechanism: object, every: int) -> None:
    drawn: list[int] = []

    class Counted(SystemNoise):
        def words(self, count: int) -> np.ndarray:
            drawn.append(count)
            return super().words(count)

    with seeded(1, "rates"):
        model = ContentModel(ContentSize(5, 16, 6, 2, 5))
    extractor = ContentExtractor(mechanism, model, ("SIL", "A", "B", "C", "D"), range(5), every)
    audio = np.random.default_rng(0).normal(0, 0.1, 8000).astype(np.float32)
    frames = frame_count(len(audio))
    released = extractor.release(audio, Counted())
    assert released.value.shape == (frames, 5)
    vectors = LossRule(Identity("utterance"), mechanism, every=every).vectors(frames)
    assert vectors == -(-frames // every)
    changes = np.flatnonzero((np.diff(released.value, axis=0) != 0).any(axis=1)) + 1
    assert all(change % every == 0 for change in changes), "frames of a group share one vector"
    if isinstance(mechanism, RandomizedResponse):
        assert drawn == [vectors]
        assert sorted(set(released.value.ravel())) == [0.0, 1.0]
    if isinstance(mechanism, SubsetSelection):
        assert drawn == [vectors, 4 * vectors]
        assert sorted(set(released.value.ravel())) == [0.0, 0.5]


def test_codes_learn_to_name_phones_and_decode_through_their_noise() -> None:
    made = []
    for speaker in range(5):
        for number in range(4):
            audio, _, phones = phone_speech(speaker, number)
            labels = frame_labels(phones, frame_count(len(audio)), PHONES, "u")
            made.append(LabelledUtterance(f"{speaker}-{number}", f"s{speaker}", mel_features(audio), labels))
    unseen = []
    for number in range(4):
        audio, _, phones = phone_speech(9, number)
        labels = frame_labels(phones, frame_count(len(audio)), PHONES, "u")
        unseen.append((audio, labels, PublicNoise(1, "unseen", number)))

    def trained_as(variant: ContentVariant) -> TrainedContent:
        params = TrainContentParams(
            bottleneck=16,
            hidden=32,
            factor=12,
            layers=2,
            steps=60,
            chunk_frames=60,
        )
        return train_content(made, PHONES, range(len(PHONES)), params, variant, "v", 3)

    found = {}
    for epsilon, every in ((8.0, 1), (8.0, 3), (0.1, 1)):
        trained = trained_as(ContentVariant("randomized_response", epsilon, every))
        assert trained.description["every"] == every
        assert trained.extractor.size == len(PHONES)
        found[epsilon, every] = frame_accuracy(trained.extractor, unseen, 0).all
    subset = trained_as(ContentVariant("subset_selection", 2.0)).extractor
    assert subset.size == len(PHONES)
    assert frame_accuracy(subset, unseen, 0).all > found[0.1, 1] + 0.1
    gaussian = trained_as(ContentVariant("gaussian", rho=50.0))
    assert gaussian.description["rho"] == 50.0 and gaussian.extractor.size == 16
    assert gaussian.extractor.loss["measure"] == "zcdp" and gaussian.extractor.loss["epsilon"] == "inf"
    assert frame_accuracy(gaussian.extractor, unseen, 0).all > found[0.1, 1] + 0.2
    sharp = trained_as(ContentVariant("sharp_laplace", 30.0)).extractor
    assert sharp.sharp and sharp.loss["mechanism"] == "laplace_l1" and sharp.loss["sensitivity"] == 2.0
    shares = sharp.before_noise(unseen[0][0])
    assert (shares >= 0).all() and np.allclose(shares.sum(axis=1), 1.0)
    assert frame_accuracy(sharp, unseen, 0).all > found[0.1, 1] + 0.2
    assert found[8.0, 1] > found[0.1, 1] + 0.2
    assert found[8.0, 3] > found[0.1, 1] + 0.1
