"""Zero-concentrated differential privacy (zCDP) in nat, and its conversion to (epsilon, delta).

Bun and Steinke, "Concentrated differential privacy: simplifications, extensions, and lower bounds",
TCC 2016: a release is rho-zCDP if the Renyi divergence of order alpha between the releases of any
two neighbours is at most alpha rho for every alpha > 1. Rhos of a composition add. Pure epsilon-DP is
epsilon^2 / 2-zCDP; no finite rho gives a pure epsilon.
"""

from __future__ import annotations

import math

import numpy as np

from voxveil.runtime.errors import PrivacyError

__all__ = ["DELTA", "approximate", "pure_rho", "require_rho"]

#: The delta at which a rho is shown as an epsilon.
DELTA = 1e-6
#: Orders alpha - 1 that are looked at: every one gives a valid figure, the least is taken.
_ORDERS = np.geomspace(1e-6, 1e9, 20_001)


def approximate(rho: float, delta: float = DELTA) -> float:
    """Return an epsilon in nat at which a rho-zCDP release is (epsilon, delta)-DP.

    epsilon = alpha rho + ln(1 / delta) / (alpha - 1) + ln(1 - 1 / alpha) - ln(alpha) / (alpha - 1), the least
    over alpha > 1 (Canonne, Kamath and Steinke 2020). It is below rho + 2 sqrt(rho ln(1 /
    delta)), and it does not add up over releases: rhos do.

    Args:
        rho: At least 0; infinite is infinite.
        delta: In (0, 1).

    Raises:
        PrivacyError: ``delta`` is not in (0, 1).
    """
    if not 0 < delta < 1:
        raise PrivacyError(f"delta must lie in (0, 1), got {delta}")
    if math.isinf(rho):
        return math.inf
    alpha = 1.0 + _ORDERS
    extra = (math.log(1.0 / delta) - np.log(alpha)) / _ORDERS + np.log(_ORDERS / alpha)
    return max(0.0, float((alpha * rho + extra).min()))


def pure_rho(epsilon: float) -> float:
    """Return the rho of a pure epsilon: epsilon^2 / 2, infinite where epsilon is."""
    return float(epsilon) * float(epsilon) / 2.0


def require_rho(rho: object, name: str, low: float, high: float) -> None:
    """Raise an error if rho is not a number between ``low`` and ``high``."""
    if isinstance(rho, bool) or not isinstance(rho, int | float):
        raise PrivacyError(f"{name}: rho must be a number, got {rho!r}")
    if not low <= rho <= high:
        raise PrivacyError(
            f"{name}: rho must lie in [{low:g}, {high:g}], got {rho}; no noise is spelt 'identity'"
        )
