"""Black-box audit of a mechanism's claimed epsilon from released values.

Two kinds of test, each with a chance of at most alpha to accuse a right mechanism:

* neighbours: many releases of two inputs at the full distance, a vector +e1 against -e1, a cube
  all 0 against all 1 at C = K = 1, through the code every release goes through. The lower bound
  of epsilon (:mod:`voxveil.privacy.audit.bounds`) must not exceed the claim. An epsilon above what the
  number of releases can refute is reported as not auditable, not as passed.
* law: many releases of one fixed input with many entries. Every value is a multiple of the grid
  spacing, the noise follows the discrete Laplace law of the claimed scale (chi-square over cells
  of equal probability), and successive entries are uncorrelated.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.audit.bounds import ALPHA, choose_event, largest_bound, ratio_bound
from voxveil.privacy.mechanisms import CUBE_BITS, SIMPLEX_BITS, LaplaceCube, LaplaceSimplex
from voxveil.privacy.noise import NoiseSource, SystemNoise
from voxveil.privacy.vectors import VectorNoise
from voxveil.runtime.errors import InputError

__all__ = [
    "ALPHA",
    "RELEASES",
    "Finding",
    "Verdict",
    "audit_cube",
    "audit_neighbours",
    "audit_noise",
    "audit_simplex",
    "audit_vectors",
    "correlation_p",
]

#: Releases of each neighbour.
RELEASES = 1_000_000
Verdict = Literal["consistent", "violation", "not auditable"]
_CELLS = 100
_CHUNK = 100_000
_LAW_DRAWS = 500_000

Sample = NDArray[np.float64]


@dataclass(frozen=True)
class Finding:
    """The outcome of one test.

    Attributes:
        mechanism: Name.
        test: What was tested.
        epsilon: The claim in nat, per unit of the mechanism.
        releases: Releases looked at, of each neighbour.
        verdict: ``consistent`` with the claim, a ``violation``, or ``not auditable``.
        bound: Lower confidence bound of epsilon in nat, where the test gives one.
        detail: Figures in words.
    """

    mechanism: str
    test: str
    epsilon: float
    releases: int
    verdict: Verdict
    bound: float | None
    detail: str

    def to_json(self) -> dict[str, Any]:
        """Return the finding for JSON."""
        finite = self.bound is not None and math.isfinite(self.bound)
        return {**self.__dict__, "bound": self.bound if finite else None}


def audit_simplex(
    mechanism: LaplaceSimplex,
    epsilon: float,
    *,
    releases: int = RELEASES,
    noise: NoiseSource | None = None,
) -> list[Finding]:
    """Audit the content mechanism against a claimed epsilon per vector.

    Args:
        mechanism: What is audited; its own ``epsilon`` is not believed.
        epsilon: The claim.
        releases: Of each neighbour, at least 100.
        noise: By default that of every release, :class:`SystemNoise`.
    """
    source = noise or SystemNoise()
    fixed = np.array([0.5, -0.25, 0.125, 0.0625, -0.0625, 0.0, 0.0, 0.0])
    rows = min(releases, _LAW_DRAWS) // len(fixed) + 1
    added = mechanism.noisy(np.tile(fixed, (rows, 1)), source) - fixed
    return [
        *audit_vectors(mechanism, epsilon, releases, source),
        audit_noise(mechanism.name, epsilon, added, 2.0, SIMPLEX_BITS),
    ]


def audit_vectors(
    mechanism: VectorNoise,
    epsilon: float,
    releases: int,
    source: NoiseSource,
    claim: str = "",
    delta: float = 0.0,
) -> list[Finding]:
    """Compare the releases of two opposite vectors with the claim, as noise leaves them and as released.

    Args:
        mechanism: What is audited.
        epsilon: The claim.
        releases: Of each neighbour, at least 100.
        source: The noise.
        claim: Further words on the claim, for the name of the test.
        delta: Of the claim; 0 for a pure epsilon.
    """

    def draw(sign: float, released: bool) -> Callable[[int], Sample]:
        def some(count: int) -> Sample:
            vectors = np.tile([[sign, 0.0]], (count, 1))
            if released:
                return np.asarray(mechanism.release(vectors, source).value[:, 0], np.float64)
            return np.asarray(mechanism.noisy(vectors, source)[:, 0], np.float64)

        return some

    return [
        audit_neighbours(
            mechanism.name,
            f"vector +e1 against -e1, {state}{claim}",
            epsilon,
            draw(1.0, released),
            draw(-1.0, released),
            releases,
            delta=delta,
        )
        for state, released in (("as noise leaves it", False), ("as released", True))
    ]


def audit_cube(
    mechanism: LaplaceCube,
    epsilon: float,
    *,
    releases: int = RELEASES,
    noise: NoiseSource | None = None,
) -> list[Finding]:
    """Audit the pitch mechanism against a claimed epsilon per utterance; arguments as above."""
    source = noise or SystemNoise()

    def draw(level: float) -> Callable[[int], Sample]:
        def some(count: int) -> Sample:
            return np.asarray(mechanism.perturb(np.full((count, 1, 1), level), source), np.float64).ravel()

        return some

    channels, frames = 16, 35
    fixed = np.linspace(0.0, 1.0, channels * frames, dtype=np.float64).reshape(channels, frames)
    fixed = np.round(fixed * 2**CUBE_BITS) / 2**CUBE_BITS
    copies = min(releases, _LAW_DRAWS) // fixed.size + 1
    added = np.stack([mechanism.release(fixed, source).value - fixed for _ in range(copies)])
    return [
        audit_neighbours(
            mechanism.name, "cube all 0 against all 1, C = K = 1", epsilon, draw(0.0), draw(1.0), releases
        ),
        audit_noise(mechanism.name, epsilon, added, float(fixed.size), CUBE_BITS),
    ]


def audit_neighbours(
    name: str,
    test: str,
    epsilon: float,
    first: Callable[[int], Sample],
    second: Callable[[int], Sample],
    releases: int,
    alpha: float = ALPHA,
    delta: float = 0.0,
) -> Finding:
    """Compare two samplers of released values with the claim.

    Args:
        name: Of the mechanism.
        test: What the neighbours are.
        epsilon: The claim in nat.
        first: Returns (n,) released values of one neighbour, fresh ones at every call.
        second: The same of the other.
        releases: Of each neighbour, at least 100; one half chooses the event, the other tests it.
        alpha: Chance of accusing a right mechanism.
        delta: Of the claim; 0 for a pure epsilon.

    Raises:
        InputError: There are too few releases for an audit.
    """
    if releases < 100:
        raise InputError(f"an audit needs at least 100 releases, got {releases}")
    half = releases // 2
    event = choose_event(_drawn(first, half), _drawn(second, half), alpha, delta)
    bound = ratio_bound(_drawn(first, half), _drawn(second, half), event, alpha, delta)
    limit = largest_bound(half, alpha, delta)
    verdict: Verdict = "consistent"
    if bound > epsilon:
        verdict = "violation"
    elif epsilon >= limit:
        verdict = "not auditable"
    detail = (
        f"epsilon is at least {max(bound, 0.0):.3f} (confidence {1 - alpha:g});"
        f" {releases} releases can refute claims below {limit:.2f}"
    )
    return Finding(name, test, epsilon, releases, verdict, bound, detail)


def audit_noise(
    name: str, epsilon: float, added: NDArray[Any], sensitivity: float, bits: int, alpha: float = ALPHA
) -> Finding:
    """Test grid, law and independence of noise added to a fixed input.

    Args:
        name: Of the mechanism.
        epsilon: The claim in nat.
        added: Released value minus input, rows of consecutive entries; inputs on the grid.
        sensitivity: L1 sensitivity of the mechanism.
        bits: The grid spacing is 2^-bits.
        alpha: Shared by the tests of the law and of the correlation.
    """
    from scipy.stats import chisquare

    rows = np.asarray(added, np.float64).reshape(-1, added.shape[-1])
    steps = np.ldexp(rows, bits)
    on_grid = bool((steps == np.round(steps)).all())
    rate = epsilon / (sensitivity * 2**bits)
    edges, expected = _cells(rate, _CELLS)
    counts = np.bincount(np.searchsorted(edges, steps.ravel(), side="right"), minlength=len(expected))
    p_law = float(chisquare(counts, expected * steps.size).pvalue)
    p_correlation = correlation_p(steps)
    scale = float(np.abs(rows).mean() / (sensitivity / epsilon))
    right = on_grid and min(p_law, p_correlation) >= alpha / 2
    detail = (
        f"{'on' if on_grid else 'NOT on'} the grid 2^-{bits}; scale {scale:.4f} of the claimed;"
        f" law p = {p_law:.2g}; neighbouring entries correlated p = {p_correlation:.2g}"
    )
    verdict: Verdict = "consistent" if right else "violation"
    return Finding(name, "law of the noise at a fixed input", epsilon, len(rows), verdict, None, detail)


def correlation_p(rows: Sample) -> float:
    """Return the p-value of no correlation between neighbouring entries of (n, m) centred values."""
    from scipy.stats import norm

    pairs = rows[:, 1:] * rows[:, :-1]
    return float(2 * norm.sf(abs(float(pairs.sum() / np.sqrt(np.square(pairs).sum())))))


def _cells(rate: float, wanted: int) -> tuple[Sample, Sample]:
    """Cell edges (a value belongs to the cell above an edge it equals) and their probabilities.

    The law is P(x) = (1 - q) / (1 + q) q^|x|, q = e^-rate; its survival function at x >= 1 is
    q^x / (1 + q). Where few integers carry the mass, cells are fewer than wanted.
    """
    q = math.exp(-rate)
    tail = np.arange(1, wanted // 2) / wanted
    positive = np.unique(np.maximum(np.ceil(-np.log(tail * (1 + q)) / rate), 1.0))
    edges = np.concatenate([1.0 - positive[::-1], positive])
    survival = np.exp(-rate * positive) / (1 + q)
    upper = np.append(survival[:-1] - survival[1:], survival[-1])
    middle = 1.0 - 2 * survival[0]
    return edges, np.concatenate([upper[::-1], [middle], upper])


def _drawn(draw: Callable[[int], Sample], count: int) -> Sample:
    return np.concatenate([draw(min(_CHUNK, count - start)) for start in range(0, count, _CHUNK)])
