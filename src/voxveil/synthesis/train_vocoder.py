"""Training of the vocoder on public speech: true log-mel and F0 in, the waveform out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from voxveil.audio.frames import HOP
from voxveil.audio.mel import log_mel
from voxveil.config.networks import TrainVocoderParams
from voxveil.corpus.split import Utterance
from voxveil.runtime.seeding import stream
from voxveil.synthesis.losses import Discriminators, adversarial_losses, stft_loss
from voxveil.synthesis.source import NOISE_SCALE, fill_unvoiced
from voxveil.synthesis.speech import Speech, draw_crops, mel_statistics
from voxveil.synthesis.vocoders import DEFAULT_F0, AnyVocoder, build_vocoder, copy_synthesis, tensors
from voxveil.training import ranks
from voxveil.training.loop import CurveSink, Plan, device, early_stopping, fit, precision, seeded

__all__ = ["copy_distance", "train_vocoder"]

_NAME = "train_vocoder"


def train_vocoder(
    speech: Speech,
    utterances: Sequence[Utterance],
    params: TrainVocoderParams,
    seed: int,
    *,
    held: Sequence[Utterance] = (),
    initial: Callable[[AnyVocoder], None] | None = None,
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
) -> tuple[AnyVocoder, list[dict[str, float]]]:
    """Train a vocoder and return it with its curve.

    Args:
        speech: Reads the utterances.
        utterances: The public utterances to train on.
        params: Kind, sizes and steps.
        seed: The run's seed.
        held: Public utterances of other speakers, for early stopping.
        initial: Fills the vocoder before training; it then takes the log-mel as it is.
        checkpoints: Where to resume from and save to.
        sink: Called with each point of the curve.
    """
    with seeded(seed, _NAME, "initial"):
        vocoder = build_vocoder(params)
        judges = Discriminators(params.discriminator) if params.kind == "nsf_gan" else None
    if initial is None:
        vocoder.normalize_by(*mel_statistics(speech, utterances))
    else:
        initial(vocoder)
    # One model, so that one checkpoint holds both sides.
    model: nn.Module = vocoder if judges is None else nn.ModuleList([vocoder, judges])
    model.to(device())

    def loss_of_step(step: int) -> tuple[torch.Tensor, dict[str, float]]:
        inputs, target = _batch(speech, utterances, params, seed, "batch", step)
        output = vocoder(*inputs).float()
        if judges is not None:
            return adversarial_losses(judges, output, target)
        return stft_loss(output, target), {}

    def held_out() -> dict[str, float]:
        inputs, target = _batch(speech, held, params, seed, "held-out", 0)
        with precision(params.bf16, device()):
            return {"held_out": float(stft_loss(vocoder(*inputs).float(), target))}

    curve = fit(
        model,
        loss_of_step,
        Plan(_NAME, seed, params.steps, params.learning_rate, bf16=params.bf16),
        checkpoints=checkpoints,
        sink=sink,
        watch=early_stopping(model, held_out, params.patience if held else 0, checkpoints),
        apart=() if judges is None else (judges,),
    )
    return vocoder, curve


def _batch(
    speech: Speech,
    utterances: Sequence[Utterance],
    params: TrainVocoderParams,
    seed: int,
    name: str,
    step: int,
) -> tuple[list[torch.Tensor], torch.Tensor]:
    """Return the vocoder's inputs of a step, and the target audio (rows, n)."""
    frames, samples = params.crop_frames + 1, HOP * params.crop_frames
    rows = ranks.share(params.batch)
    parts = []
    for crop in draw_crops(utterances, frames, params.batch, seed, _NAME, name, step)[rows]:
        whole = speech[crop.item].padded(frames)
        span = slice(crop.start, crop.start + frames)
        audio = whole.audio[HOP * span.start : HOP * (span.stop - 1)]
        parts.append((audio, whole.log_mel[span], whole.f0[span]))
    target, mel, f0 = (np.stack(part) for part in zip(*parts, strict=True))
    noise = stream(seed, _NAME, "noise", step).standard_normal((params.batch, samples), dtype=np.float32)
    filled = np.stack([fill_unvoiced(row, DEFAULT_F0) for row in f0])
    voicing = (f0 > 0).astype(np.float32)
    *inputs, wanted = tensors(mel, filled, voicing, noise[rows] * np.float32(NOISE_SCALE), target)
    return inputs, wanted


def copy_distance(vocoder: AnyVocoder, speech: Speech, utterances: Sequence[Utterance]) -> float:
    """Return the mean absolute log-mel difference (nat) between copy synthesis and the original."""
    distances = []
    for utterance in utterances:
        item = speech[utterance.id]
        with torch.inference_mode():
            again = copy_synthesis(vocoder, item.log_mel, item.f0, len(item.audio))
            mel = log_mel(torch.from_numpy(again)[None])[0].numpy()
        distances.append(float(np.abs(mel - item.log_mel).mean()))
    return float(np.mean(distances))
