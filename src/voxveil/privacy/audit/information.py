"""Upper bounds of the information in released values, and the implied limits of any attacker's accuracy.

With g(t) = t + exp(-t) - 1, the divergence of Laplace noise of scale b shifted by t b from the
unshifted is g(t). A channel whose inputs all lie within a of a centre, in each coordinate, passes
at most the sum of g(a_i / b) (the capacity is at most the largest divergence from any one output
law). On the grid g grows by a factor below 1 + r^2 / 6, r the epsilon per grid step (under 10^-4
even at epsilon = 100), which is left out.

``impossible`` is a word for Fano's inequality on a closed set only (:func:`fano_accuracy_limit`:
N equally likely candidates of equal frame count); what follows from an estimate of the information
in speech or language is at most ``implausible``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.privacy.invariants import GIVEN_WORDS
from voxveil.privacy.loss import Loss
from voxveil.privacy.unit import norm1
from voxveil.runtime.errors import PrivacyError

__all__ = [
    "ball_information",
    "bits",
    "channel_information",
    "cube_information",
    "fano_accuracy_limit",
    "laplace_divergence",
    "odds_accuracy_limit",
    "passing_line",
    "pinsker_accuracy_limit",
    "utterance_information",
    "vector_information",
]

#: Noise on the L1 ball of radius 1, by mechanism and unit: one release passes :func:`ball_information`.
_BALLS = (("laplace_l1", "vector"), ("laplace_ball", "utterance"))


def bits(nat: float) -> float:
    """Convert nat to bits."""
    return nat / math.log(2.0)


def laplace_divergence(shift: float) -> float:
    """Return g(t) = t + exp(-t) - 1 in nat, t in units of the noise's scale, at least 0."""
    return shift + math.expm1(-shift)


def ball_information(epsilon: float) -> float:
    """Return the most one point of the L1 ball of radius 1 passes through Lap(2 / epsilon).

    g(epsilon / 2) nat, since sum_i g(|b_i| epsilon / 2) is convex in the |b_i|, so largest at a corner:
    it is reached by one-hot vectors only; see :func:`vector_information`.
    """
    return laplace_divergence(_checked(epsilon) / 2.0)


def cube_information(epsilon: float, entries: int) -> float:
    """Return the most a cube of C K entries passes through Lap(C K / epsilon), in nat.

    Args:
        epsilon: Per utterance.
        entries: C K.
    """
    return entries * laplace_divergence(_checked(epsilon) / (2.0 * entries))


def channel_information(epsilon: float) -> float:
    """Return the most any epsilon-locally-private channel passes: c - 1 - ln c nat.

    c = epsilon / (1 - exp(-epsilon)).
    """
    c = _checked(epsilon) / -math.expm1(-epsilon)
    return c - 1.0 - math.log(c)


def vector_information(vectors: NDArray[Any], epsilon: float) -> float:
    """Return the most that vectors of these magnitudes pass through Lap(2 / epsilon), on average.

    Args:
        vectors: (K, M), normalized to L1 norm 1 first; only |entries| matter.
        epsilon: Per vector.

    Returns:
        Mean over the vectors of the sum of g(|b_i| epsilon / 2), in nat per vector.
    """
    shifts = np.abs(norm1(vectors)) * (_checked(epsilon) / 2.0)
    return float((shifts + np.expm1(-shifts)).sum(axis=-1).mean())


def utterance_information(losses: Mapping[str, Loss], vectors: int) -> float:
    """Return the upper bound of information in one utterance, in nat, from its streams' losses.

    Args:
        losses: Loss of each stream, as in a ledger entry.
        vectors: Number of released content vectors K.

    Returns:
        Sum over the streams; ``inf`` where a stream has no noise. Of a stream under an invariant, such as the
        recognized words, what passes given it: the invariant itself may pass whole.
    """
    if vectors < 1:
        raise PrivacyError(f"an utterance has at least one released vector, got {vectors}")
    return math.fsum(
        _loss_information(loss) * (vectors if loss.unit == "vector" else 1) for loss in losses.values()
    )


def fano_accuracy_limit(information: float, candidates: int) -> float:
    """Return the largest accuracy of naming one of N equally likely candidates (Fano).

    Args:
        information: What passes, in nat.
        candidates: N, at least 2; a closed set of equal frame count.

    Returns:
        (I + ln 2) / ln N, at most 1.
    """
    return min(1.0, (information + math.log(2.0)) / math.log(_candidates(candidates)))


def pinsker_accuracy_limit(information: float, candidates: int) -> float:
    """Return the largest accuracy of naming one of S equally likely speakers: 1/S + sqrt(I / 2).

    With p the joint law of speaker and release and q the product of its margins, accuracy under q is at
    most 1/S and the two differ by at most their total variation, which Pinsker bounds by sqrt(I / 2).
    Equally likely means given the frame count too: duration is public and outside of I.

    Args:
        information: What one release passes, in nat. The root is concave, so the mean over utterances of
            different lengths serves for the mean accuracy.
        candidates: S, at least 2.
    """
    return min(1.0, 1.0 / _candidates(candidates) + math.sqrt(information / 2.0))


def odds_accuracy_limit(epsilon: float, candidates: int) -> float:
    """Return the largest accuracy against N equally likely candidates that pure epsilon allows.

    e^epsilon / (e^epsilon + N - 1): it hides nobody among N once epsilon is well above ln N.
    """
    return 1.0 / (1.0 + (_candidates(candidates) - 1) * math.exp(-_checked(epsilon)))


def passing_line(losses: Mapping[str, Loss], vectors: int) -> str:
    """Return one line below a table: the information bound per utterance under the claim."""
    parts = []
    for name in sorted(losses):
        passed = utterance_information({name: losses[name]}, vectors)
        parts.append(f"{name} {_text(passed)}")
    total = utterance_information(losses, vectors)
    if any(loss.conditional for loss in losses.values()):
        return f"{GIVEN_WORDS}, at most {_text(total)} of the rest can pass ({', '.join(parts)})"
    return (
        f"at most {_text(total)} of the utterance's content and pitch can pass ({', '.join(parts)};"
        f" K = {vectors} vectors)"
    )


def _loss_information(loss: Loss) -> float:
    if loss.unbounded or loss.epsilon == 0:
        return loss.epsilon
    if loss.rho is not None:
        # An order that tends to 1: rho bounds the divergence of any two laws, and of each from that of the
        # sphere's centre, at half the distance, a quarter.
        return loss.rho / 4.0 if loss.mechanism == "gaussian_l2" else loss.rho
    # Of any mechanism its epsilon alone, and of Laplace noise what its own law says, if that is less.
    passed = channel_information(loss.epsilon)
    if (loss.mechanism, loss.unit) in _BALLS:
        return min(passed, ball_information(loss.epsilon))
    if loss.mechanism == "laplace_cube" and loss.sensitivity is not None:
        return min(passed, cube_information(loss.epsilon, round(loss.sensitivity)))
    return passed


def _text(nat: float) -> str:
    # Decimal, not float: 1,720 and 0.00002, never 1.72e+03.
    return "everything" if math.isinf(nat) else f"{Decimal(f'{bits(nat):.3g}'):,f} bit"


def _checked(epsilon: float) -> float:
    if not epsilon > 0:
        raise PrivacyError(f"epsilon must be above 0, got {epsilon}")
    return epsilon


def _candidates(count: int) -> int:
    if count < 2:
        raise PrivacyError(f"at least 2 candidates are needed, got {count}")
    return count
