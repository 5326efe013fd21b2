"""The error rate of a corpus with its interval."""

from __future__ import annotations

import numpy as np
import pytest

from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.utility.edits import Edits, error_rate

EDITS = {
    "a1": Edits(1, 0, 0, 10),
    "a2": Edits(0, 2, 1, 8),
    "b1": Edits(0, 0, 0, 12),
    "c1": Edits(4, 1, 3, 6),
}
SPEAKERS = {item: item[0] for item in EDITS}


def test_the_rate_is_all_errors_over_all_reference_tokens() -> None:
    rate = error_rate(EDITS, SPEAKERS, replicates=200, seed=1)
    assert rate.value == pytest.approx(100 * 12 / 36)
    assert (rate.utterances, rate.speakers, rate.reason) == (4, 3, "")
    assert rate.to_json()["substitutions"] == 5


def test_the_interval_is_a_bootstrap_over_speakers() -> None:
    rate = error_rate(EDITS, SPEAKERS, replicates=60, seed=5)
    names = ["a", "b", "c"]
    draws = stream(5, "error_rate", "bootstrap").multinomial(3, np.full(3, 1 / 3), size=60)
    values = []
    for draw in draws:
        chosen = [name for name, times in zip(names, draw, strict=True) for _ in range(times)]
        parts = [edits for name in chosen for item, edits in EDITS.items() if SPEAKERS[item] == name]
        values.append(100 * sum(e.errors for e in parts) / sum(e.reference for e in parts))
    assert rate.ci95 == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])))
    assert rate.ci95[0] <= rate.value <= rate.ci95[1]


def test_order_does_not_matter_and_a_seed_repeats() -> None:
    backwards = dict(reversed(EDITS.items()))
    assert error_rate(EDITS, SPEAKERS, replicates=50, seed=2) == error_rate(
        backwards, SPEAKERS, replicates=50, seed=2
    )


def test_what_is_undefined_says_why() -> None:
    empty = error_rate({"a": Edits(0, 0, 2, 0)}, {"a": "x"}, replicates=50, seed=1)
    assert empty.value is None and empty.ci95 is None and "no reference" in empty.reason
    alone = error_rate({"a": Edits(1, 0, 0, 4)}, {"a": "x"}, replicates=50, seed=1)
    assert alone.value == 25.0 and alone.ci95 is None and "2 speakers" in alone.reason
    some = error_rate(
        {"a": Edits(1, 0, 0, 4), "b": Edits(0, 0, 1, 0)}, {"a": "x", "b": "y"}, replicates=50, seed=1
    )
    assert some.value == 50.0 and some.ci95 is None and "no reference token" in some.reason
    with pytest.raises(InputError, match="utterance a"):
        error_rate({"a": Edits(0, 0, 0, 1)}, {}, replicates=50, seed=1)
