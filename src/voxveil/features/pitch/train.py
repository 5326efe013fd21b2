"""Training of the F0 autoencoder with its noise on public speech, and its validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.config.features import PitchVariant, TrainPitchParams
from voxveil.features.pitch.extractor import AutoencoderCodec, ContourCodec, DirectCodec, PitchExtractor
from voxveil.features.pitch.model import (
    PitchAutoencoder,
    decode_one,
    encode_one,
    frame_mask,
    pearson,
    pearson_loss,
)
from voxveil.features.pitch.scale import hz_to_unit
from voxveil.privacy import Identity, LaplaceBall, LaplaceCube, PublicNoise, pitch_mechanism
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.training import ranks
from voxveil.training.loop import CurveSink, Plan, device, fit, seeded

__all__ = ["PitchUtterance", "TrainedPitch", "correlation", "fit_affine", "train_pitch"]

Array = NDArray[np.float32]


@dataclass(frozen=True)
class PitchUtterance:
    """The F0 of one public utterance.

    Attributes:
        id: Keys its noise.
        speaker: For holding speakers out.
        f0: (K,) Hz, 0 where unvoiced.
    """

    id: str
    speaker: str
    f0: Array


@dataclass(frozen=True)
class TrainedPitch:
    """A trained extractor and what belongs to it."""

    extractor: PitchExtractor
    model: torch.nn.Module
    description: dict[str, Any]
    curve: list[dict[str, float]]


def train_pitch(
    utterances: Sequence[PitchUtterance],
    params: TrainPitchParams,
    variant: PitchVariant,
    name: str,
    seed: int,
    *,
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
) -> TrainedPitch:
    """Train the variant called ``name``; the identity needs no training.

    Noise is drawn anew for every (utterance, step), with scale C K / epsilon for that
    utterance's own K, whatever it is batched with.

    Raises:
        InputError: No utterance, or none with both voiced and unvoiced or varying F0.
    """
    mechanism = pitch_mechanism(variant)
    described = {"kind": "pitch", "mechanism": variant.mechanism, "epsilon": variant.epsilon}
    if isinstance(mechanism, Identity):
        extractor = PitchExtractor(mechanism)
        return TrainedPitch(extractor, torch.nn.Module(), {**described, "loss": extractor.loss}, [])
    if isinstance(mechanism, LaplaceBall):
        return _contour(utterances, params, mechanism, described)
    if variant.mechanism == "naive":
        extractor = PitchExtractor(mechanism, DirectCodec())
        facts = {**described, "channels": 1, "loss": extractor.loss}
        return TrainedPitch(extractor, torch.nn.Module(), facts, [])
    if not any(np.ptp(u.f0) > 0 for u in utterances):
        raise InputError(
            f"train_pitch[{name}]: no utterance has a varying F0; there is nothing to learn from"
        )
    where = device()
    units = [torch.from_numpy(hz_to_unit(u.f0)) for u in utterances]
    with seeded(seed, "train_pitch", "init"):
        model = PitchAutoencoder(params.channels).to(where)

    def loss_of_step(step: int) -> tuple[torch.Tensor, dict[str, float]]:
        drawn = stream(seed, "train_pitch", "batch", step).permutation(len(units))[: params.batch]
        chosen = drawn[ranks.share(len(drawn))]
        batch, mask = _padded([units[i] for i in chosen], where)
        noise = np.zeros((len(chosen), params.channels, batch.shape[1]), np.float32)
        for row, index in enumerate(chosen):
            source = PublicNoise(seed, "train_pitch", name, utterances[index].id, step)
            frames = len(units[index])
            noise[row, :, :frames] = source.laplace(
                (params.channels, frames), mechanism.scale(params.channels, frames)
            )
        noisy = model.encode(batch, mask) + torch.from_numpy(noise).to(where)
        loss = pearson_loss(model.decode(noisy, mask), batch, mask)
        return loss, {"correlation": 1.0 - float(loss.detach())}

    plan = Plan(f"train_pitch[{name}]", seed, params.steps, params.learning_rate)
    curve = fit(model, loss_of_step, plan, checkpoints=checkpoints, sink=sink)
    model = model.cpu()
    slope, offset = fit_affine(*_outputs(model, mechanism, utterances, seed, name))
    extractor = PitchExtractor(mechanism, AutoencoderCodec(model, slope, offset))
    description = {
        **described,
        "channels": params.channels,
        "slope": slope,
        "offset": offset,
        "loss": extractor.loss,
    }
    return TrainedPitch(extractor, model, description, curve)


def _contour(
    utterances: Sequence[PitchUtterance],
    params: TrainPitchParams,
    mechanism: LaplaceBall,
    described: dict[str, Any],
) -> TrainedPitch:
    """Take the mean and variance of each coefficient from public speech; nothing else is trained."""
    if not utterances:
        raise InputError("train_pitch: no utterance to take coefficients from")
    found = np.stack(
        [ContourCodec.coefficients(hz_to_unit(u.f0), params.contour, params.voicing) for u in utterances]
    )
    means, variances = found.mean(axis=0), found.var(axis=0)
    codec = ContourCodec(params.contour, params.voicing, means, variances, mechanism.scale())
    extractor = PitchExtractor(mechanism, codec)
    facts = {
        **described,
        "contour": params.contour,
        "voicing": params.voicing,
        "means": means.tolist(),
        "variances": variances.tolist(),
        "loss": extractor.loss,
    }
    return TrainedPitch(extractor, torch.nn.Module(), facts, [])


def fit_affine(output: NDArray[Any], target: NDArray[Any]) -> tuple[float, float]:
    """Return (slope, offset) of the least-squares map from ``output`` onto ``target``.

    A Pearson loss leaves the decoder's scale open; this fixes it with public data. Where the
    output tells nothing of the target the map is the target's mean, not an amplified noise.

    Args:
        output: (n,).
        target: (n,), on the unit scale.
    """
    x, y = np.asarray(output, np.float64), np.asarray(target, np.float64)
    centred = x - x.mean()
    power = float(centred @ centred)
    slope = float(centred @ (y - y.mean())) / power if power > 0 else 0.0
    return slope, float(y.mean() - slope * x.mean())


def correlation(released: NDArray[Any], f0_hz: NDArray[Any]) -> float | None:
    """Return the Pearson correlation of a sequence with the true F0 on the unit scale.

    Args:
        released: (K,).
        f0_hz: (K,) Hz.

    Returns:
        In [-1, 1]; 0 for a constant ``released``, None where the true F0 is constant (undefined).
    """
    a, b = np.asarray(released, np.float64), hz_to_unit(f0_hz).astype(np.float64)
    value, defined = pearson(
        torch.from_numpy(a)[None], torch.from_numpy(b)[None], torch.ones(1, len(a), dtype=torch.float64)
    )
    return float(value[0]) if bool(defined[0]) else None


def _padded(rows: Sequence[torch.Tensor], where: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    batch = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True).to(where)
    lengths = torch.tensor([len(row) for row in rows], device=where)
    return batch, frame_mask(lengths, batch.shape[1])


def _outputs(
    model: PitchAutoencoder,
    mechanism: LaplaceCube,
    utterances: Sequence[PitchUtterance],
    seed: int,
    name: str,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Decoder outputs before the affine map, and targets, of all utterances, one after the other."""
    outputs, targets = [], []
    for utterance in utterances:
        unit = hz_to_unit(utterance.f0)
        source = PublicNoise(seed, "train_pitch", name, utterance.id, "affine")
        outputs.append(decode_one(model, mechanism.perturb(encode_one(model, unit), source)))
        targets.append(unit.astype(np.float64))
    return np.concatenate(outputs), np.concatenate(targets)
