"""A system with Gaussian noise in every table: in a column of its own, never among pure epsilons."""

from __future__ import annotations

from pathlib import Path

import pytest

from made_outputs import Made, evaluate, make_outputs
from voxveil.privacy.zcdp import approximate
from voxveil.results.comparison.comparison import compare_runs
from voxveil.results.comparison.render import comparison_markdown, comparison_text
from voxveil.results.comparison.run_results import RunResults
from voxveil.results.report.page_tables import promise_table
from voxveil.results.report.results import Summary, read_summaries
from voxveil.results.report.terminal import results_table
from voxveil.results.wording import concentrated_text, plain_promise, pure_text
from voxveil.runtime.atomic import read_json
from voxveil.tracking.publish.describe import describe_run, describe_system
from voxveil.tracking.publish.plan import system_plan

SYSTEMS = {
    "pure": Made(0.3, pitch=1.0, content=2.0),
    "gauss": Made(0.3, pitch=1.0, rho=0.01),
    "strong": Made(0.3, pitch=1.0, rho=1.0),
    "half": Made(0.3, rho=0.01),
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("zcdp")
    make_outputs(root, SYSTEMS, samples=False)
    for name in SYSTEMS:
        evaluate(root, name)
    return root


@pytest.fixture(scope="module")
def summaries(root: Path) -> dict[str, Summary]:
    return dict(zip(SYSTEMS, read_summaries(root / "outputs/evaluate", SYSTEMS), strict=True))


def test_the_summary_holds_rho_and_what_it_stands_for(summaries: dict[str, Summary]) -> None:
    utterance = summaries["gauss"]["promise"]["utterance"]
    # K runs to 147; the pitch counts half its square.
    assert utterance["rho"] == pytest.approx(0.5 + 0.01 * utterance["vectors"], abs=0.02)
    assert (utterance["measure"], utterance["epsilon"], utterance["delta"]) == ("zcdp", "inf", 1e-6)
    assert utterance["epsilon_delta"] == pytest.approx(approximate(utterance["rho"]))
    assert summaries["gauss"]["promise"]["streams"]["content"]["rho"] == 0.01
    assert not {"measure", "rho"} & set(summaries["pure"]["promise"]["utterance"])
    # Without noise on the pitch nothing holds, whatever the content has.
    half = summaries["half"]["promise"]["utterance"]
    assert half["epsilon"] == "inf" and "rho" not in half


def test_the_metrics_have_names_of_their_own(root: Path) -> None:
    flat = {name: read_json(root / f"metrics/{name}.metrics.json") for name in SYSTEMS}
    assert "privacy/rho_content" not in flat["pure"] and flat["pure"]["privacy/epsilon_content"] == 2.0
    assert flat["gauss"]["privacy/rho_content"] == 0.01 and "privacy/epsilon_content" not in flat["gauss"]
    assert {"privacy/rho_utterance", "privacy/epsilon_delta_utterance"} <= set(flat["gauss"])
    assert "privacy/epsilon_utterance" not in flat["gauss"] and flat["gauss"]["privacy/epsilon_pitch"] == 1.0
    assert "privacy/epsilon_delta_utterance" not in flat["half"]


def test_the_terminal_and_the_page_show_it_beside_the_pure_column(summaries: dict[str, Summary]) -> None:
    everyone = list(summaries.values())
    text = results_table(everyone)
    (row,) = [line for line in text.splitlines() if line.startswith("  gauss ")][:1]
    assert "none (zCDP)" in row and "at δ = 1e-06 (ρ = 1.9" in row
    assert "∞" not in row
    (half,) = [line for line in text.splitlines() if line.startswith("  half ")][:1]
    assert "∞" in half and "at δ" not in half
    page = promise_table(everyone)
    assert "zCDP in a column of its own" in page and "no ε; zCDP ρ = 0.01 per vector (gaussian_l2, L2" in page
    for only_pure in (results_table(everyone[:1]), promise_table(everyone[:1])):
        assert "zCDP" not in only_pure


def test_words_say_what_it_means(summaries: dict[str, Summary]) -> None:
    weak, strong = plain_promise(summaries["gauss"]), plain_promise(summaries["strong"])
    assert weak.startswith("Gaussian noise: no pure ε holds.") and "plus 1e-06." in weak
    assert "vacuous" not in weak and "vacuous" in strong
    assert plain_promise(summaries["half"]).startswith("No promise: pitch passes without noise")
    assert pure_text(summaries["gauss"]["promise"]["utterance"]) == "none (zCDP)"
    assert concentrated_text(summaries["pure"]["promise"]["utterance"]) == "-"


def test_mlflow_gets_no_infinite_number_and_no_wrong_reason(
    root: Path, summaries: dict[str, Summary]
) -> None:
    plan = system_plan(root / "outputs/evaluate/gauss", summaries["gauss"], "key", "results")
    assert plan.params["epsilon.utterance"] == "none (zCDP)"
    assert "ρ = 1.9" in plan.params["zcdp.utterance"]
    reasons = {name: text for name, text in plan.tags.items() if "epsilon_" in name}
    assert reasons and all("no pure epsilon holds" in text for text in reasons.values())
    table = describe_run(list(summaries.values())).splitlines()
    assert len({row.count("|") for row in table if row.startswith("|")}) == 1
    assert "zCDP ρ = 0.01 per vector" in describe_system(summaries["gauss"])


def test_a_comparison_holds_no_rho_against_an_epsilon(summaries: dict[str, Summary]) -> None:
    def results(*names: str) -> list[RunResults]:
        return [RunResults(name, "here", (summaries[name],)) for name in names]

    (block,) = compare_runs(results("pure", "gauss"))["blocks"]
    rows = {row["metric"]: row for row in block["rows"] if row["metric"].startswith("epsilon_")}
    assert rows["epsilon_content"]["values"][1] is None
    assert rows["epsilon_utterance"]["differences"][0]["verdict"] == "not judged"
    assert rows["epsilon_delta_utterance"]["values"][0] is None
    assert rows["epsilon_delta_utterance"]["unit"] == "nat at δ = 1e-06"
    compared = compare_runs(results("gauss", "strong"))
    rows = {row["metric"]: row for row in compared["blocks"][0]["rows"]}
    assert rows["epsilon_delta_utterance"]["differences"][0]["meaning"] == "worse"
    for text in (comparison_text(compared), comparison_markdown(compared)):
        assert "none; zCDP:" in text and "∞ nat" not in text
