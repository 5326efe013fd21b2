"""Training of speaker encoders, for the synthesizer and for attackers.

Loss: additive angular margin softmax (Deng et al., "ArcFace", CVPR 2019; Xiang et al., "Margin
matters", 2019) over speakers times speeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from voxveil.audio.frames import HOP, MEL_BANDS, SAMPLE_RATE, frame_count
from voxveil.config.networks import SpeakerParams
from voxveil.corpus.split import Speech
from voxveil.features.speaker.clips import MINIMUM_SAMPLES
from voxveil.features.speaker.crops import SPEEDS, CropPlan, Crops, log_mel_frames
from voxveil.features.speaker.encoder import ECAPA, RES2NET_SCALE, EncoderSize, SpeakerEncoder, SpeakerNetwork
from voxveil.runtime.errors import ParamsError
from voxveil.training import ranks
from voxveil.training.loop import CurveSink, Plan, device, fit, seeded

__all__ = [
    "CHECKPOINT_SECONDS",
    "AngularMarginHead",
    "Features",
    "MarginModel",
    "TrainedEncoder",
    "fit_margin_model",
    "train_encoder",
]

#: Seconds between checkpoints.
CHECKPOINT_SECONDS = 5.0

_MARGIN = 0.2
_SCALE = 30.0


@dataclass(frozen=True)
class Features:
    """Input features of a network.

    Attributes:
        frames: Maps a clip and its name to (frames, values).
        values: Values per frame.
        seconds: Time between two frames.
        mel: They are log-mel, so that noise can be mixed into them.
    """

    frames: Callable[[NDArray[np.float32], str], NDArray[np.float32]] = log_mel_frames
    values: int = MEL_BANDS
    seconds: float = HOP / SAMPLE_RATE
    mel: bool = False


_LOG_MEL = Features(mel=True)


class AngularMarginHead(nn.Module):
    """Logits ``s cos(theta + m)`` for the true class and ``s cos(theta)`` for the others."""

    def __init__(self, embedding: int, classes: int, margin: float = _MARGIN, scale: float = _SCALE) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(classes, embedding))
        nn.init.xavier_uniform_(self.weight)
        self._margin, self._scale = margin, scale

    def cosines(self, embeddings: torch.Tensor) -> torch.Tensor:
        """Return the (batch, classes) cosines of (batch, E) embeddings with the class centres."""
        return functional.linear(functional.normalize(embeddings), functional.normalize(self.weight))

    def loss(self, cosines: torch.Tensor, labels: torch.Tensor, strength: float = 1.0) -> torch.Tensor:
        """Return the mean cross-entropy with the margin times ``strength`` (0 = plain softmax)."""
        margin = self._margin * strength
        true = cosines.gather(1, labels[:, None]).clamp(-1 + 1e-6, 1 - 1e-6)
        angle = torch.arccos(true)
        # Past pi - m, cos(theta + m) rises again; a linear penalty keeps the order.
        shifted = torch.where(
            angle + margin < torch.pi,
            torch.cos(angle + margin),
            true - margin * math.sin(margin),
        )
        return functional.cross_entropy(self._scale * cosines.scatter(1, labels[:, None], shifted), labels)


class MarginModel(nn.Module):
    """Everything a step moves: a network and the class centres.

    Args:
        network: The network.
        embedding: Size E of its embedding.
        classes: Number of classes.
    """

    def __init__(self, network: nn.Module, embedding: int, classes: int) -> None:
        super().__init__()
        self.network = network
        self.head = AngularMarginHead(embedding, classes)


def fit_margin_model(
    model: MarginModel,
    embed: Callable[[torch.Tensor], torch.Tensor],
    crops: Crops,
    plan: Plan,
    strength: Callable[[int], float],
    *,
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
) -> list[dict[str, float]]:
    """Train a network with the additive angular margin loss and return the curve.

    Args:
        model: The network with its class centres, on the device.
        embed: Maps (batch, frames, values) features to (batch, E) embeddings by that network.
        crops: Draws the batch of a step.
        plan: How to train.
        strength: Share of the margin at a step, from 0 (plain softmax) to 1.
        checkpoints: Where to resume from and save to.
        sink: Receives each point of the curve.
    """

    def loss_of_step(step: int) -> tuple[torch.Tensor, dict[str, float]]:
        frames, classes = crops.batch(step)
        labels = torch.from_numpy(classes).to(device())
        cosines = model.head.cosines(embed(torch.from_numpy(frames).to(device())))
        loss = model.head.loss(cosines, labels, strength(step))
        right = (cosines.argmax(dim=1) == labels).float().mean()
        loss, right = (ranks.joint_mean(value, len(labels)) for value in (loss, right))
        return loss, {"accuracy": float(right)}

    return fit(model, loss_of_step, plan, checkpoints=checkpoints, sink=sink)


@dataclass(frozen=True)
class TrainedEncoder:
    """A trained encoder with its curve.

    Attributes:
        encoder: The network, ready to embed.
        curve: Points of loss and accuracy (share of crops whose nearest class centre is their own).
        classes: Number of classes it was trained on (speakers times speeds).
    """

    encoder: SpeakerEncoder
    curve: list[dict[str, float]]
    classes: int

    @property
    def accuracy(self) -> float:
        """Mean training accuracy over the last quarter of the curve, in [0, 1]."""
        last = self.curve[-max(1, len(self.curve) // 4) :]
        return sum(point["accuracy"] for point in last) / len(last)


def train_encoder(
    split: Speech,
    params: SpeakerParams,
    *,
    name: str,
    seed: int,
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
    architecture: str = ECAPA,
    speeds: tuple[float, ...] = SPEEDS,
    noise: float = 0.0,
    features: Features = _LOG_MEL,
) -> TrainedEncoder:
    """Train a speaker encoder on the speakers of a public split.

    Args:
        split: Speech of at least 2 speakers.
        params: Sizes and steps.
        name: Section the parameters come from; names random streams, progress and errors.
        seed: The run's seed.
        checkpoints: Where to resume from and save to.
        sink: Called with each point of the curve.
        architecture: One of :data:`voxveil.features.speaker.encoder.ARCHITECTURES`.
        speeds: Playing speeds, each with classes of its own.
        noise: Share of crops with noise mixed in, in [0, 1].
        features: What the network sees.

    Raises:
        ParamsError: The crop is shorter than the shortest clip that can be embedded, the width does
            not divide into the branches of the network, or noise is asked for in other than log-mel.
    """
    if architecture == ECAPA and params.channels % RES2NET_SCALE:
        raise ParamsError(f"{name}.channels: got {params.channels}, must be a multiple of {RES2NET_SCALE}")
    samples = round(params.crop_seconds * SAMPLE_RATE)
    if samples < MINIMUM_SAMPLES:
        raise ParamsError(
            f"{name}.crop_seconds: got {params.crop_seconds}, "
            f"must be at least {MINIMUM_SAMPLES / SAMPLE_RATE}"
        )
    if noise and not features.mel:
        raise ParamsError(f"{name}.noise: got {noise}, noise can be mixed into log-mel features only; set 0")
    frames_each = frame_count(samples) if features.mel else round(params.crop_seconds / features.seconds)
    crops = Crops(split, CropPlan(seed, name, params.batch, frames_each, speeds, noise), features.frames)
    size = EncoderSize(params.channels, params.embedding, architecture, features.values)
    with seeded(seed, name, "initial"):
        network = SpeakerNetwork(size)
        model = MarginModel(network, size.embedding, crops.classes).to(device())

    def strength(step: int) -> float:
        # The margin grows over the first half: from scratch, a full margin at once stalls.
        return min(1.0, 2.0 * step / params.steps)

    plan = Plan(name, seed, params.steps, params.learning_rate, checkpoint_seconds=CHECKPOINT_SECONDS)
    curve = fit_margin_model(
        model, network.embed_frames, crops, plan, strength, checkpoints=checkpoints, sink=sink
    )
    return TrainedEncoder(SpeakerEncoder(network), curve, crops.classes)
