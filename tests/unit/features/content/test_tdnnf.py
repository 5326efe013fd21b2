"""Factorized layers and the acoustic model around them."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.features.content.model import (
    ContentModel,
    ContentSize,
    FactorizedLayer,
    constrain,
    norm1_torch,
    orthogonality_error,
)
from voxveil.privacy import norm1
from voxveil.training.loop import seeded

pytestmark = pytest.mark.torch
SIZE = ContentSize(bottleneck=10, hidden=16, factor=6, layers=3, classes=5)


@pytest.fixture(scope="module")
def model() -> ContentModel:
    with seeded(1, "test"):
        return ContentModel(SIZE).eval()


def test_the_constraint_leads_to_a_semi_orthogonal_matrix() -> None:
    with seeded(2, "test"):
        layer = FactorizedLayer(24, 8, 1)
    before = orthogonality_error(layer)
    for _ in range(60):
        constrain(layer)
    assert before > 0.1
    assert orthogonality_error(layer) < 1e-4
    matrix = layer.linear.weight.detach().flatten(1).double().numpy()
    product = matrix @ matrix.T
    assert product / product[0, 0] == pytest.approx(np.eye(8), abs=1e-4)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=4), st.integers(0, 99))
def test_alone_or_in_a_batch_is_the_same(model: ContentModel, lengths: list[int], key: int) -> None:
    """Computed in float64, where another order of sums does not show."""
    exact = deepcopy(model).double()
    generator = torch.Generator().manual_seed(key)
    frames = max(lengths)
    mel = torch.randn(len(lengths), frames, 80, generator=generator).double()
    content = norm1_torch(torch.randn(len(lengths), frames, SIZE.bottleneck, generator=generator).double())
    mask = (torch.arange(frames)[None] < torch.tensor(lengths)[:, None]).double()
    with torch.no_grad():
        encoded, classified = exact.encode(mel, mask), exact.classify(content, mask)
        for i, n in enumerate(lengths):
            ones = torch.ones(1, n).double()
            alone = exact.encode(mel[i : i + 1, :n], ones)[0]
            # The model gives float32: rounded once, and for the posteriors a softmax of it.
            assert torch.allclose(encoded[i, :n], alone, rtol=2e-7, atol=1e-9)
            alone = exact.classify(content[i : i + 1, :n], ones)[0]
            assert torch.allclose(classified[i, :n], alone, rtol=0, atol=1e-5)


def test_a_vector_sees_exactly_as_far_as_the_model_says(model: ContentModel) -> None:
    assert model.reach == 2 + 1 + 1 + 3
    mel = torch.randn(1, 60, 80, generator=torch.Generator().manual_seed(0), requires_grad=True)
    model.encode(mel, torch.ones(1, 60))[0, 30].abs().sum().backward()
    seen = torch.nonzero(mel.grad[0].abs().sum(dim=1)).flatten().tolist()
    assert (min(seen), max(seen)) == (30 - model.reach, 30 + model.reach)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 999), st.sampled_from([1e-6, 1.0, 1e6]))
def test_norm1_in_torch_is_that_of_the_mechanism(key: int, size: float) -> None:
    vectors = size * np.random.default_rng(key).standard_normal((4, 7))
    vectors[2] = 0.0
    assert norm1_torch(torch.from_numpy(vectors)).numpy() == pytest.approx(norm1(vectors), abs=1e-12)


def test_norm1_keeps_gradients_finite_at_zero() -> None:
    vectors = torch.zeros(2, 5, requires_grad=True)
    norm1_torch(vectors)[:, 1].sum().backward()
    assert torch.isfinite(vectors.grad).all()
