"""``voxveil evaluate`` and ``voxveil figures`` end to end, and faults of metrics reported in public."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from metric_reference import arrays

from voxveil.cli.main import main


@pytest.fixture
def rank_file(tmp_path):
    path = tmp_path / "rank40.npz"
    np.savez(path, **arrays("rank40"))
    return path


def test_everything_written(rank_file, tmp_path, capsys):
    out, figures, speakers = tmp_path / "r.json", tmp_path / "figures", tmp_path / "speakers.tsv"
    options = ["--replicates", "20", "--json", str(out), "--plots", str(figures), "--speakers", str(speakers)]
    assert main(["evaluate", "--scores", str(rank_file), *options]) == 0
    printed = capsys.readouterr().out
    assert "if nothing leaks" in printed and "most exposed speakers" in printed and "closest" not in printed
    assert json.loads(out.read_text())["metrics"]["eer"]["value"] == pytest.approx(18.98, abs=0.01)
    assert sorted(p.name for p in figures.iterdir()) == [
        f"{name}.png" for name in ("det", "ece", "population", "ranks", "scores", "speakers")
    ]
    assert speakers.read_text().count("\n") == 41
    first = out.read_bytes()
    assert main(["evaluate", "--scores", str(rank_file), *options[:4]]) == 0
    assert out.read_bytes() == first


@pytest.mark.parametrize(("kind", "name"), [("png", "pav"), ("svg", "same-mean"), ("pdf", "same-mean")])
def test_figures_are_the_same_file_twice(kind, name, tmp_path):
    for folder in ("a", "b"):
        assert main(["figures", name, "--out", str(tmp_path / folder), "--format", kind]) == 0
    one, two = (tmp_path / folder / f"{name}.{kind}" for folder in ("a", "b"))
    assert one.read_bytes() == two.read_bytes() and one.stat().st_size > 2000


def test_figures_of_constant_scores(tmp_path):
    """Nothing to fit, one PAV bin, no range: still figures."""
    path = tmp_path / "constant.npz"
    np.savez(path, **arrays("constant"))
    assert main(["figures", "scores", "det", "ece", "--scores", str(path), "--out", str(tmp_path / "f")]) == 0
    assert len(list((tmp_path / "f").iterdir())) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["figures", "det", "--out", "f"], "--scores"),
        (["figures", "ranks", "--scores", "SEPARATED", "--out", "f"], "needs ranks"),
        (["evaluate", "--scores", "SEPARATED", "--speakers", "f"], "needs ranks"),
        (
            ["evaluate", "--scores", "SEPARATED", "--replicates", "-1"],
            "--replicates must be 0 or more, got -1",
        ),
        (["evaluate", "--scores", "absent.npz"], "absent.npz: no such file"),
    ],
)
def test_refusals(arguments, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("separated.npz", **arrays("separated"))
    assert main([a.replace("SEPARATED", "separated.npz") for a in arguments]) == 2
    assert words in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["separated.npz"]


def test_needs_no_extra(rank_file):
    """The command runs without torch, matplotlib and mlflow ever being imported."""
    code = (
        "import sys; from voxveil.cli.main import main; "
        f"assert main(['evaluate', '--scores', {str(rank_file)!r}, '--replicates', '5']) == 0; "
        "heavy = {'torch', 'matplotlib', 'mlflow', 'speechbrain', 'kfp', 'dvc'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_missing_extra_is_said_before_the_work(rank_file, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["evaluate", "--scores", str(rank_file), "--plots", "figures"]) == 2
    assert "voxveil[plots]" in capsys.readouterr().err


def test_mlflow_twice_is_one_run(tmp_path, monkeypatch, capsys, empty_store):
    mlflow_client = pytest.importorskip("mlflow.tracking")
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    monkeypatch.delenv("MLFLOW_EXPERIMENT_NAME", raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "secret-name.npz"
    np.savez(path, **arrays("separated"))
    options = [
        "--pav-rule",
        "none",
        "--replicates",
        "0",
        "--mlflow",
        "--attacker",
        "ecapa",
        "--scenario",
        "semi-informed",
    ]
    for _ in range(2):
        assert main(["evaluate", "--scores", str(path), *options]) == 0
    client = mlflow_client.MlflowClient(tracking_uri=uri)
    (run,) = client.search_runs([client.get_experiment_by_name("voxveil").experiment_id])
    assert run.data.metrics["privacy/eer"] == 0
    assert run.data.metrics["privacy/zebra_expected"] == pytest.approx(0.7213, abs=1e-4)
    assert "privacy/eps_max_pav" not in run.data.metrics
    assert run.data.tags["voxveil.undefined.eps_max_pav"].startswith("unbounded")
    assert all(abs(v) < 1e300 for v in run.data.metrics.values())
    assert "secret-name" not in str(run.data.to_dictionary())


# Faults of metrics reported in public: https://github.com/clovaai/voxceleb_trainer/issues/11,
# https://github.com/manuelaguadomtz/pyeer/issues/8, https://github.com/clovaai/voxceleb_trainer/issues/49 and
# https://github.com/NetherlandsForensicInstitute/lir-deprecated/issues/64.


def result_of(tmp_path, target, nontarget, *options):
    path, out = tmp_path / "s.npz", tmp_path / "r.json"
    np.savez(path, target=target, nontarget=nontarget)
    assert main(["evaluate", "--scores", str(path), "--json", str(out), *options]) == 0
    return json.loads(out.read_text())


def test_eer_says_its_variant_and_unit_and_reversed_scores_are_flagged(tmp_path, capsys):
    rng = np.random.default_rng(0)
    result = result_of(tmp_path, -rng.normal(2, 1, 200), -rng.normal(0, 1, 800))
    eer = result["metrics"]["eer"]
    assert (eer["unit"], eer["estimator"]) == ("%", "closest crossing")
    assert result["metrics"]["eer_rocch"]["estimator"] == "ROC convex hull"
    assert eer["value"] > 50, "not folded"
    assert any(w["code"] == "scores_reversed" for w in result["warnings"])
    assert "scores may be reversed" in capsys.readouterr().out


def test_separated_scores_without_smoothing(tmp_path, capsys):
    metrics = result_of(tmp_path, np.ones(10), np.zeros(10), "--pav-rule", "none", "--scores-are-llr")[
        "metrics"
    ]
    assert metrics["zebra_expected"]["value"] == pytest.approx(1 / (2 * np.log(2)), abs=1e-12)
    assert metrics["eps_max_pav"]["value"] is None
    assert metrics["eps_max_pav"]["note"].startswith("unbounded")
    assert np.isfinite(metrics["cllr"]["value"])
    assert metrics["linkability"]["value"] == 1
    assert "unbounded" in capsys.readouterr().out


def test_small_list_has_both_rates(tmp_path):
    """Five scores a side for which tools give 0.2 or 0.4: both variants are reported, each with its name."""
    metrics = result_of(tmp_path, [0.9, 0.8, 0.4, 0.35, 0.3], [0.7, 0.45, 0.2, 0.1, 0.05])["metrics"]
    assert metrics["eer"]["value"] == pytest.approx(40)
    assert metrics["eer_rocch"]["value"] == pytest.approx(24)  # between (0, 0.4) and (0.6, 0) of (Pmiss, Pfa)
