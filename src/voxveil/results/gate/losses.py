"""Paired differences in leakage between candidate and reference on the same trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from voxveil.results.comparison.paired import NotPairedError, paired_intervals, read_scored

__all__ = ["Intervals", "losses_or_reason", "paired_losses"]

#: 95 % interval of the loss by metric, by ``ATTACKER/SCENARIO``.
Intervals = Mapping[str, Mapping[str, tuple[float, float]]]


def paired_losses(reference: Path, candidate: Path, attacks: Sequence[str], replicates: int) -> Intervals:
    """Return the interval of each loss (candidate minus reference, higher = worse) by a paired bootstrap.

    One draw of speakers serves both systems (:mod:`voxveil.results.comparison.paired`). A metric that is
    undefined in more than 1 in 20 draws has no interval.

    Args:
        reference: Score output of the reference.
        candidate: Score output of the candidate.
        attacks: ``ATTACKER/SCENARIO`` of each attack.
        replicates: Number of draws.

    Raises:
        NotPairedError: Scores are not there, or the trials are not the same.
        InputError: Scores are damaged.
    """
    found = {}
    for attack in attacks:
        try:
            sides = read_scored(reference / attack), read_scored(candidate / attack)
            bounds = paired_intervals(*sides, replicates)
        except NotPairedError as error:
            raise NotPairedError(f"{attack}: {error}") from None
        losses = {
            ours: bounds[theirs]
            for ours, theirs in (("identification_rate", "identification_rate"), ("d_ece", "zebra_expected"))
            if theirs in bounds
        }
        if "unlinkability" in bounds:
            low, high = bounds["unlinkability"]
            losses["linkability"] = (-high, -low)
        found[attack] = losses
    return found


def losses_or_reason(
    reference: Path | None, candidate: Path | None, attacks: Sequence[str], replicates: int
) -> Intervals | str:
    """Return :func:`paired_losses`, or one line with the reason why pairing is impossible."""
    if reference is None or candidate is None:
        return f"the scores of the {'reference' if reference is None else 'candidate'} are not at hand"
    try:
        return paired_losses(reference, candidate, attacks, replicates)
    except NotPairedError as error:
        return str(error)
