"""Automatic speaker identification (ASI) from released features, as in the DP anonymization paper.

Who speaks, out of S known speakers, from pitch or content features alone. The attacker knows the
mechanism: trained on features that went through it, tested on one release of each test utterance. There
are two, the paper's x-vector network, which keeps the weights that do best on validation utterances, and
statistics with a shrunk covariance (:mod:`voxveil.research.asi.statistics`); the one that names more counts.
P_ASI is its error rate, 1 - accuracy; 1 - 1/S is chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from voxveil.features.pitch.scale import UNIT_MIN
from voxveil.research.asi.network import AsiNetwork, padded
from voxveil.research.asi.result import AsiResult
from voxveil.research.asi.split import AsiSplit
from voxveil.research.asi.statistics import StatisticsClassifier, utterance_statistics
from voxveil.research.params import AsiParams
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.training.loop import CurveSink, EarlyStopping, Plan, device, fit, seeded

__all__ = ["Describe", "Features", "identify", "pitch_features"]

#: Features (K, D) of each utterance, or a function of (utterance, draw): draw d is that of the d-th pass
#: over the training utterances, so a fresh one for each means noise drawn anew.
Features: TypeAlias = Mapping[str, NDArray[Any]] | Callable[[str, int], NDArray[Any]]
#: Statistics (D,) of the features (K, D) of an utterance.
Describe: TypeAlias = Callable[[NDArray[np.float32]], NDArray[np.float64]]

#: Validations in ``AsiParams.steps`` steps.
_VALIDATIONS = 40
#: Smallest standard deviation of a feature over training frames, relative to the largest.
_SMALLEST_SD = 1e-4
#: Passes over the training utterances whose statistics are kept.
_KEPT_PASSES = 4
#: Utterances that are judged at once.
_JUDGED = 64


def pitch_features(unit: NDArray[Any]) -> NDArray[np.float32]:
    """Return (K, 2): log-F0 (the released unit scale itself, so nothing is lost) and voicing, 0 or 1.

    Args:
        unit: (K,) released F0 on the unit scale (:mod:`voxveil.features.pitch.scale`).
    """
    value = np.asarray(unit, np.float32)
    return np.stack([value, (value >= UNIT_MIN / 2).astype(np.float32)], axis=1)


def identify(
    features: Features,
    split: AsiSplit,
    params: AsiParams,
    seed: int,
    *,
    name: str = "asi",
    describe: Describe = utterance_statistics,
    sink: CurveSink | None = None,
) -> AsiResult:
    """Train both attackers and test them.

    Args:
        features: A mapping gives every pass over the training utterances the same features. A function
            is asked for training utterances with draw 0, 1, ... (the noise may be another each time, which
            an attacker who can anonymize public speech himself will use), and once for each validation
            and test utterance, with draw 0: what is attacked is a single release.
        split: Who learns, stops and is tested on what.
        params: Sizes and steps.
        seed: The run's seed.
        name: Names the random streams, progress and errors, e.g. ``asi[pitch-dp]``.
        describe: What statistics the second attacker takes of an utterance's features.
        sink: Told each point of the curve.

    Raises:
        InputError: Features are missing, empty, not (K, D), not finite, or their D differ.
    """
    read = _Reader(features, params.group, name)
    items = split.labelled(split.training)
    kept: dict[tuple[str, int], NDArray[np.float64]] = {}
    where = device()
    mean, sd = _statistics(read, [item for item, _ in items])
    with seeded(seed, name, "init"):
        model = AsiNetwork(mean, sd, params.channels, len(split.speakers)).to(where)
    held = _Judged(read, split.labelled(split.validation), where)

    def loss_of_step(step: int) -> tuple[torch.Tensor, dict[str, float]]:
        rows, labels = [], []
        rng = stream(seed, name, "crops", step)
        for index, draw in _drawn(len(items), params.batch, step, seed, name):
            item, label = items[index]
            found = read(item, draw)
            if draw < _KEPT_PASSES:
                kept[item, draw] = describe(found)
            rows.append(_crop(found, params.crop_frames, rng))
            labels.append(label)
        batch = torch.from_numpy(np.stack(rows)).to(where)
        target = torch.tensor(labels, device=where)
        posteriors = model(batch, torch.ones(batch.shape[:2], device=where))
        right = (posteriors.argmax(dim=1) == target).float().mean()
        return functional.nll_loss(posteriors, target), {"accuracy": float(right)}

    stopping = EarlyStopping(
        model, lambda: held.figures(model), judged="validation_miss", patience=params.patience
    )
    every = max(1, params.steps // _VALIDATIONS)
    plan = Plan(name, seed, params.steps, params.learning_rate, curve_every=every)
    curve = fit(model, loss_of_step, plan, sink=sink, watch=stopping)
    steps = stopping.restore()
    tested = _Judged(read, split.labelled(split.test), where)
    rights = {"network": tested.right(model), "statistics": _right(items, kept, held, tested, describe)}
    counted = max(rights, key=lambda attacker: int(rights[attacker].sum()))
    classes = len(split.speakers)
    return AsiResult(
        np.bincount(tested.labels[rights[counted]], minlength=classes).astype(np.int64),
        np.bincount(tested.labels, minlength=classes).astype(np.int64),
        steps,
        curve,
        hits_by_attacker={attacker: int(right.sum()) for attacker, right in rights.items()},
    )


def _right(
    items: list[tuple[str, int]],
    kept: Mapping[tuple[str, int], NDArray[np.float64]],
    held: _Judged,
    tested: _Judged,
    describe: Describe,
) -> NDArray[np.bool_]:
    """Return which tested utterances the statistics of training and validation utterances name rightly."""
    label_of = dict(items)
    vectors = [*kept.values(), *held.described(describe)]
    labels = [*(label_of[item] for item, _ in kept), *held.labels.tolist()]
    classifier = StatisticsClassifier(np.stack(vectors), labels)
    distances = classifier.distances(np.stack(tested.described(describe)))
    return np.asarray(distances.argmin(axis=1) == tested.labels)


class _Reader:
    """Reads features, checks them and averages groups of frames."""

    def __init__(self, features: Features, group: int, name: str) -> None:
        self._features, self._group, self._name = features, group, name
        self._size = 0

    def __call__(self, item: str, draw: int) -> NDArray[np.float32]:
        if callable(self._features):
            found = self._features(item, draw)
        elif item in self._features:
            found = self._features[item]
        else:
            raise InputError(f"{self._name}: utterance {item} has no features")
        value = np.asarray(found, np.float32)
        self._size = self._size or (value.shape[1] if value.ndim == 2 else 0)
        if value.ndim != 2 or 0 in value.shape or value.shape[1] != self._size:
            allowed = f"(K, {self._size})" if self._size else "(K, D)"
            raise InputError(
                f"{self._name}: utterance {item}: features must be {allowed} with K >= 1, got {value.shape}"
            )
        if not np.isfinite(value).all():
            raise InputError(f"{self._name}: utterance {item}: features have NaN or infinite values")
        if self._group == 1:
            return value
        starts = np.arange(0, len(value), self._group)
        counts = np.diff([*starts, len(value)]).astype(np.float32)
        return np.asarray(np.add.reduceat(value, starts, axis=0) / counts[:, None])


class _Judged:
    """Utterances that are judged whole: read once, then named by any state of the model."""

    def __init__(self, read: _Reader, items: list[tuple[str, int]], where: torch.device) -> None:
        self.labels = np.array([label for _, label in items])
        self._where = where
        self._rows = [read(item, 0) for item, _ in items]
        # Similar lengths together, or most of a batch is padding.
        self._order = sorted(range(len(items)), key=lambda i: len(self._rows[i]))

    def posteriors(self, model: AsiNetwork) -> torch.Tensor:
        """Return (utterances, S) log-posteriors on the CPU."""
        result = torch.empty(len(self._rows), model.output.out_features)
        with torch.no_grad():
            for start in range(0, len(self._order), _JUDGED):
                chosen = self._order[start : start + _JUDGED]
                batch, mask = padded([self._rows[i] for i in chosen])
                result[chosen] = model(batch.to(self._where), mask.to(self._where)).cpu()
        return result

    def described(self, describe: Describe) -> list[NDArray[np.float64]]:
        """Return the statistics of each utterance."""
        return [describe(row) for row in self._rows]

    def right(self, model: AsiNetwork) -> NDArray[np.bool_]:
        """Return which utterances are identified correctly."""
        return np.asarray(self.posteriors(model).argmax(dim=1).numpy() == self.labels)

    def figures(self, model: AsiNetwork) -> dict[str, float]:
        """Return loss (nat), accuracy, and 1 - the mean reciprocal rank of the true speaker.

        The last one judges: a network that knows its training utterances by heart is so sure of itself that
        its loss grows while it ranks better, and accuracy counts too few utterances.
        """
        posteriors, labels = self.posteriors(model), torch.from_numpy(self.labels)
        true_class = posteriors.gather(1, labels[:, None])
        # Among equals in the middle, so that a constant network ranks as chance does.
        ranks = 0.5 + 0.5 * ((posteriors > true_class).sum(dim=1) + (posteriors >= true_class).sum(dim=1))
        return {
            "validation_accuracy": float((posteriors.argmax(dim=1) == labels).float().mean()),
            "validation_loss": float(functional.nll_loss(posteriors, labels)),
            "validation_miss": 1.0 - float((1.0 / ranks).mean()),
        }


def _statistics(read: _Reader, items: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return mean and standard deviation of each feature over the training frames."""
    total, squares, count = np.zeros(1), np.zeros(1), 0
    for item in items:
        value = read(item, 0).astype(np.float64)
        total, squares, count = (
            total + value.sum(axis=0),
            squares + (value**2).sum(axis=0),
            count + len(value),
        )
    mean = total / count
    sd = np.sqrt(np.maximum(squares / count - mean**2, 0.0))
    # A feature that hardly varies must not become large, and one that never does stays 0.
    sd = np.maximum(sd, max(_SMALLEST_SD * float(sd.max()), 1e-12))
    return torch.from_numpy(mean).float(), torch.from_numpy(sd).float()


def _drawn(count: int, batch: int, step: int, seed: int, name: str) -> list[tuple[int, int]]:
    """Return (utterance, pass) of each row of a step: every pass takes each utterance once, shuffled."""
    places = range(step * batch, (step + 1) * batch)
    orders = {p: stream(seed, name, "order", p).permutation(count) for p in {i // count for i in places}}
    return [(int(orders[position // count][position % count]), position // count) for position in places]


def _crop(value: NDArray[np.float32], frames: int, rng: np.random.Generator) -> NDArray[np.float32]:
    start = int(rng.integers(max(1, len(value) - frames + 1)))
    crop = value[start : start + frames]
    # An utterance shorter than a crop is repeated.
    return crop if len(crop) == frames else np.resize(crop, (frames, value.shape[1]))
