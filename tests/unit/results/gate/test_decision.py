"""The gate as a pure function: what promotes, what keeps, and that it always says why."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.config.model import GateParams
from voxveil.results.gate.decision import Decision, decide
from voxveil.results.gate.evidence import Evidence, Measured, Promised, read_evidence
from voxveil.runtime.errors import InputError

RULES = GateParams()
ATTACK = "ecapa/semi_informed"
PROMISES = {
    "pitch": Promised(10.0, "utterance"),
    "content": Promised(3.0, "vector"),
    "whole utterance": Promised(910.0, "utterance"),
}
GOOD = {
    "identification_rate": Measured(10.0, (5.0, 16.0)),
    "linkability": Measured(0.1, (0.05, 0.2)),
    "d_ece": Measured(0.05, (0.02, 0.12)),
}
#: Losses whose upper ends lie below the default margins.
SMALL = {"identification_rate": (-2.0, 4.0), "linkability": (-0.02, 0.04), "d_ece": (-0.01, 0.03)}

GIVEN, PADDED = frozenset({"recognized_words@0123456789ab"}), frozenset({"length@1s"})


def evidence(label: str = "candidate", **changes: Any) -> Evidence:
    made = Evidence(label, PROMISES, {ATTACK: GOOD}, {"per": Measured(30.0, (28.0, 33.0))})
    return dataclasses.replace(made, **changes)


def held(candidate: Evidence, loss: Any = SMALL, **changes: Any) -> Decision:
    """Decide with a champion that is also the reference."""
    other = evidence("champion")
    given = {"reference": other, "champion": other, "losses": {ATTACK: loss}} | changes
    return decide(candidate, RULES, **given)


def rho(size: float) -> Promised:
    """Return a promise under zCDP, whose epsilon is infinite."""
    return Promised(math.inf, "utterance", 1e-5, "zcdp", size)


def failed(decision: Decision) -> list[str]:
    assert not decision.promote
    assert decision.reason.startswith("kept: ")
    return [finding.check for finding in decision.findings if not finding.passed]


def test_no_champion_and_bars_that_hold() -> None:
    decision = decide(evidence(), RULES)
    assert decision.promote
    assert decision.reason.startswith("promoted: attacked by ecapa/semi_informed; no champion: upper end of")


@pytest.mark.parametrize("name", list(GOOD))
def test_no_champion_and_a_bar_that_does_not_hold(name: str) -> None:
    bar = getattr(RULES, f"bar_{name}")
    beyond = {ATTACK: GOOD | {name: Measured(bar * 0.9, (0.0, bar * 1.01))}}
    assert failed(decide(evidence(attacks=beyond), RULES)) == [f"bar {name} {ATTACK}"]
    at = {ATTACK: GOOD | {name: Measured(bar * 0.9, (0.0, bar))}}
    assert decide(evidence(attacks=at), RULES).promote


def test_no_champion_and_speech_that_is_not_understood() -> None:
    garbled = evidence(errors={"per": Measured(20.0, (19.0, 21.0)), "wer": Measured(85.0, (78.0, 92.0))})
    decision = decide(garbled, RULES)
    assert failed(decision) == ["bar wer"]
    assert "upper end of word errors 92 %, above the bar 80 %" in decision.reason


def test_no_champion_and_no_interval() -> None:
    bare = {ATTACK: GOOD | {"d_ece": Measured(0.01)}}
    assert failed(decide(evidence(attacks=bare), RULES)) == [f"bar d_ece {ATTACK}"]


def test_a_reference_is_held_against_even_without_a_champion() -> None:
    large = {ATTACK: SMALL | {"linkability": (0.0, 0.06)}}
    assert failed(decide(evidence(), RULES, reference=evidence("reference"), losses=large)) == [
        f"loss linkability {ATTACK}"
    ]


def test_better_is_promoted() -> None:
    better = {"identification_rate": (-9.0, -2.0), "linkability": (-0.2, -0.1), "d_ece": (-0.1, -0.05)}
    decision = held(evidence(), better)
    assert decision.promote
    assert decision.reason.startswith("promoted: ")
    assert "loss in D_ECE (ecapa/semi_informed) against the reference [-0.1, -0.05] bit" in decision.reason


@pytest.mark.parametrize("name", list(GOOD))
def test_worse_within_the_margin_is_promoted_and_beyond_it_is_kept(name: str) -> None:
    margin = getattr(RULES, f"margin_{name}")
    assert held(evidence(), SMALL | {name: (0.001 * margin, 0.999 * margin)}).promote
    assert failed(held(evidence(), SMALL | {name: (0.001 * margin, margin)})) == [f"loss {name} {ATTACK}"]
    # A wide interval around no loss at all is not enough either: too few speakers say nothing.
    assert failed(held(evidence(), SMALL | {name: (-9 * margin, 1.1 * margin)})) == [f"loss {name} {ATTACK}"]


@pytest.mark.parametrize("name", ["per", "wer"])
def test_worse_errors_within_and_beyond_the_margin(name: str) -> None:
    other = evidence("champion", errors={"per": Measured(30.0), name: Measured(40.0)})
    for rise, promoted in ((2.0, True), (2.1, False), (-5.0, True)):
        candidate = evidence(errors={"per": Measured(30.0), name: Measured(40.0 + rise)})
        decision = held(candidate, champion=other, reference=other)
        assert decision.promote == promoted, rise
        if not promoted:
            assert failed(decision) == ["errors against the champion", "errors against the reference"]


def test_errors_are_held_against_the_pinned_reference_too() -> None:
    champion = evidence("champion", errors={"per": Measured(34.0)})
    candidate = evidence(errors={"per": Measured(35.0)})
    assert failed(held(candidate, champion=champion)) == ["errors against the reference"]


def test_words_that_are_missing_are_not_replaced_by_phones() -> None:
    other = evidence("champion", errors={"per": Measured(30.0), "wer": Measured(40.0)})
    assert "errors against the champion" in failed(held(evidence(), champion=other))


@pytest.mark.parametrize("name", list(GOOD))
@pytest.mark.parametrize("champion", [True, False])
def test_an_undefined_metric_never_promotes(name: str, champion: bool) -> None:
    undefined = evidence(attacks={ATTACK: GOOD | {name: Measured(None, None, "1 target trial")}})
    decision = held(undefined) if champion else decide(undefined, RULES)
    assert "defined" in failed(decision)
    assert "is undefined (1 target trial)" in decision.reason


def test_undefined_errors_never_promote() -> None:
    assert "defined" in failed(held(evidence(errors={"per": Measured(None, None, "no words")})))


@pytest.mark.parametrize("missing", ["metric", "attack", "infinite"])
def test_a_loss_without_an_interval_never_promotes(missing: str) -> None:
    losses: Any = {ATTACK: {name: value for name, value in SMALL.items() if name != "d_ece"}}
    checks = [f"loss d_ece {ATTACK}"]
    if missing == "attack":
        losses, checks = {}, [f"loss {name} {ATTACK}" for name in GOOD]
    if missing == "infinite":
        losses = {ATTACK: SMALL | {"d_ece": (-math.inf, math.nan)}}
    assert failed(held(evidence(), losses=losses)) == checks


def test_what_cannot_be_paired_is_kept_with_the_reason() -> None:
    decision = held(evidence(), losses="the trials are not the same (trials.txt differs)")
    assert failed(decision) == ["paired"]
    assert "cannot be held against the reference: the trials are not the same" in decision.reason


def test_a_champion_without_a_pinned_reference_is_kept() -> None:
    assert failed(held(evidence(), reference=None)) == ["reference"]


@pytest.mark.parametrize(
    ("ours", "theirs", "why"),
    [
        (Promised(10.1, "utterance"), Promised(10.0, "utterance"), "epsilon is larger"),
        (Promised(math.inf, "utterance"), Promised(10.0, "utterance"), "epsilon is larger"),
        (Promised(1.0, "vector"), Promised(10.0, "utterance"), "the unit covers less"),
        (Promised(1.0, "speaker"), Promised(1.0, "utterance"), "the units cannot be compared"),
        (Promised(9.0, "utterance", 1e-5), Promised(10.0, "utterance"), "delta is larger"),
        (
            Promised(0.0, "utterance", invariants=GIVEN),
            Promised(10.0, "utterance"),
            "fewer pairs of utterances",
        ),
        (
            Promised(9.0, "utterance"),
            Promised(10.0, "utterance", invariants=PADDED),
            "fewer pairs of utterances",
        ),
        (rho(0.2), Promised(10.0, "utterance"), "the measures zcdp and pure cannot be compared"),
        (rho(0.3), rho(0.2), "zCDP rho 0.2 per utterance, delta 1e-05: rho is larger"),
    ],
)
def test_a_weaker_promise_is_kept(ours: Promised, theirs: Promised, why: str) -> None:
    champion = evidence("champion", promises=PROMISES | {"pitch": theirs})
    decision = held(evidence(promises=PROMISES | {"pitch": ours}), champion=champion)
    assert failed(decision) == ["promise pitch"]
    assert why in decision.reason


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (Promised(10.0, "utterance"), Promised(10.0, "utterance")),
        (Promised(9.0, "utterance", 1e-6), Promised(10.0, "utterance", 1e-6)),
        (Promised(10.0, "utterance"), Promised(10.0, "vector")),
        (Promised(10.0, "utterance", invariants=PADDED), Promised(10.0, "utterance")),
        (Promised(0.0, "utterance", invariants=GIVEN), Promised(0.0, "utterance", invariants=GIVEN)),
        (Promised(math.inf, "utterance"), Promised(math.inf, "utterance")),
        (rho(0.2), rho(0.2)),
        (Promised(0.1 + 0.2, "utterance"), Promised(0.3, "utterance")),
    ],
)
def test_a_promise_at_least_as_strong_passes(ours: Promised, theirs: Promised) -> None:
    champion = evidence("champion", promises=PROMISES | {"pitch": theirs})
    assert held(evidence(promises=PROMISES | {"pitch": ours}), champion=champion).promote


def test_a_larger_utterance_epsilon_is_kept_though_both_streams_are_equal() -> None:
    # Such as three times the vectors at the same epsilon each.
    more = PROMISES | {"whole utterance": Promised(2710.0, "utterance")}
    assert failed(held(evidence(promises=more))) == ["promise whole utterance"]


def test_a_stream_that_only_one_side_promises_is_kept() -> None:
    fewer = {name: value for name, value in PROMISES.items() if name != "pitch"}
    assert failed(held(evidence(promises=fewer))) == ["promise pitch"]


def test_a_weak_attacker_concludes_nothing() -> None:
    assert failed(held(evidence(weak={ATTACK: "its training failed"}))) == ["attacks"]
    original = evidence("original", weak={ATTACK: "its EER on original speech is 20 %"})
    assert failed(held(evidence(), original=original)) == ["attacks"]
    assert held(evidence(weak={"ecapa/ignorant": "not gated"})).promote


def test_only_gated_scenarios_count() -> None:
    bad = {name: Measured(99.0, (98.0, 100.0)) for name in GOOD}
    both = evidence(attacks={ATTACK: GOOD, "ecapa/ignorant": bad})
    assert decide(both, RULES).promote
    wider = dataclasses.replace(RULES, scenarios="semi_informed, ignorant")
    assert not decide(both, wider).promote
    assert failed(decide(both, dataclasses.replace(RULES, scenarios="lazy_informed")))[0] == "attacks"


def summary(**metrics: Any) -> dict[str, Any]:
    entries = {
        "identification_rate": {"value": 10.0, "ci95": [5.0, 16.0], "note": None},
        "unlinkability": {"value": 0.9, "ci95": [0.8, 0.95], "note": None},
        "zebra_expected": {"value": 0.05, "ci95": [0.02, 0.12], "note": None},
        "eps_max_pav": {"value": 3.0, "ci95": None, "note": None},
    }
    loss = {"epsilon": "inf", "unit": "utterance", "measure": "pure"}
    return {
        "system": "anon",
        "promise": {"streams": {"pitch": loss}, "utterance": {"epsilon": 3.0, "unit": "utterance"}},
        "utility": {"per": {"value": 30.0, "ci95": [28.0, 33.0]}, "wer": None},
        "attacks": [
            {
                "attacker": "ecapa",
                "scenario": "semi_informed",
                "metrics": entries | metrics,
                "warnings": [{"code": "few_trials", "text": "few"}],
            }
        ],
    }


def test_the_summary_of_a_system_is_read() -> None:
    found = read_evidence(summary())
    assert found.promises["pitch"] == Promised(math.inf, "utterance")
    loss = {"epsilon": "inf", "unit": "vector", "measure": "zcdp", "rho": 0.5, "delta": 1e-5}
    concentrated = summary()
    concentrated["promise"]["streams"]["content"] = loss
    assert read_evidence(concentrated).promises["content"] == Promised(math.inf, "vector", 1e-5, "zcdp", 0.5)
    linkability = found.attacks[ATTACK]["linkability"]
    assert linkability.value == pytest.approx(0.1)
    assert linkability.interval == pytest.approx((0.05, 0.2))
    assert found.weak == {}
    undefined = read_evidence(summary(unlinkability={"value": None, "ci95": None, "note": "1 target trial"}))
    assert undefined.attacks[ATTACK]["linkability"] == Measured(None, None, "1 target trial")


@given(st.one_of(st.none(), st.floats(min_value=0, max_value=1e9)))
def test_worst_case_epsilon_gates_nothing(worst: float | None) -> None:
    changed = read_evidence(summary(eps_max_pav={"value": worst, "ci95": None, "note": "a maximum"}))
    assert decide(changed, RULES) == decide(read_evidence(summary()), RULES)


def test_results_without_a_promise_are_refused() -> None:
    with pytest.raises(InputError, match="scores: not the summary of a system with promise"):
        read_evidence({"system": "x", "attacks": []}, "scores")
