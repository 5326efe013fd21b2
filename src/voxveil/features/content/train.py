"""Training of the acoustic model with its noise on public speech, and its validation.

Data augmentation by vocal tract length perturbation: Jaitly and Hinton, "Vocal tract length perturbation
(VTLP) improves speech recognition", 2013. Here the bands of a log-mel spectrogram are read at frequencies
times a factor, one per utterance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from voxveil.audio.frames import MEL_BANDS
from voxveil.audio.mel import hertz_to_mel, log_mel, mel_edges
from voxveil.config.features import ContentVariant, TrainContentParams
from voxveil.corpus.phones import SILENCE
from voxveil.features.content.extractor import SHARPNESS, ContentExtractor
from voxveil.features.content.model import (
    ContentModel,
    ContentSize,
    constrain,
    norm1_torch,
    norm2_torch,
    pooled_frames,
    spread_frames,
)
from voxveil.privacy import CodeMechanism, GaussianSphere, LaplaceSimplex, PublicNoise, content_mechanism
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.training import ranks
from voxveil.training.loop import CurveSink, Plan, device, fit, precision, seeded

__all__ = [
    "Accuracy",
    "LabelledUtterance",
    "TrainedContent",
    "frame_accuracy",
    "mel_features",
    "noise_share",
    "train_content",
    "warp_bands",
]

#: Label of frames that do not count in the loss.
_PADDING = -100
#: Steps between two moves towards semi-orthogonal factors.
_CONSTRAIN_EVERY = 4
#: Smallest standard deviation of an input band, in nat.
_SMALLEST_SD = 1e-2
#: Share of its full scale at which training noise starts where it rises.
_FIRST_NOISE = 1 / 30


@dataclass(frozen=True)
class LabelledUtterance:
    """One public utterance with its labels.

    Attributes:
        id: Keys its noise.
        speaker: For holding speakers out.
        mel: (K, 80) log-mel.
        labels: (K,) class indices.
    """

    id: str
    speaker: str
    mel: torch.Tensor
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class TrainedContent:
    """A trained extractor and what belongs to it."""

    extractor: ContentExtractor
    model: ContentModel
    description: dict[str, Any]
    curve: list[dict[str, float]]


def mel_features(audio: NDArray[np.float32]) -> torch.Tensor:
    """Return (K, 80) log-mel of one utterance's audio (n,)."""
    return log_mel(torch.from_numpy(audio)[None])[0]


