"""A system of recognized words in every table: no unconditional epsilon, and a column of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from made_outputs import Made, evaluate, make_outputs
from voxveil.cli.main import main
from voxveil.results.comparison.comparison import compare_runs
from voxveil.results.comparison.render import comparison_markdown, comparison_text
from voxveil.results.comparison.run_results import RunResults
from voxveil.results.gate.evidence import Promised, read_evidence
from voxveil.results.report.page_tables import promise_table
from voxveil.results.report.results import Summary, read_summaries
from voxveil.results.report.terminal import results_table
from voxveil.results.wording import given_text, plain_promise, pure_text
from voxveil.runtime.atomic import read_json
from voxveil.tracking.publish.describe import describe_run, describe_system
from voxveil.tracking.publish.plan import system_plan

DIGEST = "0123456789abcdef"
CONDITION = "given the recognized words, errors included"
SYSTEMS = {
    "pure": Made(0.3, pitch=1.0, content=2.0),
    "gauss": Made(0.3, pitch=1.0, rho=0.01),
    "spoken": Made(0.3, words=DIGEST),
    "sung": Made(0.3, words=DIGEST, pitch=3.0),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("words")
    make_outputs(root, SYSTEMS, samples=False)
    for name in SYSTEMS:
        evaluate(root, name)
    return root


@pytest.fixture(scope="module")
def summaries(root: Path) -> dict[str, Summary]:
    return dict(zip(SYSTEMS, read_summaries(root / "outputs/evaluate", SYSTEMS), strict=True))


def test_the_summary_has_no_unconditional_epsilon(summaries: dict[str, Summary]) -> None:
    found = {name: summaries[name]["promise"]["utterance"] for name in SYSTEMS}
    assert (found["spoken"]["epsilon"], found["spoken"]["epsilon_given_words"]) == ("none", 0.0)
    assert (found["sung"]["epsilon"], found["sung"]["epsilon_given_words"]) == ("none", 3.0)
    assert found["sung"]["invariants"] == [f"recognized_words@{DIGEST}"]
    assert found["pure"]["invariants"] == ["length"] and "epsilon_given_words" not in found["pure"]
    passing = summaries["sung"]["promise"]["passing"]
    assert passing.startswith(f"{CONDITION}, at most 1.04 bit of the rest") and "words 0 bit" in passing


def test_the_metric_has_a_name_of_its_own(root: Path) -> None:
    flat = {name: read_json(root / f"metrics/{name}.metrics.json") for name in SYSTEMS}
    epsilons = {
        name: {key: value for key, value in flat[name].items() if key.startswith("privacy/epsilon_")}
        for name in SYSTEMS
    }
    assert epsilons["spoken"] == {"privacy/epsilon_given_words": 0.0}
    assert epsilons["sung"] == {"privacy/epsilon_given_words": 3.0, "privacy/epsilon_contour": 3.0}
    assert "privacy/epsilon_utterance" in epsilons["pure"]
    assert "privacy/epsilon_given_words" not in epsilons["pure"]


def test_the_terminal_and_the_page_say_none(summaries: dict[str, Summary]) -> None:
    everyone = list(summaries.values())
    lines = results_table(everyone).splitlines()
    (header,) = [line for line in lines if "content, per vector" in line]
    assert header.endswith(f"utterance, {CONDITION}")
    rows = {line.split()[0]: re.split("  +", line.strip()) for line in lines[2:8] if line.strip()}
    assert rows["spoken"][1:] == ["-", "-", "none", "-", "0"]
    assert rows["sung"][1:] == ["-", "-", "none", "-", "3"]
    assert rows["pure"][-1] == rows["pure"][-3] and rows["gauss"][-1] == "none (zCDP)"
    page = promise_table(everyone)
    assert f"<small>{CONDITION}</small>" in page and "contour: 3 per utterance" in page
    for without in (results_table(everyone[:2]), promise_table(everyone[:2])):
        assert CONDITION not in without


def test_sentences_say_what_it_means(summaries: dict[str, Summary]) -> None:
    spoken, sung = plain_promise(summaries["spoken"]), plain_promise(summaries["sung"])
    assert spoken.startswith(f"{CONDITION.capitalize()}: two utterances with equal recognized words")
    assert "at most exp(3)" in sung and "nothing is promised" in sung and "vacuous" not in sung
    utterance = summaries["sung"]["promise"]["utterance"]
    assert (pure_text(utterance), given_text(utterance)) == ("none", "3")
    # A summary that does not say what holds given the words promises nothing.
    assert given_text({"epsilon": "none", "invariants": utterance["invariants"]}) == "∞"


def test_mlflow_gets_the_condition(root: Path, summaries: dict[str, Summary]) -> None:
    plan = system_plan(root / "outputs/evaluate/sung", summaries["sung"], "key", "results")
    assert plan.params["epsilon.utterance"].startswith("none (")
    assert plan.params["epsilon.given_words"].startswith("3 (")
    assert plan.params["epsilon.given_words"].endswith(f"given recognized_words@{DIGEST})")
    assert plan.metrics["privacy/epsilon_given_words"] == 3.0
    reasons = {name: text for name, text in plan.tags.items() if "epsilon_" in name}
    assert set(reasons) == {
        "voxveil.undefined.privacy/epsilon_words",
        "voxveil.undefined.privacy/epsilon_utterance",
    }
    assert all(CONDITION in text for text in reasons.values())
    table = describe_run(list(summaries.values())).splitlines()
    assert len({row.count("|") for row in table if row.startswith("|")}) == 1
    assert any(row.startswith("| sung | none | - | 3 |") for row in table)
    assert f"0 per utterance {CONDITION}" in describe_system(summaries["spoken"])


def test_a_comparison_holds_no_conditional_epsilon_against_another(summaries: dict[str, Summary]) -> None:
    def results(*names: str) -> list[RunResults]:
        return [RunResults(name, "here", (summaries[name],)) for name in names]

    compared = compare_runs(results("pure", "sung"))
    rows = {row["metric"]: row for row in compared["blocks"][0]["rows"]}
    assert rows["epsilon_utterance"]["values"][1] is None
    assert rows["epsilon_given_words"]["values"][0] is None
    assert rows["epsilon_given_words"]["differences"][0]["verdict"] == "not judged"
    assert "epsilon_words" not in rows and rows["epsilon_contour"]["values"][1]["value"] == 3.0
    for text in (comparison_text(compared), comparison_markdown(compared)):
        assert f"none; {CONDITION}: 3" in text
    rows = {row["metric"]: row for row in compare_runs(results("spoken", "sung"))["blocks"][0]["rows"]}
    assert rows["epsilon_given_words"]["differences"][0]["meaning"] == "worse"


def test_the_gate_knows_the_condition(summaries: dict[str, Summary]) -> None:
    found = read_evidence(summaries["sung"]).promises["whole utterance"]
    assert found == Promised(3.0, "utterance", invariants=frozenset({f"recognized_words@{DIGEST}"}))


def test_an_attack_is_not_held_against_a_conditional_promise(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = root / "outputs/score/sung/ecapa/semi_informed"
    words = ["--trials", str(folder / "trials.txt"), "--scores", str(folder / "scores.txt")]
    assert main(["audit", "attack", *words, "--ledger", str(root / "outputs/anonymize/sung/released")]) == 2
    assert f"was released {CONDITION}" in capsys.readouterr().err
