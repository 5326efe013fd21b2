"""Stage report: files first, MLflow after."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.done import finish
from voxveil.runtime.errors import IncompleteInputError, MissingExtraError, PrivacyError
from voxveil.stages.run import run_stage


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("made")
    make_outputs(root)
    for name in SYSTEMS:
        evaluate(root, name)
    return root


def report(root: Path, out: Path) -> Path:
    outputs = root / "outputs"
    run_stage(
        "report",
        root / "params.yaml",
        {"metrics": outputs / "evaluate", "samples": outputs / "samples"},
        {"report": out},
    )
    return out


def listened(root: Path) -> list[str]:
    """Return the public utterances that can be listened to."""
    samples = read_json(root / "outputs/samples/original/samples.json")["utterances"]
    assert samples
    return sorted(row["utterance"] for row in samples)


def test_it_writes_page_figures_and_results(root: Path, tmp_path: Path) -> None:
    out = report(root, tmp_path / "report")
    assert sorted(read_json(out / "_DONE.json")["files"]) == [
        "figures/privacy_utility.png",
        "figures/rank_histogram.png",
        *(f"figures/spectrogram-{utterance}.png" for utterance in listened(root)),
        "index.html",
        "params.json",
        "results.json",
    ]
    results = read_json(out / "results.json")
    assert [system["system"] for system in results["systems"]] == list(SYSTEMS)
    assert results["corpus"]["synthetic"] is True
    assert (out / "index.html").read_text().startswith("<!DOCTYPE html>")
    again = report(root, tmp_path / "again")
    assert read_json(again / "_DONE.json")["digest"] == read_json(out / "_DONE.json")["digest"]


def test_switched_off_it_loads_no_mlflow(root: Path, tmp_path: Path) -> None:
    loaded = set(sys.modules)
    report(root, tmp_path / "report")
    assert "mlflow" not in set(sys.modules) - loaded
    assert not list(tmp_path.rglob("mlflow.db"))


def test_a_store_that_refuses_does_not_fail_it(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VOXVEIL_TRACKING", "on")
    monkeypatch.setitem(sys.modules, "mlflow.tracking", None)
    out = report(root, tmp_path / "report")
    assert (out / "index.html").is_file()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("voxveil: warning: results are in the report only")
    assert "mlflow is not installed" in line


def test_without_matplotlib_it_names_the_extra(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("voxveil.results.report.figures")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"voxveil\[plots\]"):
        report(root, tmp_path / "report")
    assert not (tmp_path / "report").exists()


def test_a_system_that_was_not_evaluated_is_named(root: Path, tmp_path: Path) -> None:
    make_outputs(tmp_path / "half")
    evaluate(tmp_path / "half", "anon")
    with pytest.raises(IncompleteInputError, match=r"metrics: .*evaluate/anon_dp does not exist"):
        report(tmp_path / "half", tmp_path / "report")


def test_private_speech_among_the_samples_stops_it(tmp_path: Path) -> None:
    make_outputs(tmp_path)
    for name in SYSTEMS:
        evaluate(tmp_path, name)
    folder = tmp_path / "outputs/samples/anon"
    content = read_json(folder / "samples.json")
    content["corpus"]["public"] = False
    write_json(folder / "samples.json", content)
    (folder / "_DONE.json").unlink()
    finish(folder, "anonymize", "anon")
    with pytest.raises(PrivacyError, match="not declared public"):
        report(tmp_path, tmp_path / "report")
    assert not (tmp_path / "report").exists()
