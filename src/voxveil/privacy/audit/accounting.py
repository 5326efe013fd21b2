"""Numerical (epsilon, delta) accounting of an utterance, in addition to its pure epsilon.

Privacy loss distributions (Koskela et al. 2020; Doroshenko et al. 2022, connect-the-dots, rounded
to the safe side) by dp-accounting. Within a stream:

* content, K vectors on the L1 ball through Lap(2 / epsilon): K-fold composition of one-dimensional
  Laplace noise of scale 2 / epsilon under a shift of 2. A shift spread over several coordinates is
  dominated by the same shift in one (docs/privacy.md has the proof).
* content, K codes (randomized response, subset selection): K-fold composition of the answer among
  two codes, which dominates every epsilon-DP pair.
* content with Gaussian noise: its K-fold zCDP (:mod:`voxveil.privacy.zcdp`).
* pitch, the cube with scale C K / epsilon: C K-fold composition of a shift of 1.

Streams are added by basic composition with delta shared equally; with Gaussian noise, by zCDP where that
is less. The grid of a release changes
the law by a factor of 1 + r / 2, r the epsilon per grid step (under 10^-5), which is not in the
figure. It is reported, not promised. It holds under the invariants of the streams, as their sum does; a
stream of epsilon 0 under its invariant adds nothing and takes no share of delta.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from voxveil.privacy.loss import Loss, add_up, stream_rho
from voxveil.privacy.zcdp import DELTA, approximate
from voxveil.runtime.errors import PrivacyError, optional_module

__all__ = ["DELTA", "approximate_epsilon"]

#: Points of a privacy loss distribution, in all and per composed step.
_POINTS, _POINTS_PER_STEP = 100_000, 20


def approximate_epsilon(losses: Mapping[str, Loss], vectors: int, delta: float = DELTA) -> float:
    """Return the epsilon in nat at which the whole utterance is (epsilon, delta)-DP.

    Args:
        losses: Loss of each stream, as in a ledger entry.
        vectors: Number of released content vectors K.
        delta: In (0, 1).

    Returns:
        At most the pure epsilon of the utterance, where it has one; ``inf`` where a stream has no noise.
        For the same neighbours as that: with recognized words among the invariants, given those.

    Raises:
        PrivacyError: ``delta`` is not in (0, 1) or there is nothing to account for.
        MissingExtraError: dp-accounting is not installed.
    """
    if not 0 < delta < 1:
        raise PrivacyError(f"delta must lie in (0, 1), got {delta}")
    if not losses or vectors < 1:
        raise PrivacyError(f"needs at least one loss and one vector, got {len(losses)} and {vectors}")
    charged = [loss for loss in losses.values() if loss.size > 0]
    found = math.fsum(_stream(loss, vectors, delta / len(charged)) for loss in charged)
    if any(loss.measure == "zcdp" for loss in losses.values()):
        # All streams under zCDP hold too, at the whole of delta.
        return min(found, approximate(add_up(stream_rho(loss, vectors) for loss in losses.values()), delta))
    return found


def _stream(loss: Loss, vectors: int, delta: float) -> float:
    if loss.unbounded:
        return math.inf
    if loss.measure == "zcdp":
        return approximate(stream_rho(loss, vectors), delta)
    if loss.mechanism == "laplace_l1" and loss.unit == "vector":
        return _composed(_laplace, loss.epsilon, vectors, delta)
    if loss.mechanism in ("randomized_response", "subset_selection") and loss.unit == "vector":
        return _composed(_response, loss.epsilon, vectors, delta)
    if loss.mechanism == "laplace_cube" and loss.sensitivity is not None:
        entries = round(loss.sensitivity)
        return _composed(_laplace, loss.epsilon / entries, entries, delta)
    # Nothing finer is known of another mechanism: its pure epsilon.
    return loss.epsilon * (vectors if loss.unit == "vector" else 1)


def _laplace(pld: Any, epsilon: float, interval: float) -> Any:
    """Return the privacy loss distribution of Laplace noise of scale 1 / epsilon under a shift of 1."""
    return pld.from_laplace_mechanism(1.0 / epsilon, value_discretization_interval=interval)


def _response(pld: Any, epsilon: float, interval: float) -> Any:
    """Return that of an answer among two codes.

    Two dominate k, and sets of codes too: whatever is epsilon-DP under two inputs is a post-processing
    of the answer among two (Kairouz, Oh and Viswanath 2015).
    """
    share = 2.0 / (1.0 + math.exp(epsilon))
    return pld.from_randomized_response(share, 2, value_discretization_interval=interval)


def _composed(one: Callable[[Any, float, float], Any], epsilon: float, times: int, delta: float) -> float:
    """Return epsilon at delta of ``times`` mechanisms of ``epsilon`` each."""
    pld = optional_module("dp_accounting.pld.privacy_loss_distribution", "dp", "dp-accounting")
    pure = epsilon * times
    single = one(pld, epsilon, pure / max(_POINTS, _POINTS_PER_STEP * times))
    return min(float(single.self_compose(times).get_epsilon_for_delta(delta)), pure)
