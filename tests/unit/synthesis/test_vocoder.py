"""The vocoder: exact length, independence of the batch, and that its prior already speaks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from made_speech import speak
from voxveil.audio.frames import frame_count
from voxveil.audio.mel import log_mel
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import InputError
from voxveil.synthesis.losses import stft_loss
from voxveil.synthesis.source import fill_unvoiced, noise_source
from voxveil.synthesis.vocoder import Vocoder, VocoderSize, envelope_weights
from voxveil.training.checkpoint import write_trained
from voxveil.training.loop import seeded

pytestmark = pytest.mark.torch


def trained_like(channels: int = 8) -> Vocoder:
    """A vocoder whose residual is not zero."""
    with seeded(5, "vocoder"):
        vocoder = Vocoder(VocoderSize(channels)).eval()
        torch.nn.init.normal_(vocoder.leave.weight, std=0.1)
    return vocoder


def inputs(samples: int, rows: int = 1) -> tuple[torch.Tensor, ...]:
    frames = frame_count(samples)
    generator = torch.Generator().manual_seed(samples)
    return (
        torch.randn(rows, frames, 80, generator=generator) - 4.0,
        100.0 + 100.0 * torch.rand(rows, frames, generator=generator),
        (torch.rand(rows, frames, generator=generator) > 0.5).float(),
        torch.from_numpy(noise_source(samples)).repeat(rows, 1),
    )


@pytest.mark.parametrize("samples", [1, 2, 159, 160, 161, 400, 800, 15_999, 16_000, 16_001, 16_159])
def test_speaks_exactly_the_samples_asked_for(samples: int) -> None:
    with torch.inference_mode():
        audio = trained_like()(*inputs(samples))
    assert audio.shape == (1, samples)
    assert torch.isfinite(audio).all()


def test_alone_and_in_a_batch_are_equal() -> None:
    vocoder, arguments = trained_like(), inputs(8_000, rows=3)
    with torch.inference_mode():
        together = vocoder(*arguments)
        for row in range(3):
            alone = vocoder(*(argument[row : row + 1] for argument in arguments))
            torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=1e-4)


def test_untrained_it_already_follows_the_spectrum() -> None:
    audio, f0 = speak(120.0, 16_000)
    mel = log_mel(torch.from_numpy(audio)[None])
    filled = torch.from_numpy(fill_unvoiced(f0, 150.0))[None]
    voicing = torch.from_numpy((f0 > 0).astype(np.float32))[None]
    noise = torch.from_numpy(noise_source(16_000))[None]
    with torch.inference_mode():
        spoken = Vocoder(VocoderSize(8))(mel, filled, voicing, noise)
        silent = torch.zeros_like(spoken)
    target = torch.from_numpy(audio)[None]
    assert float(stft_loss(spoken, target)) < 0.5 * float(stft_loss(silent, target))
    assert float((log_mel(spoken) - mel).abs()[:, 3:-3].mean()) < 0.9


def test_silence_in_silence_out() -> None:
    mel = torch.full((1, 101, 80), float(np.log(1e-5)))
    noise = torch.from_numpy(noise_source(16_000))[None]
    with torch.inference_mode():
        audio = Vocoder(VocoderSize(8))(mel, torch.full((1, 101), 150.0), torch.zeros(1, 101), noise)
    assert float(audio.abs().max()) < 1e-4


def test_envelope_rows_are_weights() -> None:
    weights = envelope_weights()
    assert weights.shape == (513, 80)
    assert weights.min() >= 0
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-5)


def test_stored_and_read_back(tmp_path: Path) -> None:
    vocoder = trained_like()
    vocoder.normalize_by(np.full(80, -3.0, np.float32), np.full(80, 2.0, np.float32))
    write_trained(tmp_path, vocoder, vocoder.describe(), [], {})
    with torch.inference_mode():
        torch.testing.assert_close(Vocoder.load(tmp_path)(*inputs(999)), vocoder(*inputs(999)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "acoustic"}, "not a stft-source-filter model"),
        ({"format": 2}, "of format 1"),
        ({"sizes": {"channels": 9}}, "does not fit"),
        ({"sizes": {"width": 9}}, "do not describe"),
    ],
)
def test_another_file_is_refused_by_name(tmp_path: Path, change: dict[str, object], words: str) -> None:
    vocoder = trained_like()
    write_trained(tmp_path, vocoder, vocoder.describe(), [], {})
    write_json(tmp_path / "model.json", {**read_json(tmp_path / "model.json"), **change})
    with pytest.raises(InputError, match=words) as error:
        Vocoder.load(tmp_path)
    assert str(tmp_path) in str(error.value)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    vocoder = trained_like()
    write_trained(tmp_path, vocoder, vocoder.describe(), [], {})
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(InputError, match="model.safetensors: no such file"):
        Vocoder.load(tmp_path)


def test_loss_is_zero_for_equal_and_grows_with_the_difference() -> None:
    audio = torch.from_numpy(speak(150.0, 8_000)[0])[None]
    noise = torch.from_numpy(noise_source(8_000))[None]
    losses = [float(stft_loss(audio + level * noise, audio)) for level in (0.0, 0.01, 0.1, 1.0)]
    assert losses[0] == 0.0
    assert losses == sorted(losses)
