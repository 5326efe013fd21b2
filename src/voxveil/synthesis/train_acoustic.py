"""Training of a system's acoustic model on released features of that system.

The speech is public; its noise is drawn anew at every step from a seeded stream, so the model
learns to speak through the very noise it will get. The target in training is the utterance's
own speaker embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.config.networks import SynthesisParams
from voxveil.corpus.split import Utterance
from voxveil.features.content.extractor import spread
from voxveil.features.extraction import System
from voxveil.privacy import PublicNoise
from voxveil.runtime.errors import InputError
from voxveil.synthesis.acoustic import AcousticModel, AcousticSize, acoustic_loss
from voxveil.synthesis.speech import Crop, Speech, draw_crops, mel_statistics
from voxveil.training import ranks
from voxveil.training.loop import CurveSink, Plan, device, early_stopping, fit, precision, seeded

__all__ = ["AcousticData", "Measured", "measure", "train_acoustic"]

Array = NDArray[np.float32]
#: Returns the (E,) embedding of an utterance's audio (n,).
Embed = Callable[[Array, str], Array]

_CACHE_BYTES = 4 << 30


@dataclass(frozen=True)
class _Known:
    """Cached values of an utterance: content before its noise, and the voice."""

    content: Array
    embedding: Array


class AcousticData:
    """Training data: released features of public utterances with their log-mel and voicing targets.

    Args:
        speech: Reads the utterances.
        system: Releases their features.
        embed: The speaker encoder.
        seed: The run's seed.
        name: Name of the system; keys the noise.
    """

    def __init__(self, speech: Speech, system: System, embed: Embed, seed: int, name: str) -> None:
        self.speech = speech
        self._system, self._embed, self._seed, self._name = system, embed, seed, name
        self._cache: dict[str, _Known] = {}
        self._bytes = 0

    def sizes(self, utterance: Utterance) -> tuple[int, int]:
        """Return (content size M, embedding size E), as the first utterance shows them."""
        known = self._known(utterance.id)
        return known.content.shape[1], len(known.embedding)

    def batch(
        self, crops: Sequence[Crop], frames: int, *keys: str | int, rows: slice = slice(None)
    ) -> tuple[torch.Tensor, ...]:
        """Return the tensors of one step.

        Args:
            crops: Where to look.
            frames: Frames per crop C.
            *keys: What the noise is for, with the step.
            rows: Which of the crops; batch counts these.

        Returns:
            content (batch, C, M), pitch (batch, C), embedding (batch, E), log_mel (batch, C, 80),
            voiced (batch, C), mask (batch, C) with 1 for frames of the utterance.
        """
        indices, crops = range(len(crops))[rows], crops[rows]
        known = [self._known(crop.item) for crop in crops]
        every = self._system.content.every
        groups = [slice(crop.start // every, -(-(crop.start + frames) // every)) for crop in crops]
        vectors = [k.content[group] for k, group in zip(known, groups, strict=True)]
        noise = PublicNoise(self._seed, "train_synthesis", self._name, "content", *keys, *ranks.key())
        # Noise is per vector, so one draw serves all crops of the batch.
        stacked = self._system.content.mechanism.perturb(np.concatenate(vectors), noise)
        released = np.split(stacked, np.cumsum([len(v) for v in vectors])[:-1])
        filled = []
        for index, crop, group, cached in zip(indices, crops, released, known, strict=True):
            utterance, span = self.speech[crop.item], slice(crop.start, crop.start + frames)
            voiced = utterance.f0[span] > 0
            content = spread(group, every)[crop.start % every :][: len(voiced)]
            noise = PublicNoise(self._seed, "train_synthesis", self._name, "pitch", crop.item, index, *keys)
            pitch = self._system.pitch.release(utterance.f0, noise).value[span]
            parts = (content, pitch, utterance.log_mel[span], voiced, np.ones(len(voiced)))
            content, pitch, *targets = (_fill(part, frames) for part in parts)
            filled.append((content, pitch, cached.embedding, *targets))
        return tuple(
            torch.from_numpy(np.stack(column).astype(np.float32)).to(device())
            for column in zip(*filled, strict=True)
        )

    def _known(self, item: str) -> _Known:
        if item in self._cache:
            return self._cache[item]
        audio = self.speech[item].audio
        content = self._system.content.before_noise(audio).astype(np.float32)
        known = _Known(content, self._embed(audio, f"utterance {item}"))
        size = content.nbytes + known.embedding.nbytes
        if self._bytes + size <= _CACHE_BYTES:
            self._cache[item] = known
            self._bytes += size
        return known


def train_acoustic(
    data: AcousticData,
    utterances: Sequence[Utterance],
    params: SynthesisParams,
    name: str,
    seed: int,
    *,
    held: Sequence[Utterance] = (),
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
) -> tuple[AcousticModel, list[dict[str, float]]]:
    """Train the acoustic model of system ``name`` and return it with its curve.

    Args:
        data: Features of public speech.
        utterances: What to train on.
        params: Sizes and steps.
        name: Name of the system.
        seed: The run's seed.
        held: Public utterances of other speakers, for early stopping.
        checkpoints: Where to resume from and save to.
        sink: Called with each point of the curve.
    """
    if not utterances:
        raise InputError(f"train_synthesis[{name}]: no utterance to train on")
    size = AcousticSize(*data.sizes(utterances[0]), params.channels, params.layers)
    with seeded(seed, "train_synthesis", "initial"):
        model = AcousticModel(size)
    model.normalize_by(*mel_statistics(data.speech, utterances))
    model.to(device())
    frames = params.crop_frames

    def loss_on(source: Sequence[Utterance], kind: str, step: int) -> tuple[torch.Tensor, dict[str, float]]:
        where = "batch" if kind == "step" else kind
        crops = draw_crops(source, frames, params.batch, seed, "train_synthesis", where, step)
        content, pitch, embedding, mel, voiced, mask = data.batch(
            crops, frames, kind, step, rows=ranks.share(params.batch)
        )
        predicted, logits = (part.float() for part in model(content, pitch, embedding))
        return acoustic_loss(predicted, logits, (mel - model.mel_mean) / model.mel_sd, voiced, mask)

    def held_out() -> dict[str, float]:
        with precision(params.bf16, device()):
            return {"held_out": float(loss_on(held, "held-out", 0)[0])}

    curve = fit(
        model,
        lambda step: loss_on(utterances, "step", step),
        Plan(f"train_synthesis[{name}]", seed, params.steps, params.learning_rate, bf16=params.bf16),
        checkpoints=checkpoints,
        sink=sink,
        watch=early_stopping(model, held_out, params.patience if held else 0, checkpoints),
    )
    return model, curve


@dataclass(frozen=True)
class Measured:
    """Log-mel error and voicing accuracy of an acoustic model on held-out speech.

    Attributes:
        mel_l1: Mean absolute log-mel difference in nat.
        voicing: Share of frames whose voicing is right.
    """

    mel_l1: float
    voicing: float


def measure(model: AcousticModel, data: AcousticData, utterances: Sequence[Utterance]) -> Measured:
    """Measure on held-out public utterances, each with its own voice as target."""
    distance = right = frames = 0.0
    for utterance in utterances:
        length = utterance.frames
        content, pitch, embedding, mel, voiced, _ = data.batch([Crop(utterance.id, 0)], length, "held-out")
        with torch.inference_mode():
            predicted, voicing = model.predict(content, pitch, embedding)
        distance += float((predicted - mel).abs().mean(dim=2).sum())
        right += float(((voicing > 0.5) == (voiced > 0.5)).sum())
        frames += length
    return Measured(distance / frames, right / frames)


def _fill(part: NDArray[np.generic], frames: int) -> Array:
    """Return ``part`` (n, ...) as float32 with zeros appended up to ``frames`` rows."""
    filled = np.zeros((frames, *part.shape[1:]), dtype=np.float32)
    filled[: len(part)] = part
    return filled
