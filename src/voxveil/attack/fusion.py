"""Score fusion of several attackers by logistic regression on held-out public speakers.

The speakers it is fitted on are kept from the training of the attackers, whose scores on their own
training speakers would promise too much. Weights are fitted with both classes counting the same, so
the fused score is an uncalibrated log likelihood ratio in nat.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.attack.attackers.interface import Attacker, embed_utterances
from voxveil.corpus.split import Speech, Spoken
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.runtime.seeding import stream

__all__ = ["FUSION", "Fusion", "Joined", "fit_fusion", "fuse_attackers", "hold_out"]

FloatArray = NDArray[np.float64]

#: Its name in paths and tables.
FUSION = "fusion"
FILE = "fusion.json"
_RIDGE = 1e-3
_ROUNDS = 50
#: Fewest speakers that a fusion is fitted on.
_FEWEST = 4


class Joined:
    """Several folders as one, or some speakers of them.

    Args:
        parts: The folders; an utterance that two of them have is taken from the first.
        speakers: Speakers whose utterances are kept; all unless given.
    """

    def __init__(self, parts: Sequence[Speech], speakers: Collection[str] | None = None) -> None:
        self._parts = tuple(parts)
        self._owner: dict[str, Speech] = {}
        self._items: list[Spoken] = []
        for part in parts:
            for item in part:
                if item.id not in self._owner and (speakers is None or item.speaker in speakers):
                    self._owner[item.id] = part
                    self._items.append(item)

    @property
    def folder(self) -> Path:
        """That of the first part."""
        return self._parts[0].folder

    @property
    def parts(self) -> Sequence[Speech]:
        """The folders."""
        return self._parts

    @property
    def speakers(self) -> tuple[str, ...]:
        """Speaker ids, sorted."""
        return tuple(sorted({item.speaker for item in self._items}))

    def __iter__(self) -> Iterator[Spoken]:
        return iter(self._items)

    def __contains__(self, item: str) -> bool:
        return item in self._owner

    def audio(self, item: str) -> NDArray[np.float32]:
        """Return (samples,) float32 at 16 kHz."""
        if item not in self._owner:
            raise InputError(
                f"utterance {item}: not in {', '.join(str(part.folder) for part in self._parts)}"
            )
        return self._owner[item].audio(item)


def hold_out(speech: Speech, count: int, seed: int) -> tuple[Speech, Speech]:
    """Return the speech to train on, and that of ``count`` speakers that is kept for the fusion.

    Raises:
        ParamsError: Too few speakers with 2 utterances, or fewer than 2 are left to train on.
    """
    utterances: dict[str, int] = {}
    for item in speech:
        utterances[item.speaker] = utterances.get(item.speaker, 0) + 1
    eligible = [speaker for speaker in speech.speakers if utterances[speaker] >= 2]
    if count < _FEWEST or len(eligible) < count or len(speech.speakers) - count < 2:
        raise ParamsError(
            f"train_attacker.fusion_speakers: got {count}; it must be 0, or at least {_FEWEST} and leave 2 of"
            f" {len(speech.speakers)} speakers to train on ({len(eligible)} have 2 utterances)"
        )
    order = stream(seed, "attack", "fusion speakers").permutation(len(eligible))[:count]
    held = frozenset(eligible[index] for index in order)
    return Joined([speech], frozenset(speech.speakers) - held), Joined([speech], held)


@dataclass(frozen=True)
class Fusion:
    """Weights of scaled scores.

    Attributes:
        kinds: Names of the attackers, in the order of the other arrays.
        mean: Mean of each one's public scores.
        scale: Their standard deviation.
        weights: Weight of each scaled score.
        bias: Added to the sum.
        speakers: Public speakers it was fitted on.
        trials: (target, nontarget) trials it was fitted on.
    """

    kinds: tuple[str, ...]
    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    bias: float
    speakers: int
    trials: tuple[int, int]

    def apply(self, scores: Mapping[str, NDArray[Any]]) -> FloatArray:
        """Return fused scores; ``scores`` has an array of one shape for each kind."""
        total: FloatArray = np.full(np.shape(scores[self.kinds[0]]), self.bias)
        for kind, mean, scale, weight in zip(self.kinds, self.mean, self.scale, self.weights, strict=True):
            total = total + weight * (np.asarray(scores[kind], dtype=np.float64) - mean) / scale
        return total

    def save(self, folder: Path) -> None:
        """Write ``fusion.json``."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "scale", "weights")}
        write_json(Path(folder) / FILE, {"format": 1, **vars(self), **arrays})

    @classmethod
    def load(cls, folder: Path) -> Fusion | None:
        """Read ``fusion.json``; None where the attackers were not fused."""
        path = Path(folder) / FILE
        if not path.is_file():
            return None
        content = read_json(path)
        try:
            arrays = [np.array(content[name], dtype=np.float64) for name in ("mean", "scale", "weights")]
            kinds = tuple(str(kind) for kind in content["kinds"])
            bias, speakers = float(content["bias"]), int(content["speakers"])
            target, nontarget = (int(n) for n in content["trials"])
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}: not the weights of a fusion; run train_attacker again") from None
        if any(array.shape != (len(kinds),) or not np.isfinite(array).all() for array in arrays):
            raise InputError(
                f"{path}: mean, scale and weights must be {len(kinds)} finite numbers each, one per attacker"
            )
        mean, scale, weights = arrays
        return cls(kinds, mean, scale, weights, bias, speakers, (target, nontarget))


