"""Facts stated by every probe: privacy loss, unit, and information bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from voxveil.privacy.audit.information import bits, pinsker_accuracy_limit, utterance_information
from voxveil.privacy.loss import Loss, stream_rho, utterance_loss
from voxveil.privacy.zcdp import DELTA, approximate
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError

__all__ = ["FORMAT", "Cost", "accuracy_limit", "corpus_of", "sharp_fano_limit", "spent"]

FORMAT = 1


@dataclass(frozen=True)
class Cost:
    """Privacy loss of one utterance.

    Attributes:
        loss: Per vector, or per utterance.
        vectors: Released vectors K.
    """

    loss: Loss
    vectors: int

    @property
    def information(self) -> float:
        """Upper bound of the released information, in nat."""
        return utterance_information({"released": self.loss}, self.vectors)


def corpus_of(public: Path) -> dict[str, Any]:
    """Return the facts of the corpus for the page."""
    facts = read_json(public / "corpus.json")
    return {name: facts.get(name) for name in ("name", "synthetic", "revision", "machine_transcripts")}


def spent(costs: Sequence[Cost]) -> dict[str, Any]:
    """Return privacy losses and information bounds of utterances.

    Args:
        costs: Of each measured utterance.

    Returns:
        The loss of one release (of the first utterance); ``epsilon_utterance``, ``information_bits`` and
        ``vectors`` as median and maximum over utterances; ``inf`` is a text. Under zCDP no epsilon holds for
        an utterance, and ``epsilon_delta_utterance`` has what its rho stands for at :data:`DELTA`.
    """
    if not costs:
        raise InputError("probe: no utterance was measured")
    approximate_loss: dict[str, Any] = {}
    if costs[0].loss.measure == "zcdp":
        rhos = [stream_rho(cost.loss, cost.vectors) for cost in costs]
        approximate_loss = {
            "delta": DELTA,
            "epsilon_delta_utterance": _summary([approximate(rho) for rho in rhos]),
        }
    return {
        **approximate_loss,
        "loss": costs[0].loss.to_json(),
        "epsilon_utterance": _summary([utterance_loss(cost.loss, cost.vectors).epsilon for cost in costs]),
        "information_bits": _summary([bits(cost.information) for cost in costs]),
        "vectors": _summary([float(cost.vectors) for cost in costs]),
        "utterances": len(costs),
    }


def accuracy_limit(costs: Sequence[Cost], speakers: int) -> float:
    """Return the proven limit of naming one of S speakers by any of these utterances: 1/S + sqrt(I / 2)."""
    return pinsker_accuracy_limit(max(cost.information for cost in costs), speakers)


def sharp_fano_limit(information: float, candidates: int) -> float:
    """Return the largest accuracy of naming one of N equally likely candidates, by Fano's full inequality.

    The largest A in [1/N, 1] with h(A) + (1 - A) ln(N - 1) >= ln N - I, h the binary entropy in nat.

    Args:
        information: I, what passes, in nat.
        candidates: N, at least 2.
    """
    needed = math.log(candidates) - information

    def left(accuracy: float) -> float:
        miss = 1.0 - accuracy
        entropy = -sum(p * math.log(p) for p in (accuracy, miss) if p > 0)
        return entropy + miss * math.log(candidates - 1)

    low, high = 1.0 / candidates, 1.0
    if needed <= 0:
        return 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if left(middle) >= needed else (low, middle)
    return high


def _summary(values: Sequence[float]) -> dict[str, Any]:
    found = {"median": float(np.median(values)), "maximum": float(np.max(values))}
    return {name: "inf" if np.isinf(value) else value for name, value in found.items()}
