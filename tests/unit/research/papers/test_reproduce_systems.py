"""Items made of a finished chain and of given score files: every number is its file's, nothing is guessed."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import betabinom

from made_outputs import SYSTEMS, evaluate, make_outputs
from made_pages import Reader, numbers
from voxveil.cli import repro
from voxveil.cli.main import main
from voxveil.metrics.suite import SuiteOptions, evaluate_scores
from voxveil.research.papers.attacks import pav_ceiling
from voxveil.research.papers.score_folders import find_score_files
from voxveil.research.papers.simulation import INPUTS, REFERENCES, TYPICAL, drawn_histogram, true_gamma
from voxveil.results.report.published import VPC2024
from voxveil.results.report.results import results_digest
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import file_sha256, finish

MARK = "zqx"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose systems were attacked by ECAPA and by both histograms."""
    root = tmp_path_factory.mktemp("chain")
    make_outputs(root, mark=MARK)
    for system in SYSTEMS:
        score = root / "outputs/score" / system
        scenario = "semi_informed" if system == "original" else "ignorant"
        for kind in ("ecapa", "f0_histogram", "phone_histogram"):
            target = score / kind / scenario
            if not target.is_dir():
                shutil.copytree(score / "ecapa/semi_informed", target)
                conditions = read_json(target / "conditions.json")
                named = {"attacker": kind, "scenario": scenario, "training": "original"}
                write_json(target / "conditions.json", {**conditions, **named})
        finish(score, "score", system)
        evaluate(root, system)
    return root


def reproduce(name: str, out: Path, *arguments: str) -> dict[str, dict]:
    assert main(["reproduce", name, "--out", str(out), *arguments]) == 0
    return numbers(out)


