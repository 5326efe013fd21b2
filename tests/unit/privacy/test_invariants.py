"""Losses under invariants: what is one, what composes to what, and what older files assume."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given as given_by
from hypothesis import strategies as st

from voxveil.privacy import Entry, LaplaceBall, Loss, RecognizedWords, compose, utterance_loss
from voxveil.privacy.invariants import (
    LENGTH,
    is_implied,
    length_invariant,
    neighbours_text,
    words_invariant,
)
from voxveil.privacy.ledger import Ledger
from voxveil.privacy.loss_rule import LossRule, utterance_total
from voxveil.privacy.record import parse_release
from voxveil.privacy.register import FolderRegister
from voxveil.runtime.errors import InputError, PrivacyError

from .ledger_entries import make_entry

ONE, TWO = words_invariant("0123456789ab"), words_invariant("f" * 16)
NAMES = st.frozensets(st.sampled_from([LENGTH, "length@1s", "length@0.5s", ONE, TWO]))
WORDS = RecognizedWords("f" * 16)
#: Contour on normalized time: no invariant at all.
CONTOUR = LaplaceBall(3.0, invariants=frozenset())


def loss(epsilon: float, invariants: frozenset[str], unit: str = "utterance") -> Loss:
    return Loss("pure", epsilon, unit, 2.0, "x", "1", invariants=invariants)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "",
        "words",
        "length@",
        "length@0s",
        "length@0.0s",
        "length@1.50s",
        "length@01s",
        "length@1",
        "length@1s\n",
        "Length",
        "recognized_words@",
        "recognized_words@0123456789a",
        "recognized_words@0123456789AB",
        "recognized_words@" + "0" * 65,
        1,
        None,
    ],
)
def test_what_is_no_invariant_is_refused(name: object) -> None:
    with pytest.raises(PrivacyError, match="an invariant must be"):
        loss(1.0, frozenset({name}))  # type: ignore[arg-type]


@pytest.mark.parametrize("values", [None, "length", ["length"], {"length"}, ("length",)])
def test_invariants_are_a_frozen_set(values: object) -> None:
    with pytest.raises(PrivacyError, match="frozen set"):
        loss(1.0, values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pad_to", "name"),
    [(0, "length"), (1, "length@1s"), (0.5, "length@0.5s"), (30.0, "length@30s"), (1e-5, "length@0.00001s")],
)
def test_the_invariant_of_a_padded_length(pad_to: float, name: str) -> None:
    assert length_invariant(pad_to) == name
    assert loss(1.0, frozenset({name})).invariants == {name}


@pytest.mark.parametrize("pad_to", [-1.0, math.nan, math.inf, True])
def test_a_length_is_padded_to_seconds(pad_to: float) -> None:
    with pytest.raises(PrivacyError, match="seconds of at least 0"):
        length_invariant(pad_to)


@given_by(invariants=NAMES)
def test_epsilon_0_needs_recognized_words(invariants: frozenset[str]) -> None:
    if invariants & {ONE, TWO}:
        assert loss(0.0, invariants).epsilon == 0
    else:
        with pytest.raises(PrivacyError, match="epsilon must be above 0"):
            loss(0.0, invariants)


@given_by(parts=st.lists(st.tuples(st.floats(0.125, 100.0), NAMES), min_size=1, max_size=5))
def test_composition_adds_epsilons_and_unites_invariants(parts: list[tuple[float, frozenset[str]]]) -> None:
    total = compose(*(loss(epsilon, names) for epsilon, names in parts))
    expected: set[str] = set()
    for _, names in parts:
        expected |= names
    assert total.invariants == expected
    assert total.epsilon == pytest.approx(sum(epsilon for epsilon, _ in parts))
    assert Loss.from_json(json.loads(json.dumps(total.to_json()))) == total


def test_concentrated_and_pure_losses_unite_invariants_too() -> None:
    gaussian = Loss("zcdp", math.inf, "vector", 2.0, "gaussian_l2", "2", rho=0.5)
    total = compose(WORDS.loss_for(), utterance_loss(gaussian, 4))
    assert (total.rho, total.invariants) == (2.0, {LENGTH, TWO})


def test_a_loss_keeps_its_invariants_over_vectors() -> None:
    assert utterance_loss(loss(2.0, frozenset({"length@1s"}), "vector"), 7).invariants == {"length@1s"}


def test_what_existed_before_assumes_equal_length() -> None:
    assert Loss("pure", 1.0, "utterance", 2.0, "x", "1").invariants == {LENGTH}
    assert LaplaceBall(1.0).loss_for((4,)).invariants == {LENGTH}
    older = Loss("pure", 1.0, "utterance", 2.0, "x", "1").to_json()
    del older["invariants"]
    assert Loss.from_json(older) == Loss("pure", 1.0, "utterance", 2.0, "x", "1")


def test_neighbours_follow_from_the_invariants() -> None:
    assert neighbours_text(frozenset()) == "any two utterances"
    assert neighbours_text({LENGTH}) == "any two utterances with equal sample count"
    assert neighbours_text({"length@0.5s", TWO}) == (
        "any two utterances with equal length in steps of 0.5 s"
        f" and recognized words, errors included ({TWO})"
    )


@pytest.mark.parametrize(
    ("value", "given", "implied"),
    [
        (LENGTH, {LENGTH}, True),
        (LENGTH, {"length@1s"}, False),
        ("length@1s", {LENGTH}, True),
        ("length@1s", {"length@0.5s"}, True),
        ("length@0.3s", {"length@0.1s"}, True),
        ("length@0.5s", {"length@1s"}, False),
        ("length@1s", {ONE}, False),
        (ONE, {ONE, LENGTH}, True),
        (ONE, {TWO, LENGTH}, False),
    ],
)
def test_one_invariant_may_follow_from_others(value: str, given: set[str], implied: bool) -> None:
    assert is_implied(value, given) == implied


def test_a_rule_of_streams_is_known_before_any_noise() -> None:
    rule = LossRule.of_streams({"words": WORDS, "contour": CONTOUR})
    losses = rule.losses(500)
    assert losses == rule.losses(1) == replace(rule, window=100).losses(500)
    assert {name: found.epsilon for name, found in losses.items()} == {"words": 0.0, "contour": 3.0}
    assert (rule.vectors(500), replace(rule, window=100).spans(500)) == (1, [(0, 500)])
    total = utterance_total(losses, 1)
    assert (total.epsilon, total.invariants) == (3.0, {TWO})
    assert rule.formula.startswith("epsilon = epsilon(words) + epsilon(contour), given the recognized words")
    assert {name: Loss.from_json(content) for name, content in rule.to_json().items()} == losses
    assert "no privacy claim" in rule.losses(1, secret=False)["contour"].note
    assert math.isinf(utterance_total(replace(rule, target="the speaker").losses(9), 1).epsilon)


@pytest.mark.parametrize("names", [[], ["pitch"], ["words", "target"]])
def test_a_rule_of_streams_has_streams_of_its_own(names: list[str]) -> None:
    with pytest.raises(PrivacyError, match="streams must be at least one"):
        LossRule.of_streams(dict.fromkeys(names, WORDS))


def words_entry(name: str = "a") -> Entry:
    losses = LossRule.of_streams({"words": WORDS, "contour": CONTOUR}).losses(1)
    return replace(make_entry(name), losses=losses, vectors=1)


def test_a_release_of_words_says_what_it_depends_on(register: FolderRegister) -> None:
    ledger = Ledger.open(purpose="release", system="words", register=register)
    release = ledger.announce([words_entry()])
    record = release.to_json()
    facts = f"recognized words, errors included ({TWO})"
    assert record["neighbours"] == f"any two utterances with equal {facts}"
    assert record["public_by_definition"] == [facts, "relative path", "accepted or refused"]
    assert (record["epsilon_max"], record["epsilon_given_words_max"]) == ("none", 3.0)
    assert parse_release(json.dumps(record).encode(), "x") == replace(release, register="")
    record["epsilon_max"] = 3.0
    with pytest.raises(InputError, match="contradict"):
        parse_release(json.dumps(record).encode(), "x")


@pytest.mark.parametrize("edit", [["length", "length"], ["length@1s"], "length", [[]], None])
def test_edited_invariants_are_refused(register: FolderRegister, edit: object) -> None:
    record = Ledger.open(purpose="release", system="x", register=register).announce([make_entry()]).to_json()
    record["entries"][0]["losses"]["pitch"]["invariants"] = edit
    with pytest.raises(InputError, match="x: "):
        parse_release(json.dumps(record).encode(), "x")


def test_a_record_of_format_1_assumes_equal_length(register: FolderRegister) -> None:
    release = Ledger.open(purpose="release", system="x", register=register).announce([make_entry()])
    record = release.to_json()
    record["format"] = 1
    for loss_of in (*record["entries"][0]["losses"].values(), record["entries"][0]["utterance"]):
        del loss_of["invariants"]
    assert parse_release(json.dumps(record).encode(), "x") == replace(release, register="")
    # In the format of today invariants are never left out.
    with pytest.raises(InputError, match="contradict"):
        parse_release(json.dumps({**record, "format": 2}).encode(), "x")