def fit_fusion(scores: Mapping[str, NDArray[Any]], is_target: NDArray[np.bool_], speakers: int) -> Fusion:
    """Fit logistic regression to scores, both classes counting the same, by Newton's method.

    Args:
        scores: (trials,) of each attacker.
        is_target: (trials,).
        speakers: Public speakers behind them.
    """
    kinds = tuple(scores)
    raw = np.stack([np.asarray(scores[kind], dtype=np.float64) for kind in kinds], axis=1)
    mean, scale = raw.mean(axis=0), raw.std(axis=0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    design = np.column_stack([(raw - mean) / scale, np.ones(len(raw))])
    counts = np.bincount(is_target.astype(np.int64), minlength=2)
    if counts.min() == 0:
        raise InputError(
            f"a fusion needs target and nontarget trials of public speakers, got {counts[1]} and {counts[0]}"
        )
    share = np.where(is_target, 0.5 / counts[1], 0.5 / counts[0])
    penalty = _RIDGE * np.diag([1.0] * len(kinds) + [0.0])
    weights = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-np.clip(design @ weights, -50, 50)))
        gradient = design.T @ (share * (chance - is_target)) + penalty @ weights
        curvature = (design * (share * chance * (1 - chance))[:, None]).T @ design + penalty
        step = np.linalg.solve(curvature + 1e-12 * np.eye(len(weights)), gradient)
        weights = weights - step
        if float(np.abs(step).max()) < 1e-9:
            break
    trials = (int(counts[1]), int(counts[0]))
    return Fusion(kinds, mean, scale, weights[:-1], float(weights[-1]), speakers, trials)


def fuse_attackers(attackers: Sequence[Attacker], held: Speech) -> Fusion:
    """Fit the fusion of attackers on speakers they were not trained on.

    The first half of a speaker's utterances enrols them, the rest are tried against everybody.

    Args:
        attackers: At least one; what counts is one of each kind.
        held: Speech of at least 4 speakers with 2 utterances each.
    """
    items: dict[str, list[str]] = {speaker: [] for speaker in held.speakers}
    for item in held:
        items[item.speaker].append(item.id)
    enrolled = {speaker: ids[: len(ids) // 2] for speaker, ids in items.items()}
    tested = [(item, speaker) for speaker, ids in items.items() for item in ids[len(ids) // 2 :]]
    everything = [item for ids in items.values() for item in ids]
    scores = {}
    for attacker in attackers:
        vectors = embed_utterances(attacker, everything, held.audio)
        references = [np.stack([vectors[item] for item in ids]) for ids in enrolled.values()]
        inputs = np.stack([vectors[item] for item, _ in tested])
        scores[attacker.name] = attacker.backend.matrix(inputs, references).ravel()
    names = list(enrolled)
    is_target = np.array([[speaker == name for name in names] for _, speaker in tested]).ravel()
    return fit_fusion(scores, is_target, len(names))