def one_line(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(["reproduce", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("voxveil: error: ")
    return error


def test_table_3_holds_the_evaluated_numbers_and_the_published(chain: Path, tmp_path: Path) -> None:
    found = reproduce("wcd-table3", tmp_path / "out", "--project", str(chain))
    digest = results_digest(chain / "outputs/evaluate", SYSTEMS)
    for system in SYSTEMS:
        path = chain / "outputs/evaluate" / system / "ecapa-semi_informed.json"
        metrics = read_json(path)["metrics"]
        scenario = "original" if system == "original" else "semi_informed"
        for metric in ("eer", "eps_max_pav", "eps_max_gauss", "eps_max_t", "eps_max_rank"):
            number = found[f"{system}/ecapa/{scenario}/{metric}"]
            assert number["value"] == metrics[metric]["value"]
            assert number["interval95"] == metrics[metric]["ci95"]
            assert number["null95"] == metrics[metric]["null95"]
            assert chain / number["source"]["place"] == path
            assert number["source"]["sha256"] == file_sha256(path)
            assert digest in number["source"]["run"]
            assert f"'{system}'" in number["source"]["run"]
    for system in VPC2024:
        assert found[f"published {system.name}/eps_max_t"]["value"] == system.t
    assert found["published B3/eer"]["value"] == 27.78
    assert found["published T8-5/eps_max_rank"]["value"] == 8.95


def test_given_scores_are_judged_as_evaluate_does(chain: Path, tmp_path: Path) -> None:
    shutil.copytree(chain / "outputs/score/anon/ecapa/semi_informed", tmp_path / "scores/B3")
    (tmp_path / "scores/T8-5").mkdir()
    shutil.copy(chain / "outputs/score/anon_dp/ecapa/semi_informed/rank.npz", tmp_path / "scores/T8-5")
    arguments = ("--project", str(chain), "--scores", str(tmp_path / "scores"), "--replicates", "10")
    found = reproduce("wcd-table3", tmp_path / "out", *arguments)
    for system in ("B3", "T8-5"):
        given = find_score_files(tmp_path / "scores" / system).read()
        right = evaluate_scores(given.scores, given.ranks, options=SuiteOptions(replicates=10))["metrics"]
        for metric in ("eer", "eps_max_pav", "eps_max_rank"):
            number = found[f"{system}/external/given/{metric}"]
            assert number["value"] == right[metric]["value"]
            assert number["interval95"] == right[metric]["ci95"]
    number = found["B3/external/given/eer"]
    assert number["source"]["place"] == "B3/scores.txt (of --scores)"
    assert number["source"]["sha256"] == file_sha256(tmp_path / "scores/B3/scores.txt")
    ours = found["anon/ecapa/semi_informed/eer"]
    assert number["value"] == ours["value"]
    assert str(tmp_path) not in (tmp_path / "out/results.json").read_text()


@pytest.mark.parametrize("name", ["wcd-table3", "wcd-fig3", "srd-table"])
def test_pages_need_nothing_else_and_name_nobody(name: str, chain: Path, tmp_path: Path) -> None:
    reproduce(name, tmp_path / "out", "--project", str(chain))
    text = (tmp_path / "out/index.html").read_text()
    page = Reader(text)
    for _, attrs in page.tags:
        for key in ("src", "srcset", "href"):
            assert attrs.get(key, "data:").startswith("data:")
    numbers_text = (tmp_path / "out/results.json").read_text()
    for private in (MARK, str(tmp_path), str(chain)):
        assert private not in text + numbers_text
    words = " ".join(page.text)
    assert "say nothing about real voices" in words
    assert words.count("SHA-256 ") >= 2
    assert len(list((tmp_path / "out/figures").glob("*.png"))) == text.count('src="data:image/png')


def test_figure_3_is_of_the_system_asked_for(chain: Path, tmp_path: Path) -> None:
    found = reproduce("wcd-fig3", tmp_path / "out", "--project", str(chain), "--system", "anon")
    right = read_json(chain / "outputs/evaluate/anon/ecapa-semi_informed.json")["metrics"]
    assert found["anon/ecapa/semi_informed/eer"]["value"] == right["eer"]["value"]
    assert found["published/eps_max_pav"]["interval95"] == [1.56, 5.11]
    sources = [each["source"]["place"] for each in found.values()]
    assert not any("anon_dp" in place for place in sources)
    drawn = read_json(tmp_path / "out/results.json")["figures"][0]["sources"]
    assert drawn[1]["sha256"] == file_sha256(chain / "outputs/score/anon/ecapa/semi_informed/scores.txt")


def test_ranks_are_those_of_the_matrix(chain: Path, tmp_path: Path) -> None:
    found = reproduce("srd-fig4", tmp_path / "out", "--project", str(chain))
    with np.load(chain / "outputs/score/anon/ecapa/semi_informed/rank.npz", allow_pickle=False) as arrays:
        scores, labels = arrays["scores"], arrays["input_labels"]
        columns = arrays["reference_labels"].tolist()
    own = [columns.index(label) for label in labels.tolist()]
    ranks = [1 + int((row > row[at]).sum()) for row, at in zip(scores, own, strict=True)]
    share = ranks.count(1) / len(ranks)
    assert found["anon/ecapa/semi_informed/identification_rate"]["value"] == pytest.approx(100 * share)
    assert found["anon/ecapa/semi_informed/rank 1"]["value"] == pytest.approx(math.log2(len(columns) * share))
    counts = [ranks.count(k + 1) / len(ranks) for k in range(len(columns))]
    mean = sum(p * math.log2(p * len(columns)) for p in counts if p)
    assert found["anon/ecapa/semi_informed/rank_mean"]["value"] == pytest.approx(mean)
    assert found["published T10-2/identification_rate"]["value"] == 69.37
    assert found["published T10-2/rank 1"]["value"] == pytest.approx(math.log2(40 * 0.6937))
    assert not any(name.startswith("anon/ecapa/ignorant") for name in found)


def test_representations_are_the_histograms_and_embeddings_the_rest(chain: Path, tmp_path: Path) -> None:
    third = reproduce("srd-fig3", tmp_path / "3", "--project", str(chain))
    second = reproduce("srd-fig2", tmp_path / "2", "--project", str(chain))
    kinds = [{name.split("/")[1] for name in found} for found in (third, second)]
    assert kinds == [{"f0_histogram", "phone_histogram"}, {"ecapa"}]
    assert {name.split("/")[2] for name in second} == {"original", "ignorant"}
    names = {path.stem for path in (tmp_path / "3/figures").iterdir()}
    assert names == {"ranks-f0_histogram", "ranks-phone_histogram"}


def test_missing_attackers_name_the_knob(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_outputs(tmp_path / "plain", {"anon": SYSTEMS["anon"]})
    evaluate(tmp_path / "plain", "anon")
    said = one_line(capsys, "srd-fig3", "--out", str(tmp_path / "o"), "--project", str(tmp_path / "plain"))
    assert "no attacker f0_histogram and no phone_histogram" in said
    assert "voxveil params use attack-mini" in said
    assert not (tmp_path / "o").exists()


def test_a_missing_or_changed_input_gives_one_line_and_no_output(
    chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    empty = one_line(capsys, "wcd-table3", "--out", str(out), "--project", str(tmp_path))
    assert "params.yaml: no such params file" in empty
    project = tmp_path / "project"
    shutil.copytree(chain, project)
    arguments = ("srd-table", "--out", str(out), "--project", str(project))
    summary = project / "outputs/evaluate/anon/summary.json"
    whole = summary.read_text()
    summary.write_text(whole.replace("anon", "other"))
    assert "summary.json changed after its stage finished" in one_line(capsys, *arguments)
    summary.write_text(whole)
    params = project / "params.yaml"
    params.write_text(params.read_text().replace("scale: made", "scale: systems-mini"))
    assert "is of scale made, params.yaml of systems-mini" in one_line(capsys, *arguments)
    params.write_text(params.read_text().replace("scale: systems-mini", "scale: made"))
    shutil.rmtree(project / "outputs/evaluate/anon_dp")
    said = one_line(capsys, *arguments, "--size", "full")
    assert "outputs/evaluate/anon_dp does not exist" in said
    assert "made by DVC: voxveil params use librispeech --set prepare.source=CORPUS && dvc repro" in said
    assert "by Kubeflow: " in said
    assert "voxveil pipeline submit --params params.yaml" in said
    assert said.endswith("voxveil pipeline fetch RUN --project DIR\n")
    assert not out.exists()
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize(
    ("break_it", "says"),
    [
        (lambda folder: shutil.rmtree(folder / "B3"), "holds no folder; each system has one"),
        (lambda folder: (folder / "B3/trials.txt").unlink(), "B3: scores.txt without trials.txt"),
        (
            lambda folder: (folder / "B3/scores.txt").write_text("a b nan\n"),
            "scores.txt:1: score of a b is nan",
        ),
        (lambda folder: (folder / "C").mkdir(), "C: needs scores.txt and trials.txt (or .gz), or one .npz"),
        (lambda folder: shutil.rmtree(folder), "no such folder"),
    ],
)
def test_broken_scores_give_one_line_and_keep_the_old_page(
    break_it, says: str, chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(chain / "outputs/score/anon/ecapa/semi_informed", tmp_path / "scores/B3")
    out = tmp_path / "out"
    reproduce("wcd-table2", out)
    page = (out / "index.html").read_bytes()
    break_it(tmp_path / "scores")
    arguments = ("--out", str(out), "--project", str(chain), "--scores", str(tmp_path / "scores"))
    assert says in one_line(capsys, "wcd-table3", *arguments)
    assert (out / "index.html").read_bytes() == page
    assert not list(tmp_path.glob(".*"))


def test_score_files_need_no_chain_unless_one_was_begun(
    chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(chain / "outputs/score/anon/ecapa/semi_informed", tmp_path / "scores/B3")
    project = tmp_path / "project"
    project.mkdir()
    arguments = ("--project", str(project), "--scores", str(tmp_path / "scores"), "--replicates", "0")
    right = read_json(chain / "outputs/evaluate/anon/ecapa-semi_informed.json")["metrics"]
    for item, metric in (("wcd-table3", "eps_max_t"), ("wcd-fig3", "eer"), ("srd-table", "rank_mean_bb")):
        found = reproduce(item, tmp_path / item, *arguments)
        assert found[f"B3/external/given/{metric}"]["value"] == right[metric]["value"]
    warned = read_json(tmp_path / "wcd-table3/results.json")["warnings"]
    assert warned == [
        "No system of this project was evaluated: only the given and the published systems are shown."
    ]
    said = one_line(capsys, "wcd-fig3", "--out", str(tmp_path / "o"), *arguments, "--system", "B9")
    assert "--system B9: no such system" in said
    assert said.rstrip().endswith("B3")
    (project / "outputs/evaluate").mkdir(parents=True)
    assert "made by DVC" in one_line(capsys, "srd-table", "--out", str(tmp_path / "o"), *arguments)


def test_warnings_of_the_evaluation_stand_on_the_page(chain: Path, tmp_path: Path) -> None:
    reproduce("wcd-table3", tmp_path / "out", "--project", str(chain))
    warned = read_json(chain / "outputs/evaluate/anon/summary.json")["attacks"]
    texts = [w["text"] for a in warned if a["scenario"] == "semi_informed" for w in a["warnings"]]
    assert texts
    words = " ".join(Reader((tmp_path / "out/index.html").read_text()).text)
    assert all(text in words for text in texts)


def test_a_folder_with_other_things_is_not_replaced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("mine\n")
    for out in (tmp_path, tmp_path / "thesis.txt"):
        assert "holds other things than a page" in one_line(capsys, "wcd-table2", "--out", str(out))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    assert (tmp_path / "thesis.txt").read_text() == "mine\n"


def test_a_private_corpus_is_said_to_be_one(tmp_path: Path) -> None:
    make_outputs(tmp_path, {"anon": SYSTEMS["anon"]}, corpus={"public": False, "name": "ward 7"})
    evaluate(tmp_path, "anon")
    reproduce("wcd-fig3", tmp_path / "out", "--project", str(tmp_path))
    text = (tmp_path / "out/index.html").read_text()
    assert "The corpus is not public." in text
    assert "ward 7" not in text + (tmp_path / "out/results.json").read_text()


def test_ceiling_of_pav_is_that_of_trials_all_told_apart() -> None:
    for targets, nontargets in ((80, 560), (3, 1000), (500, 20)):
        above = math.log((targets + 1) / 1) - math.log(targets / nontargets)
        below = math.log((nontargets + 1) / 1) - math.log(nontargets / targets)
        assert pav_ceiling(targets, nontargets) == pytest.approx(max(above, below), abs=1e-12)


def test_simulated_ranks_follow_what_they_are_drawn_from(tmp_path: Path) -> None:
    found = reproduce("srd-fig1", tmp_path / "out", "--seed", "5")
    gamma = betabinom.pmf(np.arange(REFERENCES), REFERENCES - 1, *TYPICAL)
    assert true_gamma(*TYPICAL) == pytest.approx(gamma, rel=1e-9)
    assert found["typical/identification_rate/exact"]["value"] == pytest.approx(100 * gamma[0])
    assert found["ideal/rank_max/exact"]["value"] == found["ideal/rank_mean/exact"]["value"] == 0
    assert found["ideal/rank_mean"]["value"] > 0
    for case, truth in (("typical", gamma), ("ideal", np.full(REFERENCES, 1 / REFERENCES))):
        drawn = sum(drawn_histogram(case, seed) for seed in range(50))
        assert drawn.sum() == 50 * INPUTS
        excess = ((drawn - 50 * INPUTS * truth) ** 2 / (50 * INPUTS * truth)).sum()
        # Chi-square of 39 degrees of freedom.
        assert 10 < excess < 90


def test_run_makes_the_overlay_and_keeps_what_was_edited(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project, calls = tmp_path / "project", []
    project.mkdir()
    shutil.copytree(root / "params", project / "params")
    shutil.copy(root / "params.yaml", project)
    monkeypatch.setattr(repro, "reproduce", lambda folder, *targets: calls.append(folder))
    changed = ("--set", "prepare.source=/data/LibriSpeech")
    arguments = ("srd-fig3", "--out", str(tmp_path / "out"), "--project", str(project), "--run", *changed)
    assert "outputs/evaluate/original does not exist" in one_line(capsys, *arguments)
    text = (project / "params.yaml").read_text()
    assert "scale: attack-mini" in text
    assert "kinds: ecapa,xvector_plda,f0_histogram,phone_histogram,prosody" in text
    assert "source: /data/LibriSpeech" in text
    # The same command goes on with it; another one does not overwrite it.
    one_line(capsys, *arguments)
    assert calls == [project, project]
    said = one_line(capsys, "wcd-table3", *arguments[1:])
    assert "params.yaml: was edited" in said
    assert "voxveil params use systems-mini --set prepare.source=/data/LibriSpeech" in said
    assert (project / "params.yaml").read_text() == text
    assert len(calls) == 2


def test_results_list_every_number_with_a_source(chain: Path, tmp_path: Path) -> None:
    reproduce("srd-table", tmp_path / "out", "--project", str(chain))
    found = json.loads((tmp_path / "out/results.json").read_text())
    assert (found["item"], found["format"]) == ("srd-table", 1)
    for number in found["numbers"]:
        kind = number["source"]["kind"]
        assert kind in ("file", "computed", "published")
        assert (kind == "file") == bool(number["source"].get("sha256"))
    shown = [
        cell for table in found["tables"] for row in table["rows"] for cell in row if isinstance(cell, dict)
    ]
    assert {cell["number"] for cell in shown} == {number["name"] for number in found["numbers"]}
