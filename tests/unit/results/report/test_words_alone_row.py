"""The row 'the words alone': from the scores of transcripts to every table."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.metrics.data import TRANSCRIPTS, WORDS_ALONE
from voxveil.results.report.page_tables import measured_table
from voxveil.results.report.results import read_summaries, words_alone
from voxveil.results.report.terminal import results_table
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import finish
from voxveil.tracking.publish.describe import describe_run


@pytest.fixture(scope="module")
def with_words(tmp_path_factory: pytest.TempPathFactory) -> list:
    """Summaries of two systems, of which the second has scores of transcripts."""
    root = tmp_path_factory.mktemp("words")
    systems = {name: SYSTEMS[name] for name in ("original", "anon")}
    make_outputs(root, systems)
    scores = root / "outputs/score/anon"
    folder = scores / WORDS_ALONE / TRANSCRIPTS
    shutil.copytree(scores / "ecapa/semi_informed", folder)
    conditions = json.loads((folder / "conditions.json").read_text())
    states = dict.fromkeys(("scenario", "enrolment", "trial", "training"), TRANSCRIPTS)
    write_json(folder / "conditions.json", {**conditions, "attacker": WORDS_ALONE, **states})
    (scores / "_DONE.json").unlink()
    finish(scores, "score", "anon")
    for name in systems:
        evaluate(root, name)
    flat = read_json(root / "metrics/anon.metrics.json")
    assert any(WORDS_ALONE in name for name in flat)
    return read_summaries(root / "outputs/evaluate", systems)


def test_it_is_no_attack_on_the_system(with_words) -> None:
    original, anon = with_words
    assert original["words_alone"] is None
    assert [attack["attacker"] for attack in anon["attacks"]] == ["ecapa"]
    assert anon["words_alone"]["attacker"] == WORDS_ALONE
    assert words_alone(with_words) == anon["words_alone"]
    assert words_alone([original]) is None


def test_it_stands_in_every_table_before_what_chance_reads(with_words) -> None:
    changed = copy.deepcopy(with_words)
    changed[1]["words_alone"]["metrics"]["eer"].update(value=41.6, ci95=[35.0, 47.0])
    for table, start in (
        (results_table(changed), "the words alone "),
        (measured_table(changed), '<th scope="row">the words alone'),
        (describe_run(changed), "| the words alone |"),
    ):
        lines = [row for row in table.replace("<tr", "\n<tr").splitlines() if start in row]
        assert lines and all("41.6" in line and "35.0" in line for line in lines)
        assert table.index(start) < table.index("if nothing leaks")
    assert "no system that keeps the words can hide" in " ".join(results_table(changed).split())


def test_without_transcripts_there_is_no_such_row(summaries) -> None:
    old = [{name: value for name, value in each.items() if name != "words_alone"} for each in summaries]
    for table in (results_table(old), measured_table(old), describe_run(old)):
        assert "words alone" not in table
        assert "if nothing leaks" in table


def test_scores_of_transcripts_alone_are_no_attack(tmp_path: Path) -> None:
    from voxveil.runtime.errors import VoxveilError

    make_outputs(tmp_path, {"anon": SYSTEMS["anon"]})
    scores = tmp_path / "outputs/score/anon"
    (scores / WORDS_ALONE).mkdir()
    (scores / "ecapa/semi_informed").rename(scores / WORDS_ALONE / TRANSCRIPTS)
    (scores / "_DONE.json").unlink()
    finish(scores, "score", "anon")
    with pytest.raises(VoxveilError, match=r"no ATTACKER/SCENARIO/scores\.txt"):
        evaluate(tmp_path, "anon")
