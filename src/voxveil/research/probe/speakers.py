"""Speaker identification (ASI) from released features in a probe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from voxveil.config import Params
from voxveil.config.sections import section_of
from voxveil.corpus.split import Split
from voxveil.research.asi.identification import Describe, identify
from voxveil.research.asi.split import split_utterances
from voxveil.research.asi.statistics import utterance_statistics
from voxveil.research.params import AsiParams
from voxveil.research.probe.facts import Cost, accuracy_limit

__all__ = ["identified"]


def identified(
    split: Split,
    features: Callable[[str, int], NDArray[Any]],
    cost: Callable[[str], Cost],
    params: Params,
    name: str,
    *,
    describe: Describe = utterance_statistics,
) -> dict[str, Any]:
    """Run the ASI attack on a public split, with the proven limit of its accuracy.

    Args:
        split: Public speech; speakers with too few utterances are left out and counted.
        features: (K, D) of (utterance, draw); draw 0 is the release under attack, later ones the
            attacker's own anonymizations of training utterances.
        cost: Of releasing an utterance.
        params: ``asi`` and the seed.
        name: Names the random streams and errors.
        describe: Statistics of an utterance's features, for the attacker without a network.
    """
    by_speaker: dict[str, list[str]] = {}
    for utterance in split:
        by_speaker.setdefault(utterance.speaker, []).append(utterance.id)
    asi = section_of(params, AsiParams)
    chosen = split_utterances(by_speaker, full=asi.full, seed=params.base.seed)
    found = identify(features, chosen, asi, params.base.seed, name=name, describe=describe)
    tested = [cost(item) for items in chosen.test.values() for item in items]
    return {
        **found.to_json(),
        "limit": accuracy_limit(tested, found.speakers),
        "left_out": chosen.left_out,
    }
