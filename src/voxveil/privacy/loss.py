"""Privacy losses with measure, size, unit, sensitivity and mechanism.

Composition is by type: losses per utterance add; a loss per released vector is
multiplied by the number of vectors before it may be added to anything. Pure epsilons add to a pure
epsilon. Where a zCDP loss takes part the total is a rho, pure losses counting epsilon^2 / 2, and no
pure epsilon holds: the two never share a number. Invariants unite
(:mod:`voxveil.privacy.invariants`): a sum holds for neighbours that are equal in all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from voxveil.privacy.invariants import LENGTH, UNPADDED, condition_text, require_invariants, words_of
from voxveil.privacy.zcdp import pure_rho
from voxveil.runtime.errors import PrivacyError

__all__ = ["INFINITE", "SEEDED_NOTE", "Loss", "Unit", "add_up", "compose", "stream_rho", "utterance_loss"]

INFINITE = math.inf
#: The note of a release with seeded noise; such a loss cannot be announced for private speech.
SEEDED_NOTE = "seeded float noise: training and tests only, no privacy claim"
Unit = Literal["utterance", "vector"]
#: A rho beyond it is no number any more once it is counted for every vector.
_LARGEST = 1e300


@dataclass(frozen=True)
class Loss:
    """The privacy loss of one release.

    Attributes:
        measure: ``pure`` (max divergence, pure epsilon-DP) or ``zcdp`` (Renyi divergences, rho-zCDP).
        epsilon: Upper bound of the log-likelihood ratio in nat; ``inf`` is no such bound. It is 0 only under
            an invariant of recognized words.
        unit: What one loss covers: an ``utterance`` or one released content ``vector``.
        sensitivity: L1 sensitivity of what was released, L2 under zCDP; ``None`` for the identity.
        mechanism: Name of the mechanism.
        version: Version of the mechanism's definition.
        note: What the claim does not cover.
        rho: Under zCDP, finite and above 0; its epsilon is then infinite.
        invariants: Functions of the recording on which the neighbours of the claim are equal.
    """

    measure: str
    epsilon: float
    unit: Unit
    sensitivity: float | None
    mechanism: str
    version: str
    note: str = ""
    rho: float | None = None
    invariants: frozenset[str] = UNPADDED

    def __post_init__(self) -> None:
        """Validate the fields."""
        if isinstance(self.epsilon, bool) or not isinstance(self.epsilon, int | float):
            raise PrivacyError(f"epsilon must be a number, got {self.epsilon!r}")
        try:
            float(self.epsilon)
        except OverflowError:
            raise PrivacyError("epsilon is too large for a number; no promise is spelt 'inf'") from None
        require_invariants(self.invariants)
        if math.isnan(self.epsilon) or self.epsilon < 0 or (self.epsilon == 0 and not self.conditional):
            raise PrivacyError(
                "epsilon must be above 0 (no noise is spelt 'identity'), or 0 under an invariant"
                f" 'recognized_words@DIGEST', got {self.epsilon}"
            )
        if self.measure not in ("pure", "zcdp"):
            raise PrivacyError(f"measure must be 'pure' or 'zcdp', got {self.measure!r}")
        if (self.measure == "zcdp") != (self.rho is not None):
            raise PrivacyError(
                f"a rho belongs to the measure 'zcdp' alone, got {self.measure!r}, {self.rho!r}"
            )
        if self.rho is not None:
            number = not isinstance(self.rho, bool) and isinstance(self.rho, int | float)
            if not number or not 0 < self.rho <= _LARGEST:
                raise PrivacyError(f"rho must be a finite number above 0, got {self.rho!r}")
            if not math.isinf(self.epsilon):
                raise PrivacyError(f"a zcdp loss has no pure epsilon (it is 'inf'), got {self.epsilon}")
        if self.unit not in ("utterance", "vector"):
            raise PrivacyError(f"unit must be 'utterance' or 'vector', got {self.unit!r}")
        for name in ("mechanism", "version", "note"):
            if not isinstance(getattr(self, name), str):
                raise PrivacyError(f"{name} must be text, got {getattr(self, name)!r}")

    @property
    def unbounded(self) -> bool:
        """True for an infinite loss: no noise, or composed with a stream without noise."""
        return math.isinf(self.epsilon) and self.rho is None

    @property
    def conditional(self) -> bool:
        """True where the claim holds for neighbours with equal recognized words only."""
        return bool(words_of(self.invariants))

    @property
    def size(self) -> float:
        """Epsilon, or rho: of losses of one measure and unit the larger is worse."""
        return self.epsilon if self.rho is None else self.rho

    @property
    def amount(self) -> str:
        """The size in words, e.g. ``epsilon 10``, ``zCDP rho 0.5`` or ``epsilon 0 given WORDS``."""
        size = f"epsilon {self.epsilon:g}" if self.rho is None else f"zCDP rho {self.rho:g}"
        return f"{size} {condition_text(self.invariants)}".rstrip()

    def to_json(self) -> dict[str, Any]:
        """Return the loss for JSON; an infinite epsilon is the text ``"inf"``, never a large number."""
        content = {
            "measure": self.measure,
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "unit": self.unit,
            "sensitivity": self.sensitivity,
            "mechanism": self.mechanism,
            "version": self.version,
            "note": self.note,
            "invariants": sorted(self.invariants),
        }
        return content if self.rho is None else {**content, "rho": self.rho}

    @staticmethod
    def from_json(content: dict[str, Any]) -> Loss:
        """Read the output of :meth:`to_json`; an older one assumes equal sample count."""
        epsilon, invariants = content["epsilon"], content.get("invariants", [LENGTH])
        if not isinstance(invariants, list):
            raise PrivacyError(f"invariants must be a list of names, got {invariants!r}")
        return Loss(
            **{
                **content,
                "epsilon": math.inf if epsilon == "inf" else epsilon,
                "invariants": frozenset(invariants),
            }
        )


def add_up(epsilons: Iterable[float]) -> float:
    """Return the sum of epsilons; one too large for a number is ``inf``, still an upper bound."""
    try:
        return math.fsum(epsilons)
    except OverflowError:
        return math.inf


def compose(*losses: Loss) -> Loss:
    """Return the sequential composition of losses per utterance: their epsilons add.

    Their invariants unite: the sum holds for neighbours that are equal in all of them. Where a zCDP loss is
    among them their rhos add instead, of a pure one epsilon^2 / 2.

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
    concentrated = any(loss.measure == "zcdp" for loss in losses)
    rho = add_up(stream_rho(loss, 1) for loss in losses) if concentrated else INFINITE
    bounded = math.isfinite(rho)
    return Loss(
        measure="zcdp" if bounded else "pure",
        epsilon=INFINITE if concentrated else add_up(loss.epsilon for loss in losses),
        unit="utterance",
        sensitivity=None,
        mechanism=" + ".join(loss.mechanism for loss in losses),
        version="1",
        note="; ".join(sorted({loss.note for loss in losses if loss.note})),
        rho=rho if bounded else None,
        invariants=frozenset().union(*(loss.invariants for loss in losses)),
    )


def stream_rho(loss: Loss, vectors: int) -> float:
    """Return the zCDP rho of a stream of one utterance; ``inf`` where it has no noise.

    Args:
        loss: Per vector or per utterance, of any measure.
        vectors: Number of released content vectors K.
    """
    rho = pure_rho(loss.epsilon) if loss.rho is None else loss.rho
    return rho * vectors if loss.unit == "vector" else rho


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
    rho = None if loss.rho is None else loss.rho * vectors
    return replace(loss, epsilon=loss.epsilon * vectors, unit="utterance", rho=rho)