def train_content(
    utterances: Sequence[LabelledUtterance],
    phones: tuple[str, ...],
    class_phones: Sequence[int],
    params: TrainContentParams,
    variant: ContentVariant,
    name: str,
    seed: int,
    *,
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
) -> TrainedContent:
    """Train a variant by cross-entropy on frame labels, through the noise.

    Noise is drawn anew for every (utterance, step), each utterance once a step, with the
    mechanism's own scale. With ``params.noise_rise`` above 0 its scale grows there
    geometrically from a thirtieth during that share of the steps: the dense vectors a network
    starts from drown in the full noise, and it learns concentrated ones sooner this way. That
    is training only; a release, and every figure given, has the full noise.

    Args:
        utterances: Public speech.
        phones: The phone set.
        class_phones: Index of the phone each class belongs to.
        params: Sizes and steps.
        variant: The mechanism to train through.
        name: Of the variant.
        seed: The run's seed.
        checkpoints: Folder to resume from.
        sink: Called with each point of the curve.
    """
    if not utterances:
        raise InputError(f"train_content[{name}]: no utterance to train on")
    mechanism = content_mechanism(variant)
    where = device()
    sharp = variant.mechanism == "sharp_laplace"
    coded = sharp or isinstance(mechanism, CodeMechanism)
    # A code is a phone, whatever the classifier names.
    bottleneck = len(phones) if coded else params.bottleneck
    phone_of = torch.tensor([*class_phones], dtype=torch.long, device=where)

    def phones_of(labels: torch.Tensor) -> torch.Tensor:
        return torch.where(labels == _PADDING, labels, phone_of[labels.clamp(min=0)])

    def sources(chunks: Sequence[tuple[int, int]], step: int) -> list[PublicNoise]:
        return [PublicNoise(seed, "train_content", name, utterances[i].id, step) for i, _ in chunks]

    size = ContentSize(bottleneck, params.hidden, params.factor, params.layers, len(class_phones))
    with seeded(seed, "train_content", "init"):
        model = ContentModel(size)
    _set_input_statistics(model, utterances)
    model.to(where)

    def loss_of_step(step: int) -> tuple[torch.Tensor, dict[str, float]]:
        if step % _CONSTRAIN_EVERY == 0:
            constrain(model)
        drawn = _draw_chunks(utterances, params, seed, step)
        share = ranks.share(len(drawn))
        chunks = drawn[share]
        mel, labels = (part.to(where) for part in _batch(utterances, chunks, params.chunk_frames))
        if params.warp:
            draw = stream(seed, "train_content", "warp", step)
            factors = draw.uniform(1.0 - params.warp, 1.0 + params.warp, len(drawn))
            mel = warp_bands(mel, factors[share])
        mask = (labels != _PADDING).float()
        with precision(params.bf16, where, cpu=True):
            encoded = model.encode(mel, mask)
        encoded = pooled_frames(encoded, mask, variant.every)
        phone_loss = torch.zeros((), device=where)
        if coded:
            # No gradient passes a code, so the scores behind it learn to name the phone by themselves.
            scores = spread_frames(encoded, variant.every, mask.shape[1])
            phone_loss = functional.cross_entropy(
                scores.transpose(1, 2), phones_of(labels), ignore_index=_PADDING
            )
            shown = functional.softmax(SHARPNESS * encoded, dim=2) if sharp else encoded
            rows = zip(shown.detach().cpu().numpy(), sources(chunks, step), strict=True)
            perturbed = np.stack([mechanism.perturb(row, source) for row, source in rows])
            released = torch.from_numpy(perturbed.astype(np.float32)).to(where)
        elif isinstance(mechanism, LaplaceSimplex | GaussianSphere):
            inside, noise_of = norm1_torch(encoded), PublicNoise.laplace
            if isinstance(mechanism, GaussianSphere):
                inside, noise_of = norm2_torch(encoded), PublicNoise.normal
            scale = mechanism.scale() * noise_share(step, params)
            shape = tuple(inside.shape[1:])
            noise = np.stack([noise_of(source, shape, scale) for source in sources(chunks, step)])
            released = norm1_torch(inside + torch.from_numpy(noise.astype(np.float32)).to(where))
        else:
            released = norm1_torch(encoded)
        # Noise and norms above stay in float32 whatever the network computes in.
        with precision(params.bf16, where, cpu=True):
            posteriors = model.classify(spread_frames(released, variant.every, mask.shape[1]), mask)
        loss = phone_loss + functional.nll_loss(posteriors.transpose(1, 2), labels, ignore_index=_PADDING)
        right = (posteriors.argmax(dim=2) == labels).sum() / mask.sum()
        loss, right = (ranks.joint_mean(value, mask.sum()) for value in (loss, right))
        return loss, {"frame_accuracy": float(right)}

    plan = Plan(f"train_content[{name}]", seed, params.steps, params.learning_rate)
    curve = fit(model, loss_of_step, plan, checkpoints=checkpoints, sink=sink)
    extractor = ContentExtractor(mechanism, model, phones, class_phones, variant.every, sharp)
    description = {
        "kind": "content",
        "mechanism": variant.mechanism,
        "epsilon": variant.epsilon,
        "rho": variant.rho,
        "loss": extractor.loss,
        "size": size.to_json(),
        "phones": list(phones),
        "class_phones": list(class_phones),
        "every": variant.every,
        "reach_frames": model.reach,
    }
    return TrainedContent(extractor, model, description, curve)


