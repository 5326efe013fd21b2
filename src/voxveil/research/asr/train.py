"""Training of the conformer on speech with transcripts, by CTC and label-smoothed cross-entropy together.

Data augmentation by speed perturbation and spectral masking: Ko et al., "Audio augmentation for speech
recognition", Interspeech 2015; Park et al., "SpecAugment", Interspeech 2019. Both are SpeechBrain's; what
they draw comes from torch's generators, which a step seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from voxveil.audio.frames import SAMPLE_RATE
from voxveil.config.fields import speeds_of
from voxveil.corpus.split import Utterance
from voxveil.research.asr.batches import Batches, Read, Reader, Said, fitting
from voxveil.research.asr.network import AsrNetwork, AsrSize, centred_mel, quiet
from voxveil.research.asr.recognizer import Recognizer
from voxveil.research.asr.tokens import BEGIN, BLANK, END, learn_tokens
from voxveil.research.params import AsrParams
from voxveil.training.holdout import hold_out
from voxveil.training.loop import CurveSink, Plan, device, early_stopping, fit, precision, seeded
from voxveil.training.placeholders import remove_placeholders

__all__ = ["Augmentation", "TrainedRecognizer", "train_recognizer"]

#: Label that does not count in the cross-entropy.
_PADDING = -100
#: Training utterances behind the normalization constants at most.
_STATISTICS = 200
#: Smallest standard deviation of an input band, in nat.
_SMALLEST_SD = 1e-2
#: Held-out speech that a validation hears, in seconds.
_VALIDATION = 3600.0


class Augmentation:
    """Changes the speech of a training step.

    Args:
        speeds: Playing speeds, one of which is drawn for the whole batch.
        spec_augment: Whether spectra are masked.
    """

    def __init__(self, speeds: Sequence[float], spec_augment: bool) -> None:
        with quiet():
            from speechbrain.augment.freq_domain import SpectrogramDrop
            from speechbrain.augment.time_domain import SpeedPerturb

        remove_placeholders()
        self._percents = [100.0 * speed for speed in speeds]
        self._speed: Any = SpeedPerturb(SAMPLE_RATE, speeds=self._percents) if len(speeds) > 1 else None
        # SpecAugment's LibriSpeech policy in SpeechBrain's recipe: frames of 10 ms, bands of 80.
        self._masks: list[Any] = []
        if spec_augment:
            self._masks = [
                SpectrogramDrop(15, 25, 2, 5, replace="zeros", dim=1),
                SpectrogramDrop(25, 35, 2, 2, replace="zeros", dim=2),
            ]

    def played(self, audio: torch.Tensor, samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (batch, N) audio at a drawn speed, and the (batch,) samples that each has then."""
        if self._speed is None:
            return audio, samples
        # On the device of the audio, not on the one SpeechBrain moves it to unless told.
        self._speed.device = audio.device
        changed = self._speed(audio)
        percent = self._percents[int(self._speed.samp_index)]
        return changed, (samples * 100.0 / percent).floor().long().clamp(min=1, max=changed.shape[1])

    def masked(self, normal: torch.Tensor) -> torch.Tensor:
        """Return normalized (batch, K, 80) log-mel with stretches set to their mean, 0."""
        for mask in self._masks:
            normal = mask(normal)
        return normal


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
        sink: Called with each point of the curve.

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
    step = (stopping.best_step if stopping else 0) or int(curve[-1]["step"])
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
