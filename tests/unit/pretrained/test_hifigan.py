"""Generators of HiFi-GAN in their authors' format: a small one without training, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn

from made_hifigan import WIDTH, old_names, published, write_generator
from voxveil.audio.frames import HOP
from voxveil.config.networks import TrainVocoderParams
from voxveil.pretrained.architectures import load
from voxveil.pretrained.importing import import_model
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.train_vocoder import start_from
from voxveil.synthesis.vocoders import build_vocoder

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a checkpoint."""
    return partial(write_generator, tmp_path / "source")


def imported(source: Path):
    return load(import_model([str(source)], "hifigan", source.with_name("out"), licence="MIT"))


def params(**changes: object) -> TrainVocoderParams:
    return TrainVocoderParams(**{"kind": "nsf_gan", "channels": WIDTH, **changes})


@pytest.mark.parametrize("normalized", [True, False])
def test_the_vocoder_then_computes_what_the_checkpoint_does(
    write: Callable[..., Path], normalized: bool
) -> None:
    network = published()
    state = old_names(network)
    if not normalized:  # as the authors' ``remove_weight_norm`` leaves them
        state = {name: value for name, value in state.items() if name.endswith("bias")}
        for name, layer in network.named_modules():
            if isinstance(layer, nn.Conv1d | nn.ConvTranspose1d):
                state[f"{name}.weight"] = layer.weight.detach()
    vocoder = build_vocoder(params()).eval()
    lacking = start_from(vocoder, imported(write(state)), params())
    assert {name.split(".")[0] for name in lacking} == {"source", "mel_mean", "mel_sd"}
    samples = 20 * HOP
    mel = torch.randn(1, 21, 80, generator=torch.Generator().manual_seed(1)) - 3.0
    f0, voicing = torch.full((1, 21), 120.0), torch.ones(1, 21)
    with torch.inference_mode():
        for layer in vocoder.source:
            layer.weight.zero_()
            layer.bias.zero_()
        audio = vocoder(mel, f0, voicing, torch.zeros(1, samples))
        padded = nn.functional.pad(mel.transpose(1, 2), (1, 1), mode="replicate")
        wanted = network(padded)[0, :, HOP + HOP // 2 :][:, :samples]
    np.testing.assert_allclose(audio.numpy(), wanted.numpy(), atol=2e-5)
    assert float(wanted.std()) > 0.01


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampling_rate": 22050}, "sampling_rate is 22050, must be 16000"),
        ({"hop_size": 256}, "hop_size is 256, must be 160"),
        ({"resblock": "2"}, "resblock is 2, must be 1"),
        ({"upsample_rates": [8, 8, 2, 2]}, r"upsample_rates is \[8, 8, 2, 2\], must be \[5, 4, 4, 2\]"),
        ({"upsample_initial_channel": 512}, "not a generator of HiFi-GAN of width 512"),
    ],
)
def test_a_generator_of_other_shapes_is_refused(
    write: Callable[..., Path], changes: dict[str, object], message: str
) -> None:
    source = write(old_names(published()), **changes)
    with pytest.raises(InputError, match=message):
        imported(source)
    assert not source.with_name("out").exists()


def test_a_weight_too_few_or_too_many_is_refused(write: Callable[..., Path]) -> None:
    state = old_names(published())
    generator = imported(write({**state, "extra.bias": torch.zeros(1)}))
    with pytest.raises(InputError, match=r"extra\.bias is no weight of this generator"):
        start_from(build_vocoder(params()), generator, params())
    generator.tensors.pop("extra.bias")
    generator.tensors.pop("conv_post.bias")
    with pytest.raises(InputError, match=r"has no weight for leave\.bias"):
        start_from(build_vocoder(params()), generator, params())


def test_another_kind_or_width_is_refused(write: Callable[..., Path]) -> None:
    generator = imported(write(old_names(published())))
    with pytest.raises(ParamsError, match="is for kind nsf_gan, got stft"):
        start_from(build_vocoder(params(kind="stft")), generator, params(kind="stft"))
    with pytest.raises(ParamsError, match=r"train_vocoder\.channels: got 32, must be 16"):
        start_from(build_vocoder(params(channels=32)), generator, params(channels=32))


def test_a_checkpoint_with_objects_is_refused(write: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="holds Python objects"):
        imported(write({"conv_pre.bias": Path("x")}))
