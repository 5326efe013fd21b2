"""The table of the terminal and the reading of summaries."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from voxveil.results.report.results import headline, read_summaries, results_digest, same_corpus
from voxveil.results.report.terminal import results_table
from voxveil.runtime.errors import IncompleteInputError


def row(table: str, system: str, part: str) -> str:
    lines = table[table.index(part) :].splitlines()
    (found, *_) = [line for line in lines if line.split()[:1] == [system]]
    return found


def test_every_system_is_promised_and_measured(summaries) -> None:
    table = results_table(summaries)
    assert row(table, "anon_dp", "Promised").split() == ["anon_dp", "10", "10", "1,480"]
    assert row(table, "anon", "Promised").split() == ["anon", "∞", "∞", "∞"]
    assert row(table, "anon_dp", "Measured").rstrip().endswith("62.0 [60.0, 64.0]")
    assert "chance 12.5" in table
    assert "if nothing leaks" in table
    assert "An EER of 50 % is not perfect privacy" in table
    assert all(line.isprintable() for line in table.splitlines())


def test_every_row_stands_under_its_conditions(summaries) -> None:
    table = results_table(summaries)
    blocks = table.split("\nMeasured: ")[1:]
    assert [block.splitlines()[0] for block in blocks] == [
        "ecapa, semi-informed; enrolment original, trials original",
        "ecapa, semi-informed; enrolment anonymized, trials anonymized",
    ]
    assert "original" in blocks[0].splitlines()[3]
    assert {line.split()[0] for line in blocks[1].splitlines()[3:5]} == {"anon", "anon_dp"}


def test_another_anonymizer_leaves_the_original_row(summaries) -> None:
    other = copy.deepcopy(summaries)
    other[1]["attacks"][0]["metrics"]["eer"]["value"] = 1.0
    before, after = results_table(summaries), results_table(other)
    assert row(before, "original", "Measured") == row(after, "original", "Measured")
    assert row(before, "anon", "Measured") != row(after, "anon", "Measured")


def test_warnings_and_undefined_values_are_shown(summaries) -> None:
    changed = copy.deepcopy(summaries)
    attack = changed[2]["attacks"][0]
    attack["metrics"]["eer"].update(value=None, ci95=None, note="1 target")
    attack["warnings"] = [{"code": "scores_reversed", "text": "scores may be reversed: EER 80 %"}]
    table = results_table(changed)
    assert (
        row(table, "anon_dp", "Measured: ecapa, semi-informed; enrolment anonymized").split()[1]
        == "undefined"
    )
    assert "anon_dp: scores may be reversed" in table


def test_the_headline_is_the_strongest_semi_informed_attack(summaries) -> None:
    two = copy.deepcopy(summaries[0])
    weak = two["attacks"][0]
    other, strong = ({**copy.deepcopy(weak), "scenario": "ignorant"}, copy.deepcopy(weak))
    other["metrics"]["eer"]["value"] = 0.0
    strong["metrics"]["eer"]["value"] -= 1.0
    undefined = copy.deepcopy(weak)
    undefined["metrics"]["eer"]["value"] = None
    two["attacks"] = [other, undefined, weak, strong]
    assert headline(two) is strong
    two["attacks"] = [other]
    assert headline(two)["scenario"] == "ignorant"


def test_two_corpora_make_no_table(summaries) -> None:
    mixed = copy.deepcopy(summaries)
    mixed[2]["corpus"]["revision"] = "1" * 64
    with pytest.raises(IncompleteInputError, match="original and anon_dp were run on different corpora"):
        same_corpus(mixed)
    assert same_corpus(summaries)["synthetic"] is True


@pytest.mark.parametrize("content", [[], {"format": 2, "system": "a"}, {"format": 1, "system": "b"}])
def test_a_wrong_summary_is_named(tmp_path: Path, content: object) -> None:
    (tmp_path / "a").mkdir()
    path = tmp_path / "a/summary.json"
    path.write_text(json.dumps(content))
    with pytest.raises(IncompleteInputError, match=r"a/summary\.json: not the summary of system a"):
        read_summaries(tmp_path, ["a"])
    path.write_text(json.dumps({"format": 1, "system": "a", "attacks": []}))
    with pytest.raises(IncompleteInputError, match="holds no attack"):
        read_summaries(tmp_path, ["a"])


def test_the_digest_names_the_results_in_any_order(evaluated: Path) -> None:
    folder = evaluated / "outputs/evaluate"
    whole = results_digest(folder, ["original", "anon", "anon_dp"])
    assert whole == results_digest(folder, ["anon_dp", "anon", "original"])
    assert whole != results_digest(folder, ["original", "anon"])
