"""A privacy loss is never a bare number: measure, epsilon, unit, sensitivity, mechanism.

Composition is by type: losses per utterance add; a loss per released vector is
multiplied by the number of vectors before it may be added to anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from voxveil.errors import PrivacyError

__all__ = ["INFINITE", "SEEDED_NOTE", "Loss", "Unit", "add_up", "compose", "utterance_loss"]

INFINITE = math.inf
#: The note of a release with seeded noise; such a loss cannot be announced for private speech.
SEEDED_NOTE = "seeded float noise: training and tests only, no privacy claim"
Unit = Literal["utterance", "vector"]


@dataclass(frozen=True)
class Loss:
    """The privacy loss of one release.

    Attributes:
        measure: ``pure`` (max divergence, pure epsilon-DP).
        epsilon: Upper bound of the log-likelihood ratio in nat; ``inf`` is no promise at all.
        unit: What one epsilon covers: an ``utterance`` or one released content ``vector``.
        sensitivity: L1 sensitivity of what was released; ``None`` for the identity.
        mechanism: Name of the mechanism.
        version: Version of the mechanism's definition.
        note: What the claim does not cover.
    """

    measure: str
    epsilon: float
    unit: Unit
    sensitivity: float | None
    mechanism: str
    version: str
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse anything that is not a loss."""
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, int | float):
            raise PrivacyError(f"epsilon must be a number, got {self.epsilon!r}")
        try:
            float(self.epsilon)
        except OverflowError:
            raise PrivacyError("epsilon is too large for a number; no promise is spelt 'inf'") from None
        if math.isnan(self.epsilon) or self.epsilon <= 0:
            raise PrivacyError(f"epsilon must be above 0 (no noise is spelt 'identity'), got {self.epsilon}")
        if self.measure != "pure":
            raise PrivacyError(f"measure must be 'pure', got {self.measure!r}")
        if self.unit not in ("utterance", "vector"):
            raise PrivacyError(f"unit must be 'utterance' or 'vector', got {self.unit!r}")
        for name in ("mechanism", "version", "note"):
            if not isinstance(getattr(self, name), str):
                raise PrivacyError(f"{name} must be text, got {getattr(self, name)!r}")

    @property
    def unbounded(self) -> bool:
        """True where nothing is promised (epsilon is infinite)."""
        return math.isinf(self.epsilon)

    def to_json(self) -> dict[str, Any]:
        """Return the loss for JSON; an infinite epsilon is the text ``"inf"``, never a large number."""
        return {
            "measure": self.measure,
            "epsilon": "inf" if self.unbounded else self.epsilon,
            "unit": self.unit,
            "sensitivity": self.sensitivity,
            "mechanism": self.mechanism,
            "version": self.version,
            "note": self.note,
        }

    @staticmethod
    def from_json(content: dict[str, Any]) -> Loss:
        """Read what :meth:`to_json` wrote."""
        epsilon = content["epsilon"]
        return Loss(**{**content, "epsilon": math.inf if epsilon == "inf" else epsilon})


def add_up(epsilons: Iterable[float]) -> float:
    """Return the sum of epsilons; one too large for a number is ``inf``, still an upper bound."""
    try:
        return math.fsum(epsilons)
    except OverflowError:
        return math.inf


def compose(*losses: Loss) -> Loss:
    """Return the sequential composition of losses per utterance: their epsilons add.

    Raises:
        PrivacyError: A loss per vector is among them; say how many vectors first
            (:func:`utterance_loss`).
    """
    if not losses:
        raise PrivacyError("nothing to compose: at least one loss is needed")
    for loss in losses:
        if loss.unit != "utterance":
            raise PrivacyError(
                f"cannot add a loss per {loss.unit} ({loss.mechanism}) to losses per utterance"
            )
    return Loss(
        measure="pure",
        epsilon=add_up(loss.epsilon for loss in losses),
        unit="utterance",
        sensitivity=None,
        mechanism=" + ".join(loss.mechanism for loss in losses),
        version="1",
        note="; ".join(sorted({loss.note for loss in losses if loss.note})),
    )


def utterance_loss(loss: Loss, vectors: int) -> Loss:
    """Return the loss of a whole utterance of ``vectors`` released vectors.

    Args:
        loss: Per vector or per utterance (then returned as it is).
        vectors: Number of released content vectors K, at least 1.
    """
    if loss.unit == "utterance":
        return loss
    if vectors < 1:
        raise PrivacyError(f"an utterance has at least one released vector, got {vectors}")
    return replace(loss, epsilon=loss.epsilon * vectors, unit="utterance")
