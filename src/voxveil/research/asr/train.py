"""Training of the conformer on speech with transcripts, by CTC and label-smoothed cross-entropy together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn import functional

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.config.fields import speeds_of
from voxveil.corpus.split import Utterance
from voxveil.research.asr.augment import Augmentation
from voxveil.research.asr.batches import Batches, Read, Reader, Said, fitting
from voxveil.research.asr.network import AsrNetwork, AsrSize, centred_mel
from voxveil.research.asr.recognizer import Recognizer
from voxveil.research.asr.tokens import BEGIN, BLANK, END, learn_tokens
from voxveil.research.params import AsrParams
from voxveil.training.holdout import hold_out
from voxveil.training.loop import CurveSink, Plan, device, fit, precision, seeded
from voxveil.training.stopping import early_stopping

__all__ = ["TrainedRecognizer", "train_recognizer"]

#: Label that does not count in the cross-entropy.
_PADDING = -100
#: Training utterances behind the normalization constants at most.
_STATISTICS = 200
#: Smallest standard deviation of an input band, in nat.
_SMALLEST_SD = 1e-2
#: Held-out speech that a validation hears, in seconds.
_VALIDATION = 3600.0


@dataclass(frozen=True)
class TrainedRecognizer:
    """A trained recognizer with its curve.

    Attributes:
        recognizer: Ready to transcribe.
        curve: Points of the loss; with held-out speakers, theirs as ``held_out``.
        utterances: Utterances it was trained on.
        left_out: Utterances that could not be trained on: too long, wordless, or shorter than their words.
        held_out: Utterances of speakers held out to stop by.
        step: Step its weights are of.
    """

    recognizer: Recognizer
    curve: list[dict[str, float]]
    utterances: int
    left_out: int
    held_out: int
    step: int


def train_recognizer(
    utterances: Sequence[Utterance],
    read: Read,
    params: AsrParams,
    *,
    name: str,
    seed: int,
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
) -> TrainedRecognizer:
    """Train a recognizer; equal speech, parameters and seed give an equal one (on a CPU with one thread).

    Args:
        utterances: What is said, with transcripts.
        read: Reads the audio, as original or as anonymized.
        params: Sizes and steps.
        name: For progress and errors, e.g. ``asr[original]``; batches and first weights do not depend on it.
        seed: The run's seed.
        checkpoints: Where to resume from and save to.
        sink: Told each point of the curve.

    Raises:
        InputError: No transcripts, nothing that fits, or one speaker where some are to be held out.
    """
    speeds = speeds_of(params.speeds, "asr.speeds")
    tokens = learn_tokens([utterance.text for utterance in utterances], params.pieces)
    said = fitting(utterances, tokens, max_seconds=params.max_seconds, fastest=max(speeds))
    training, held = hold_out(said, seed) if params.patience else (said, [])
    size = AsrSize(
        len(tokens),
        params.width,
        params.heads,
        params.encoder_layers,
        params.decoder_layers,
        params.feedforward,
        params.kernel,
        params.dropout,
    )
    with seeded(seed, "asr", "initial"):
        network = AsrNetwork(size)
    network.normalize_by(*_statistics(training, read))
    network.to(device())
    augmentation = Augmentation(speeds, params.spec_augment)
    batches = Batches(training, params.batch_seconds, seed, "asr")
    unseen = _validation(held, params.batch_seconds, seed)

    with Reader(read, params.workers) as reader, Reader(read, params.workers) as other:

        def loss_of_step(step: int) -> tuple[torch.Tensor, dict[str, float]]:
            batch = batches.of_step(step)
            audio, samples = reader.audio(batch, batches.of_step(step + 1))
            audio, samples = augmentation.played(audio.to(device()), samples.to(device()))
            return _loss(network, batch, audio, samples, params, augmentation)

        def held_out() -> dict[str, float]:
            total, spelt = 0.0, 0
            with precision(params.bf16, device()):
                for batch, following in zip(unseen, [*unseen[1:], unseen[0]], strict=True):
                    audio, samples = other.audio(batch, following)
                    loss, _ = _loss(network, batch, audio.to(device()), samples.to(device()), params)
                    count = sum(len(utterance.tokens) for utterance in batch)
                    total, spelt = total + count * float(loss), spelt + count
            return {"held_out": total / spelt}

        plan = Plan(name, seed, params.steps, params.learning_rate, clip=5.0, bf16=params.bf16)
        stopping = early_stopping(network, held_out, params.patience, checkpoints)
        curve = fit(network, loss_of_step, plan, checkpoints=checkpoints, sink=sink, watch=stopping)
    step = int(curve[-1]["step"])
    if stopping is not None:
        step = stopping.restore() or step
    counts = len(training), len(utterances) - len(said), len(held)
    return TrainedRecognizer(Recognizer(network, tokens), curve, *counts, step)


def _loss(
    network: AsrNetwork,
    batch: Sequence[Said],
    audio: torch.Tensor,
    samples: torch.Tensor,
    params: AsrParams,
    augmentation: Augmentation | None = None,
) -> tuple[torch.Tensor, dict[str, float]]:
    """Return the loss per token of a batch, and its two parts."""
    where = audio.device
    # The Fourier transform and the means stay in float32 whatever the network computes in.
    with torch.autocast(where.type, enabled=False):
        mel, frames = centred_mel(audio, samples)
        normal = network.normalized(mel, frames)
        if augmentation is not None:
            normal = augmentation.masked(normal)
    spelt = [torch.tensor(utterance.tokens) for utterance in batch]
    before = _filled([torch.cat([torch.tensor([BEGIN]), tokens]) for tokens in spelt], BLANK).to(where)
    after = _filled([torch.cat([tokens, torch.tensor([END])]) for tokens in spelt], _PADDING).to(where)
    log_probs, logits, lengths = network(normal, frames, before)
    ctc = functional.ctc_loss(
        log_probs.transpose(0, 1),
        _filled(spelt, BLANK).to(where),
        lengths,
        torch.tensor([len(tokens) for tokens in spelt], device=where),
        blank=BLANK,
    )
    attention = functional.cross_entropy(
        logits.transpose(1, 2), after, ignore_index=_PADDING, label_smoothing=params.label_smoothing
    )
    loss = params.ctc_weight * ctc + (1.0 - params.ctc_weight) * attention
    return loss, {"ctc": float(ctc.detach()), "attention": float(attention.detach())}


def _filled(rows: Sequence[torch.Tensor], value: int) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=value)


def _statistics(said: Sequence[Said], read: Read) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the (80,) mean and standard deviation of centred log-mel over spread training utterances."""
    chosen = said[:: max(1, -(-len(said) // _STATISTICS))]
    frames = []
    for utterance in chosen:
        audio = torch.from_numpy(read(utterance.id))
        mel, count = centred_mel(audio[None], torch.tensor([len(audio)]))
        frames.append(mel[0, : int(count[0])])
    everything = torch.cat(frames).double()
    sd = everything.std(dim=0, unbiased=False).clamp(min=_SMALLEST_SD)
    return everything.mean(dim=0).float(), sd.float()


def _validation(held: Sequence[Said], seconds: float, seed: int) -> list[list[Said]]:
    """Return batches of held-out speech, spread over all of it, of :data:`_VALIDATION` seconds at most."""
    if not held:
        return []
    batches = Batches(held, seconds, seed, "asr-held-out")
    most = max(
        1, int(_VALIDATION * SAMPLE_RATE * len(batches) / sum(utterance.samples for utterance in held))
    )
    every = max(1, -(-len(batches) // most))
    return [batches.in_order(index) for index in range(0, len(batches), every)]