def warp_bands(mel: torch.Tensor, factors: NDArray[np.float64]) -> torch.Tensor:
    """Return the spectrogram with band b read at the frequency of b times a factor.

    Args:
        mel: (batch, K, 80) log-mel.
        factors: (batch,) above 0; 1 leaves a row as it is.

    Returns:
        (batch, K, 80), linear between neighbouring bands; beyond the last band, the last one.
    """
    edges = mel_edges()
    steps = hertz_to_mel(edges[1:-1] * factors[:, None]) / hertz_to_mel(edges[-1]) * (MEL_BANDS + 1)
    places = np.clip(steps - 1.0, 0, MEL_BANDS - 1)
    low = np.minimum(np.floor(places).astype(np.int64), MEL_BANDS - 2)
    share = torch.from_numpy((places - low).astype(np.float32))[:, None].to(mel.device)
    index = torch.from_numpy(low)[:, None].to(mel.device).expand(-1, mel.shape[1], -1)
    return torch.gather(mel, 2, index) * (1.0 - share) + torch.gather(mel, 2, index + 1) * share


def noise_share(step: int, params: TrainContentParams) -> float:
    """Return the share of the mechanism's scale that training noise has in a step, in (0, 1]."""
    rising = params.noise_rise * params.steps
    return float(_FIRST_NOISE ** (1.0 - min(1.0, step / rising))) if rising > 0 else 1.0


@dataclass(frozen=True)
class Accuracy:
    """Frame accuracy on some utterances.

    Attributes:
        all: Share of frames whose phone is right.
        speech: The same over frames that are not silence.
        chance: What always saying the commonest training label would get of all frames.
        frames: Number of frames.
    """

    all: float
    speech: float
    chance: float
    frames: int


def frame_accuracy(
    extractor: ContentExtractor,
    utterances: Sequence[tuple[NDArray[np.float32], NDArray[np.int64], PublicNoise]],
    commonest: int,
) -> Accuracy:
    """Measure the extractor's own classifier on released vectors: noise on, as at release.

    Args:
        extractor: What releases.
        utterances: (audio, labels, noise) of public speech it was not trained on.
        commonest: The commonest label in training.
    """
    if not utterances:
        raise InputError("frame accuracy: no utterance to measure on")
    silence = extractor.phones.index(SILENCE)
    guesses = np.concatenate(
        [
            extractor.log_posteriors(extractor.release(audio, noise).value).argmax(axis=1)
            for audio, _, noise in utterances
        ]
    )
    truth = np.concatenate([labels for _, labels, _ in utterances])
    right, speech = guesses == truth, truth != silence
    if not speech.any():
        raise InputError("frame accuracy: every held-out frame is silence")
    return Accuracy(
        float(right.mean()), float(right[speech].mean()), float((truth == commonest).mean()), len(truth)
    )


def _set_input_statistics(model: ContentModel, utterances: Sequence[LabelledUtterance]) -> None:
    """Take the mean and deviation of each band from public speech; constants from then on."""
    frames = torch.cat([utterance.mel for utterance in utterances]).double()
    model.mean.copy_(frames.mean(dim=0))
    model.sd.copy_(frames.std(dim=0, correction=0).clamp(min=_SMALLEST_SD))


def _draw_chunks(
    utterances: Sequence[LabelledUtterance], params: TrainContentParams, seed: int, step: int
) -> list[tuple[int, int]]:
    """Return (utterance, first frame) of each row of the batch of one step."""
    generator = stream(seed, "train_content", "batch", step)
    chosen = generator.permutation(len(utterances))[: params.batch]
    starts = [
        int(generator.integers(0, max(1, len(utterances[i].labels) - params.chunk_frames + 1)))
        for i in chosen
    ]
    return list(zip((int(i) for i in chosen), starts, strict=True))


def _batch(
    utterances: Sequence[LabelledUtterance], chunks: Sequence[tuple[int, int]], frames: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mel (batch, frames, 80) and labels (batch, frames), the latter -100 in the padding."""
    mel = torch.zeros(len(chunks), frames, utterances[0].mel.shape[1])
    labels = torch.full((len(chunks), frames), _PADDING)
    for row, (index, start) in enumerate(chunks):
        utterance = utterances[index]
        count = min(frames, len(utterance.labels) - start)
        mel[row, :count] = utterance.mel[start : start + count]
        labels[row, :count] = torch.from_numpy(utterance.labels[start : start + count])
    return mel, labels
