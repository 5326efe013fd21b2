"""Black-box audit of Gaussian noise on the L2 sphere against a claimed zCDP rho.

No pure epsilon can be refuted or confirmed for it. Neighbours are held against the epsilon that rho gives
at a delta of 0.01, where a sample of a million still says something; the law of the noise at a fixed
input is tested as for the other mechanisms.
"""

from __future__ import annotations

import numpy as np

from voxveil.privacy.audit.mechanism_audit import (
    ALPHA,
    RELEASES,
    Finding,
    Verdict,
    audit_vectors,
    correlation_p,
)
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.sphere import GaussianSphere
from voxveil.privacy.zcdp import approximate

__all__ = ["AUDIT_DELTA", "audit_sphere"]

#: The delta at which neighbours are compared.
AUDIT_DELTA = 0.01
_CELLS, _LAW_DRAWS, _ENTRIES = 100, 500_000, 8


def audit_sphere(
    mechanism: GaussianSphere,
    rho: float,
    *,
    releases: int = RELEASES,
    noise: NoiseSource | None = None,
) -> list[Finding]:
    """Audit the Gaussian mechanism against a claimed rho per vector.

    Args:
        mechanism: What is audited; its own ``rho`` is not believed.
        rho: The claim.
        releases: Of each neighbour, at least 100.
        noise: By default that of every release, :class:`SystemNoise`.

    Returns:
        Findings whose epsilon is that of ``rho`` at :data:`AUDIT_DELTA`.
    """
    source = noise or SystemNoise()
    epsilon = approximate(rho, AUDIT_DELTA)
    claim = f"; rho {rho:g} at delta {AUDIT_DELTA:g}"
    return [
        *audit_vectors(mechanism, epsilon, releases, source, claim, AUDIT_DELTA),
        _law(mechanism, rho, epsilon, releases, source),
    ]


def _law(
    mechanism: GaussianSphere, rho: float, epsilon: float, releases: int, source: NoiseSource
) -> Finding:
    """Test grid, law and independence of the noise added to a one-hot vector."""
    from scipy.stats import chisquare, norm

    rows = min(releases, _LAW_DRAWS) // _ENTRIES + 1
    fixed = np.eye(1, _ENTRIES)
    noisy = mechanism.noisy(np.tile(fixed, (rows, 1)), source)
    steps = noisy * mechanism.radius()
    on_grid = bool((np.abs(steps - np.round(steps)) < 1e-3).all())
    added = (noisy - fixed) / np.sqrt(2.0 / rho)
    edges = norm.ppf(np.arange(1, _CELLS) / _CELLS)
    counts = np.bincount(np.searchsorted(edges, added.ravel()), minlength=_CELLS)
    p_law = float(chisquare(counts).pvalue)
    p_correlation = correlation_p(added)
    verdict: Verdict = "consistent" if on_grid and min(p_law, p_correlation) >= ALPHA / 2 else "violation"
    detail = (
        f"{'on' if on_grid else 'NOT on'} the grid; deviation {float(added.std()):.4f} of the claimed;"
        f" law p = {p_law:.2g}; neighbouring entries correlated p = {p_correlation:.2g}"
    )
    test = "law of the noise at a fixed input"
    return Finding(mechanism.name, test, epsilon, rows, verdict, None, detail)
