"""The acoustic model and its loss."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from voxveil.synthesis.acoustic import AcousticModel, AcousticSize, acoustic_loss
from voxveil.training.loop import seeded

pytestmark = pytest.mark.torch

SIZE = AcousticSize(content=12, embedding=8, channels=16, layers=3)


def model() -> AcousticModel:
    with seeded(2, "acoustic"):
        return AcousticModel(SIZE).eval()


def inputs(rows: int, frames: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(frames)
    content = torch.randn(rows, frames, 12, generator=generator)
    content = content / content.abs().sum(dim=2, keepdim=True)
    return content, torch.rand(rows, frames, generator=generator), torch.randn(rows, 8, generator=generator)


def test_alone_and_in_a_batch_are_equal() -> None:
    # In float64, where another order of sums does not show.
    network, arguments = model().double(), [argument.double() for argument in inputs(3, 50)]
    with torch.inference_mode():
        together = network.predict(*arguments)
        alone = network.predict(*(argument[1:2] for argument in arguments))
    for a, b in zip(alone, together, strict=True):
        torch.testing.assert_close(a[0], b[1], atol=1e-11, rtol=0)


def test_a_frame_far_from_the_end_does_not_feel_the_length() -> None:
    """No statistic over the utterance: what is appended cannot change what was said before."""
    network = model().double()
    content, pitch, embedding = (argument.double() for argument in inputs(1, 120))
    with torch.inference_mode():
        whole, _ = network.predict(content, pitch, embedding)
        part, _ = network.predict(content[:, :80], pitch[:, :80], embedding)
    torch.testing.assert_close(part[:, :60], whole[:, :60], atol=1e-11, rtol=0)


def test_shapes_for_one_frame_and_the_target_matters() -> None:
    network = model()
    content, pitch, embedding = inputs(1, 1)
    with torch.inference_mode():
        mel, voicing = network.predict(content, pitch, embedding)
        other, _ = network.predict(content, pitch, -embedding)
    assert mel.shape == (1, 1, 80)
    assert voicing.shape == (1, 1)
    assert float((mel - other).abs().max()) > 1e-3


def test_normalisation_constants_are_undone() -> None:
    network = model()
    with torch.inference_mode():
        plain, _ = network(*inputs(1, 20))
        network.normalize_by(np.full(80, -5.0, np.float32), np.full(80, 2.0, np.float32))
        mel, _ = network.predict(*inputs(1, 20))
    torch.testing.assert_close(mel, 2.0 * plain - 5.0)


def literal_loss(
    predicted: torch.Tensor, logits: torch.Tensor, wanted: torch.Tensor, voiced: torch.Tensor
) -> float:
    """The definition for one utterance without padding."""
    level = float((predicted - wanted).abs().mean())
    steps = [(predicted[k + 1] - predicted[k]) - (wanted[k + 1] - wanted[k]) for k in range(len(wanted) - 1)]
    motion = float(torch.stack(steps).abs().mean())
    p = torch.sigmoid(logits)
    entropy = float(-(voiced * torch.log(p) + (1 - voiced) * torch.log(1 - p)).mean())
    return level + motion + 0.5 * entropy


def test_loss_is_its_definition_and_padding_does_not_count() -> None:
    generator = torch.Generator().manual_seed(0)
    predicted, wanted = torch.randn(2, 1, 30, 80, generator=generator)
    logits = torch.randn(1, 30, generator=generator)
    voiced = (torch.rand(1, 30, generator=generator) > 0.5).float()
    mask = torch.ones(1, 30)
    mask[:, 20:] = 0
    loss, values = acoustic_loss(predicted, logits, wanted, voiced, mask)
    expected = literal_loss(predicted[0, :20], logits[0, :20], wanted[0, :20], voiced[0, :20])
    assert abs(float(loss) - expected) < 1e-4
    assert values["mel"] > 0
    predicted[:, 20:] += 100.0
    again, _ = acoustic_loss(predicted, logits, wanted, voiced, mask)
    assert float(again) == float(loss)
