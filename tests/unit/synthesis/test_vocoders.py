"""The vocoders for larger sizes: one interface, and a reach that is what it says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from made_speech import speak, write_speech
from voxveil.audio.frames import HOP, frame_count
from voxveil.audio.mel import log_mel
from voxveil.config.compose import compose
from voxveil.config.networks import TrainVocoderParams
from voxveil.corpus.split import Split
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import InputError
from voxveil.synthesis.acoustic import AcousticModel, AcousticSize
from voxveil.synthesis.losses import Discriminators, adversarial_losses, stft_loss
from voxveil.synthesis.nsf import NsfSize, NsfVocoder, sinc_filters
from voxveil.synthesis.source import NoiseTape, fill_unvoiced, noise_source
from voxveil.synthesis.speech import Speech
from voxveil.synthesis.train_vocoder import train_vocoder
from voxveil.synthesis.vocoders import AnyVocoder, build_vocoder, load_vocoder
from voxveil.training.checkpoint import write_trained
from voxveil.training.loop import seeded

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

SMALL = TrainVocoderParams(
    channels=8, width=4, harmonic_blocks=2, layers=3, discriminator=4, steps=6, batch=2, crop_frames=30
)
KINDS = ("stft", "hn_sinc", "nsf_gan")


def made(kind: str) -> AnyVocoder:
    """A small vocoder whose every layer does something."""
    with seeded(5, "vocoder", kind):
        vocoder = build_vocoder(replace(SMALL, kind=kind)).eval()
        for name, value in vocoder.named_parameters():
            if not value.any():
                torch.nn.init.normal_(value, std=0.05)
            assert value.any(), name
    return vocoder


def inputs(samples: int, rows: int = 1) -> list[torch.Tensor]:
    frames = frame_count(samples)
    generator = torch.Generator().manual_seed(samples)
    return [
        torch.randn(rows, frames, 80, generator=generator) - 4.0,
        100.0 + 100.0 * torch.rand(rows, frames, generator=generator),
        (torch.rand(rows, frames, generator=generator) > 0.5).float(),
        torch.from_numpy(noise_source(samples)).repeat(rows, 1),
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("samples", [1, 159, 160, 400, 8_001, 16_159])
def test_speaks_exactly_the_samples_asked_for(kind: str, samples: int) -> None:
    with torch.inference_mode():
        audio = made(kind)(*inputs(samples))
    assert audio.shape == (1, samples) and audio.dtype == torch.float32
    assert torch.isfinite(audio).all()


@pytest.mark.parametrize("kind", KINDS)
def test_reach_is_what_a_sample_sees(kind: str) -> None:
    """A change beyond the reach of a sample does not move it; one within does."""
    vocoder, arguments = made(kind), inputs(160 * 120)
    frame = 60
    with torch.inference_mode():
        before = vocoder(*arguments)
        changed = [argument.clone() for argument in arguments]
        changed[0][:, frame] += 3.0
        changed[2][:, frame] = 1.0 - changed[2][:, frame]
        moved = ((vocoder(*changed) - before)[0].abs() > 1e-7).nonzero()[:, 0]
    assert len(moved)
    reach = HOP * vocoder.reach
    assert moved.min() >= HOP * frame - reach
    assert moved.max() < HOP * frame + reach + HOP


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_stored_is_read_back(kind: str, tmp_path: Path) -> None:
    vocoder, arguments = made(kind), inputs(4_000)
    write_trained(tmp_path, vocoder, vocoder.describe(), [{"step": 1, "loss": 1.0}], {})
    again = load_vocoder(tmp_path)
    assert type(again) is type(vocoder) and again.reach == vocoder.reach
    with torch.inference_mode():
        torch.testing.assert_close(again(*arguments), vocoder(*arguments))
    write_json(tmp_path / "model.json", {**read_json(tmp_path / "model.json"), "kind": "other"})
    with pytest.raises(InputError, match="not a vocoder; must be of kind stft-source-filter"):
        load_vocoder(tmp_path)


def test_untrained_filter_blocks_leave_the_shaped_sources() -> None:
    audio, f0 = speak(120.0, 16_000)
    mel = log_mel(torch.from_numpy(audio)[None])
    arguments = (
        mel,
        torch.from_numpy(fill_unvoiced(f0, 150.0))[None],
        torch.from_numpy((f0 > 0).astype(np.float32))[None],
        torch.from_numpy(noise_source(16_000))[None],
    )
    with torch.inference_mode():
        spoken = NsfVocoder(NsfSize(8, 4, 2, 1, 3))(*arguments)
    target = torch.from_numpy(audio)[None]
    assert float(stft_loss(spoken, target)) < 0.6 * float(stft_loss(torch.zeros_like(spoken), target))


@pytest.mark.parametrize("cutoff", [0.1, 0.5, 0.9])
def test_the_joining_filter_passes_what_lies_below_its_cutoff(cutoff: float) -> None:
    response = torch.fft.rfft(sinc_filters(torch.tensor(cutoff, dtype=torch.float64)), 512).abs()
    edge = int(cutoff * 256)
    assert float(response[0]) == pytest.approx(1.0, abs=1e-12)
    assert response[: max(1, edge - 40)].min() > 0.9
    assert edge + 40 >= 257 or response[edge + 40 :].max() < 0.1


def test_the_tape_is_the_noise() -> None:
    whole, tape = noise_source(5_000), NoiseTape(5_000)
    for start, stop in ((0, 700), (300, 1_501), (1_500, 1_600), (1_599, 5_000)):
        np.testing.assert_array_equal(tape.take(start, stop), whole[start:stop])


def test_each_side_of_the_adversarial_loss_moves_its_own_part_only() -> None:
    with seeded(1, "judges"):
        judges, generator = Discriminators(4), torch.nn.Linear(10, 10)
        real, drive = torch.randn(2, 4_000), torch.randn(2, 400, 10)

    def gradients(loss: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        loss.backward()
        found = (
            [p.grad.clone() for p in generator.parameters()],
            [p.grad.clone() for p in judges.parameters()],
        )
        generator.zero_grad()
        judges.zero_grad()
        return found

    made_ = generator(drive).flatten(1)
    both = gradients(adversarial_losses(judges, made_, real)[0])
    # The same by the book: discriminators on a constant output, then the generator against them.
    judged = zip(judges(real), judges(made_.detach()), strict=True)
    for_judges = sum((1 - a).square().mean() + b.square().mean() for (a, _), (b, _) in judged)
    for_judges.backward()
    for got, parameter in zip(both[1], judges.parameters(), strict=True):
        torch.testing.assert_close(got, parameter.grad, atol=1e-5, rtol=1e-3)
    assert all(gradient.any() for gradient in both[0])


@pytest.mark.parametrize("kind", ["hn_sinc", "nsf_gan"])
def test_learns_resumes_and_repeats(kind: str, tmp_path: Path) -> None:
    write_speech(tmp_path / "speech", dict.fromkeys("ab", (9600, 8159)))
    split = Split(tmp_path / "speech")
    speech = Speech(split)
    params = replace(SMALL, kind=kind, steps=3, batch=1, crop_frames=20, learning_rate=5e-4, patience=3)
    held = split.utterances[:1]
    first, curve = train_vocoder(speech, split.utterances, params, 1, held=held)
    again, same = train_vocoder(
        speech, split.utterances, params, 1, held=held, checkpoints=tmp_path / "checkpoints"
    )
    assert curve == same
    assert all(np.isfinite(point["loss"]) and "held_out" in point for point in curve)
    for name, value in first.state_dict().items():
        torch.testing.assert_close(value, again.state_dict()[name], rtol=0, atol=0)


def test_full_size_models_can_be_made(root: Path) -> None:
    """params/librispeech.yaml: on no device, so that it costs no memory."""
    params = compose(root / "params/librispeech.yaml")
    with torch.device("meta"):
        acoustic = AcousticModel(AcousticSize(256, 192, params.train_synthesis.channels, 16))
        judges = Discriminators(params.train_vocoder.discriminator)
        counts = {}
        for kind in KINDS[1:]:
            vocoder = build_vocoder(replace(params.train_vocoder, kind=kind))
            counts[kind] = sum(p.numel() for p in vocoder.parameters())
    assert params.train_vocoder.kind == "nsf_gan"
    # HiFi-GAN V1 has 14 million, and its discriminators 71 million.
    assert 10e6 < counts["nsf_gan"] < 20e6
    assert 60e6 < sum(p.numel() for p in judges.parameters()) < 80e6
    assert sum(p.numel() for p in acoustic.parameters()) > 10e6
