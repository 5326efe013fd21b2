"""A weak attacker must not pass as privacy."""

from __future__ import annotations

import pytest

from voxveil.metrics.attacked import convergence_warnings, not_converged_on


def attack(scenario: str, eer: float | None, ci95: list[float] | None, state: str = "anonymized") -> dict:
    training = "anonymized" if scenario == "semi_informed" and state == "anonymized" else "original"
    return {
        "attacker": "ecapa",
        "scenario": scenario,
        "training": training,
        "enrolment": state,
        "trial": state,
        "metrics": {"eer": {"value": eer, "ci95": ci95}},
    }


@pytest.mark.parametrize(
    ("semi", "lazy", "fires"),
    [
        ((40.0, [36.0, 44.0]), (30.0, [26.0, 34.0]), True),
        ((40.0, [33.0, 47.0]), (30.0, [26.0, 34.0]), False),
        ((20.0, [16.0, 24.0]), (30.0, [26.0, 34.0]), False),
        ((40.0, None), (30.0, [26.0, 34.0]), False),
        ((None, None), (30.0, [26.0, 34.0]), False),
    ],
)
def test_retraining_must_not_hurt_beyond_the_interval(semi: tuple, lazy: tuple, fires: bool) -> None:
    found = convergence_warnings([attack("semi_informed", *semi), attack("lazy_informed", *lazy)])
    assert (("ecapa", "semi_informed") in found) is fires
    if fires:
        assert "40.0 %" in found["ecapa", "semi_informed"]["text"]


@pytest.mark.parametrize(("eer", "fires"), [(12.1, True), (11.9, False)])
def test_the_recipe_must_reach_its_bar_on_original_speech(eer: float, fires: bool) -> None:
    found = convergence_warnings([attack("semi_informed", eer, [eer - 3, eer + 3], state="original")])
    assert bool(found) is fires


@pytest.mark.parametrize(
    ("original", "lazy", "semi", "states"),
    [
        (5.0, 20.0, 15.0, ()),
        (5.0, 20.0, 40.0, ("anonymized",)),
        (20.0, 20.0, 15.0, ("original", "anonymized")),
        (20.0, 20.0, 40.0, ("original", "anonymized")),
    ],
)
def test_only_what_failed_is_trained_again(original: float, lazy: float, semi: float, states: tuple) -> None:
    """The row without anonymized speech must not move because of the anonymizer."""
    found = [
        attack(name, eer, [eer - 3, eer + 3])
        for name, eer in (("lazy_informed", lazy), ("semi_informed", semi))
    ]
    found.append(
        {**attack("original", original, [original - 3, original + 3], "original"), "training": "original"}
    )
    assert not_converged_on(found) == states
