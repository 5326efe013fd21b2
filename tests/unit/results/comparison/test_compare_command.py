"""``voxveil compare`` on folders, files, MLflow runs and DVC experiments."""

from __future__ import annotations

import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.results.comparison.run_results import RunResults
from voxveil.runtime.atomic import read_json, write_json
from voxveil.tracking.find_runs import compare_url
from voxveil.tracking.publish.send import publish
from voxveil.tracking.store import resolve_store


def compared(tmp_path: Path, *arguments: str) -> dict:
    out = tmp_path / "out.json"
    assert main(["compare", *arguments, "--out", str(out)]) == 0
    return read_json(out)


def row(comparison: dict, metric: str, system: str = "") -> dict:
    blocks = [block for block in comparison["blocks"] if not system or system in block["systems"]]
    (found,) = [each for block in blocks for each in block["rows"] if each["metric"] == metric]
    return found


def test_two_checkouts_are_compared_system_by_system(
    first_run: Path, second_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(tmp_path, str(first_run), str(second_run))
    assert [block["systems"][0] for block in found["blocks"]] == ["anon", "anon_dp", "original"]
    eer = row(found, "eer", "anon_dp")
    stored = [
        read_json(run / "outputs/evaluate/anon_dp/summary.json")["attacks"][0]["metrics"]["eer"]
        for run in (first_run, second_run)
    ]
    (difference,) = eer["differences"]
    assert difference["value"] == pytest.approx(stored[1]["value"] - stored[0]["value"])
    assert difference["method"] == "paired"
    assert (difference["verdict"], difference["meaning"]) == ("higher", "better")
    assert row(found, "per", "anon")["differences"][0]["verdict"] == "within noise"
    assert "only intervals" in row(found, "per", "anon")["differences"][0]["unpaired_because"]
    assert row(found, "eer", "anon")["differences"][0]["interval95"] == [0, 0]
    assert not [text for text in found["warnings"] if "different" in text]
    said = capsys.readouterr().out
    assert "epsilon of content, A: 10 per vector (laplace_l1, L1 sensitivity 2)" in said
    assert "attacker: ecapa, semi-informed; enrolment anonymized, trials anonymized" in said
    assert "data revision: 0f0f0f0f" in said


def test_an_infinite_epsilon_is_no_number(first_run: Path, tmp_path: Path, capsys) -> None:
    evaluate = first_run / "outputs/evaluate"
    found = compared(tmp_path, str(evaluate / "anon"), str(evaluate / "anon_dp"))
    for name in ("epsilon_pitch", "epsilon_content", "epsilon_utterance"):
        each = row(found, name)
        assert each["values"][0]["value"] == "inf"
        assert math.isfinite(each["values"][1]["value"])
        assert each["differences"][0] == {
            "value": None, "interval95": None, "method": "exact", "verdict": "lower", "meaning": "better",
            "note": "from or to ∞",
        }  # fmt: skip
    assert "∞" in capsys.readouterr().out
    assert (
        main(["compare", str(evaluate / "anon"), str(evaluate / "anon_dp"), "--out", str(tmp_path / "a.md")])
        == 0
    )
    page = (tmp_path / "a.md").read_text()
    assert "| epsilon_content nat | ∞ | 10 | lower, better (exact; from or to ∞) |" in page
    assert "1.79" not in page
    assert page.endswith("\n")


def test_without_scores_the_difference_is_unpaired_and_says_why(
    first_run: Path, second_run: Path, tmp_path: Path, capsys
) -> None:
    copies = []
    for name, run in (("a", first_run), ("b", second_run)):
        copies.append(tmp_path / name / "report.json")
        copies[-1].parent.mkdir()
        shutil.copy(run / "outputs/report/results.json", copies[-1])
    found = compared(tmp_path, *map(str, copies), "--system", "anon_dp")
    (difference,) = row(found, "eer")["differences"]
    assert difference["method"] == "unpaired"
    assert "private" in difference["unpaired_because"]
    paired = row(compared(tmp_path, str(first_run), str(second_run)), "eer", "anon_dp")["differences"][0]
    width = [d["interval95"][1] - d["interval95"][0] for d in (paired, difference)]
    assert width[0] < width[1]
    assert "Unpaired because the scores of both are needed" in capsys.readouterr().out


def test_a_system_that_only_one_run_has_is_not_compared(
    first_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, part = str(first_run / "outputs/evaluate"), tmp_path / "part"
    shutil.copytree(first_run / "outputs/evaluate/anon_dp", part)
    found = compared(tmp_path, whole, str(part))
    assert [block["systems"] for block in found["blocks"]] == [["anon_dp", "anon_dp"]]
    assert found["warnings"][:2] == [
        f"system {name} is only in {whole}: nothing to compare it with" for name in ("anon", "original")
    ]
    # Two against one that neither holds: nothing at all could be compared.
    (tmp_path / "two").mkdir()
    for name in ("anon", "original"):
        shutil.copytree(first_run / "outputs/evaluate" / name, tmp_path / "two" / name)
    capsys.readouterr()
    assert main(["compare", str(tmp_path / "two"), str(part)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert (
        f"no system is in two of the runs: {tmp_path / 'two'} has anon, original; {part} has anon_dp" in line
    )


def test_scores_of_another_run_are_not_used(first_run: Path, second_run: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed"
    shutil.copytree(first_run / "outputs/evaluate", mixed / "outputs/evaluate")
    shutil.copytree(second_run / "outputs/score", mixed / "outputs/score")
    found = compared(tmp_path, str(second_run), str(mixed), "--system", "anon_dp")
    (difference,) = row(found, "eer")["differences"]
    assert difference["unpaired_because"] == "the scores beside the results are of another run"


def test_other_data_and_other_attackers_are_warned_of(
    first_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = read_json(first_run / "outputs/evaluate/anon_dp/summary.json")
    summary["corpus"]["revision"] = "ab" * 32
    summary["attacks"][0].update(attacker="xvector", training="original")
    write_json(tmp_path / "other.json", summary)
    found = compared(tmp_path, str(first_run / "outputs/evaluate/anon_dp"), str(tmp_path / "other.json"))
    assert any("different data revisions" in text for text in found["warnings"])
    (who,) = [text for text in found["warnings"] if text.startswith("different attackers")]
    assert "ecapa" in who
    assert "xvector" in who
    assert "WARNING: different data revisions" in capsys.readouterr().out
    assert row(found, "eer")["differences"][0]["method"] == "unpaired"


def test_several_attackers_are_told_apart(first_run: Path, tmp_path: Path, capsys) -> None:
    summary = read_json(first_run / "outputs/evaluate/anon_dp/summary.json")
    weaker = {**summary["attacks"][0], "scenario": "ignorant", "training": "original"}
    write_json(tmp_path / "both.json", {**summary, "attacks": [*summary["attacks"], weaker]})
    one, both = str(first_run / "outputs/evaluate/anon_dp"), str(tmp_path / "both.json")
    found = compared(tmp_path, both, both)
    rows = [row for row in found["blocks"][0]["rows"] if row["metric"] == "eer"]
    assert [row["attack"].split(";")[0] for row in rows] == ["ecapa, semi-informed", "ecapa, ignorant"]
    said = capsys.readouterr().out
    assert "attacker [2]: ecapa, ignorant" in said
    assert "eer % [2]" in said
    found = compared(tmp_path, both, one)
    assert any(
        text.startswith("not every run was attacked by: ecapa, ignorant") for text in found["warnings"]
    )


def test_a_result_of_voxveil_evaluate_is_a_run(first_run: Path, tmp_path: Path) -> None:
    scores = first_run / "outputs/score/anon/ecapa/semi_informed"
    result = tmp_path / "theirs.json"
    options = ["--scores", f"{scores}/scores.txt", "--trials", f"{scores}/trials.txt", "--replicates", "20"]
    assert main(["evaluate", *options, "--json", str(result)]) == 0
    found = compared(tmp_path, str(first_run / "outputs/evaluate/anon"), str(result))
    assert row(found, "eer")["values"][1]["value"] == pytest.approx(row(found, "eer")["values"][0]["value"])
    assert row(found, "epsilon_pitch")["values"] == [{"value": "inf", "ci95": None, "null95": None}, None]
    assert any("data revision is not stated" in text for text in found["warnings"])


def test_three_runs_are_held_to_the_first(first_run: Path, second_run: Path, tmp_path: Path) -> None:
    found = compared(tmp_path, str(first_run), str(second_run), str(first_run), "--system", "anon_dp")
    differences = row(found, "rank_mean")["differences"]
    assert len(differences) == 2
    assert differences[1]["interval95"] == [0, 0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{run}"], "1 run given; a comparison needs at least 2"),
        (["{run}", "no-such-run"], "no-such-run: no such file or folder and no DVC experiment"),
        (["{run}", "{empty}"], "no results in it"),
        (["{run}", "{run}", "--system", "anon_x"], "has no system anon_x; it has anon, anon_dp, original"),
        (["{run}", "{run}", "--out", "x.csv"], "must end in .md or .json"),
    ],
)
def test_a_wrong_argument_is_one_line(
    first_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    given = [text.format(run=first_run, empty=tmp_path / "empty") for text in arguments]
    assert main(["compare", *given]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
    assert not (tmp_path / "mlflow.db").exists()


def test_a_changed_result_is_refused(first_run: Path, tmp_path: Path, capsys) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(first_run / "outputs/evaluate/anon", copy)
    text = (copy / "summary.json").read_text().replace('"trial": "anonymized"', '"trial": "original"')
    (copy / "summary.json").write_text(text)
    assert main(["compare", str(first_run), str(copy)]) == 2
    assert "changed after its stage finished" in capsys.readouterr().err


def test_mlflow_runs_by_id_and_by_name(
    first_run: Path, second_run: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    store = resolve_store({"DVC_ROOT": str(tmp_path)})
    ids = [
        publish(run / "outputs/evaluate", run / "outputs/report", experiment=name, store=store)
        for name, run in (("rough-dusk", first_run), ("calm-dawn", second_run))
    ]
    by_id = compared(tmp_path, *ids, "--tracking-uri", store.uri)
    by_name = compared(tmp_path, "rough-dusk", "calm-dawn", "--tracking-uri", store.uri)
    files = compared(tmp_path, str(first_run), str(second_run))
    assert by_id == by_name
    assert [run["label"] for run in by_id["runs"]] == ["rough-dusk", "calm-dawn"]
    assert [row(by_id, "eer", "anon_dp")["values"]] == [row(files, "eer", "anon_dp")["values"]]
    assert row(by_id, "eer", "anon_dp")["differences"][0]["method"] == "unpaired"
    again = publish(
        second_run / "outputs/evaluate", second_run / "outputs/report", experiment="rough-dusk", store=store
    )
    newest = compared(tmp_path, "rough-dusk", "calm-dawn", "--tracking-uri", store.uri)
    assert newest["runs"][0]["run_id"] == again
    capsys.readouterr()
    assert main(["compare", "anon", "calm-dawn", "--tracking-uri", store.uri]) == 2
    assert "3 runs have this name; give one by its id" in capsys.readouterr().err
    assert main(["compare", "f" * 32, ids[0], "--tracking-uri", store.uri]) == 2
    assert f"run {'f' * 32}: does not exist at sqlite" in capsys.readouterr().err


def test_a_dvc_experiment_comes_out_of_the_cache_with_its_scores(
    first_run: Path, second_run: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    pytest.importorskip("dvc", reason="dvc is not installed")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    monkeypatch.setenv("DVC_ROOT", str(checkout))
    monkeypatch.setenv("DVC_NO_ANALYTICS", "1")
    monkeypatch.chdir(checkout)
    dvc = str(Path(sys.executable).with_name("dvc"))

    def run(*command: str) -> None:
        subprocess.run(command, check=True, capture_output=True)

    def git(*command: str) -> None:
        run("git", "-c", "user.name=a", "-c", "user.email=a@example.org", *command)

    git("init", "-q", "-b", "main")
    run(dvc, "init", "-q")
    (checkout / "outputs").mkdir()
    (checkout / ".gitignore").write_text("/outputs\n")
    for name, source in (("before", first_run), ("after", second_run)):
        for output in ("evaluate", "score"):
            shutil.copytree(source / "outputs" / output, checkout / "outputs" / output, dirs_exist_ok=True)
        (checkout / "dvc.yaml").write_text(
            "stages:\n  make:\n    cmd: 'true'\n    outs: [outputs/evaluate, outputs/score]\n"
        )
        run(dvc, "commit", "-f", "-q")
        git("add", "-A")
        git("commit", "-qm", name)
        git("tag", name)
    git("rm", "-q", "--cached", "dvc.lock")
    git("commit", "-qm", "a result that was never committed")
    git("tag", "bare")
    shutil.rmtree(checkout / "outputs")
    found = compared(tmp_path, "before", "after", "--system", "anon_dp")
    assert row(found, "eer")["differences"][0]["method"] == "paired"
    assert found["runs"][0]["origin"].startswith("DVC before (")
    capsys.readouterr()
    assert main(["compare", "bare", "after"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "bare: its commit holds no dvc.lock" in line
    assert not (checkout / "outputs").exists()


def test_the_address_of_the_comparison_page() -> None:
    store = resolve_store({"MLFLOW_TRACKING_URI": "https://ann:s3cret@mlflow.example.org/"})
    runs = [RunResults(x, "", (), None, x * 32, "1") for x in "ab"]
    address = compare_url(store, runs)
    assert address.startswith("https://mlflow.example.org/#/compare-runs?runs=")
    assert "s3cret" not in address
    assert compare_url(store, [runs[0], RunResults("files", "", ())]) == ""
