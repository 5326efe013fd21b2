"""The F0 autoencoder: bounds, padding, gradients, correlation."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given, settings
from hypothesis import strategies as st

from voxveil.features.pitch.model import (
    PitchAutoencoder,
    decode_one,
    encode_one,
    frame_mask,
    pearson,
    pearson_loss,
)
from voxveil.training.loop import seeded

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def model() -> PitchAutoencoder:
    with seeded(1, "test"):
        return PitchAutoencoder(6).eval()


def padded(rows: list[np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    batch = torch.full((len(rows), max(map(len, rows))), 9.0)
    for i, row in enumerate(rows):
        batch[i, : len(row)] = torch.from_numpy(row)
    return batch, frame_mask(torch.tensor([len(row) for row in rows]), batch.shape[1])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=4), st.integers(0, 99))
def test_alone_or_in_a_batch_is_the_same(model: PitchAutoencoder, lengths: list[int], key: int) -> None:
    rng = np.random.default_rng(key)
    rows = [rng.uniform(0, 1, n).astype(np.float32) for n in lengths]
    batch, mask = padded(rows)
    with torch.no_grad():
        h = model.encode(batch, mask)
        noisy = h + 0.3 * torch.from_numpy(rng.standard_normal(h.shape).astype(np.float32))
        output = model.decode(noisy, mask)
    assert float(h.min()) >= 0 and float(h.max()) <= 1
    for i, row in enumerate(rows):
        assert h[i, :, : len(row)].numpy() == pytest.approx(encode_one(model, row), abs=1e-5)
        alone = decode_one(model, noisy[i, :, : len(row)].numpy())
        assert output[i, : len(row)].numpy() == pytest.approx(alone, abs=1e-5)


def test_pearson_is_that_of_numpy() -> None:
    rng = np.random.default_rng(3)
    rows = [rng.uniform(0, 1, n).astype(np.float32) for n in (30, 7, 2)]
    other = [(0.5 * row + rng.uniform(0, 1, len(row))).astype(np.float32) for row in rows]
    (a, mask), (b, _) = padded(other), padded(rows)
    value, defined = pearson(a, b, mask)
    expected = [np.corrcoef(x, y)[0, 1] for x, y in zip(other, rows, strict=True)]
    assert defined.all()
    assert value.numpy() == pytest.approx(expected, abs=1e-5)
    assert float(pearson_loss(a, b, mask)) == pytest.approx(1 - np.mean(expected), abs=1e-5)


def test_constant_sequences() -> None:
    ramp, flat = torch.arange(5.0)[None], torch.full((1, 5), 0.3)
    mask = torch.ones(1, 5)
    value, defined = pearson(flat, ramp, mask)
    assert bool(defined[0]) and float(value[0]) == 0.0
    value, defined = pearson(ramp, flat, mask)
    assert not bool(defined[0]) and float(value[0]) == 0.0
    output = ramp.clone().requires_grad_()
    loss = pearson_loss(output, flat, mask)
    loss.backward()
    assert float(loss.detach()) == 0.0 and torch.isfinite(output.grad).all()


def test_an_unvoiced_utterance_does_not_move_the_loss_of_the_others() -> None:
    rng = np.random.default_rng(0)
    a, b = (torch.from_numpy(rng.uniform(0, 1, (2, 20))) for _ in range(2))
    with_flat = torch.cat([b, torch.zeros(1, 20)])
    more = torch.cat([a, torch.ones(1, 20)])
    assert float(pearson_loss(a, b, torch.ones(2, 20))) == pytest.approx(
        float(pearson_loss(more, with_flat, torch.ones(3, 20)))
    )


def test_the_gradient_passes_the_noise_layer(model: PitchAutoencoder) -> None:
    unit = torch.rand(2, 30, generator=torch.Generator().manual_seed(0))
    mask = torch.ones(2, 30)
    h = model.encode(unit, mask)
    pearson_loss(model.decode(h + 0.05, mask), unit, mask).backward()
    assert float(model.encoder[0].weight.grad.abs().max()) > 0
    model.zero_grad()
