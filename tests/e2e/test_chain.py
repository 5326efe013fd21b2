"""The whole chain at scale tiny, as a newcomer runs it: one run, many looks at it."""

from __future__ import annotations

import json
import random
import re
import shutil
import sqlite3
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

sys.path.insert(0, str(Path(__file__).parent))

import kill_stages
import workspace

from source_tree import copy_source, source_files

pytestmark = [pytest.mark.e2e, pytest.mark.torch]

SYSTEMS = ("original", "anon", "anon_dp")


@pytest.fixture(scope="session")
def chain(root: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    target = copy_source(root, tmp_path_factory.mktemp("chain"))
    overlay = target / "params/tiny.yaml"
    values = yaml.safe_load(overlay.read_text())
    # A stage that is killed and run again ends with the same bits; only one thread promises that.
    values["base"] = {"threads": 1}
    for stage in workspace.ANONYMIZING:
        values[stage]["steps"] = workspace.STEPS
    overlay.write_text(yaml.safe_dump(values, sort_keys=False))
    identity = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    workspace.run(target, "git", *identity, "commit", "-qam", "one thread, few steps")
    printed = workspace.run(target, "voxveil", "demo", "--scale", "tiny").stdout
    return target, printed


def metrics(chain: tuple[Path, str], system: str) -> dict[str, float]:
    return json.loads((chain[0] / "metrics" / f"{system}.metrics.json").read_text())


def test_the_table_names_every_system_and_column(chain: tuple[Path, str]) -> None:
    printed = chain[1]
    for word in (
        *SYSTEMS,
        "EER",
        "nlinkability",
        "ZEBRA",
        "dentifi",
        "psilon",
        "PER",
        "synthetic",
        "mlflow",
        "demo-audio",
    ):
        assert word in printed


def test_original_speech_is_recognised_and_anonymized_speech_less(chain: tuple[Path, str]) -> None:
    assert metrics(chain, "original")["privacy/eer"] <= 15.0
    assert metrics(chain, "anon_dp")["privacy/eer"] > metrics(chain, "original")["privacy/eer"]


def test_epsilon_is_the_maximum_over_trial_utterances(chain: tuple[Path, str]) -> None:
    root = chain[0]
    flat = metrics(chain, "anon_dp")
    ledger = json.loads((root / "outputs/anonymize/anon_dp/released/ledger.json").read_text())
    trials = (root / "outputs/prepare/private/trials/trials.txt").read_text().splitlines()
    tested = {line.split()[1] for line in trials}
    manifest = (root / "outputs/prepare/private/private/manifest.jsonl").read_text().splitlines()
    frames = {row["utterance"]: row["samples"] // 160 + 1 for row in map(json.loads, manifest)}
    expected = max(10.0 + 10.0 * frames[utterance] for utterance in tested)
    assert flat["privacy/epsilon_utterance"] == pytest.approx(expected)
    assert flat["privacy/epsilon_pitch"] == flat["privacy/epsilon_content"] == 10.0
    assert "privacy/epsilon_utterance" not in metrics(chain, "anon")
    assert ledger["purpose"] == "evaluation"


def test_git_sees_only_the_lock(chain: tuple[Path, str]) -> None:
    changed = workspace.run(chain[0], "git", "status", "--porcelain").stdout.splitlines()
    assert set(changed) <= {"?? dvc.lock", " M params.yaml"}


def test_a_copy_of_a_finished_checkout_holds_no_product_of_its_runs(
    chain: tuple[Path, str], root: Path, tmp_path: Path
) -> None:
    copy_source(chain[0], tmp_path)
    copied = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert {path for path in copied if path.parts[0] != ".git"} == {
        *source_files(root),
        Path("params.yaml"),
    }
    assert (tmp_path / "params.yaml").read_text() == (root / "params.yaml").read_text()


def test_a_second_run_recomputes_nothing(chain: tuple[Path, str]) -> None:
    printed = workspace.run(chain[0], "voxveil", "demo", "--scale", "tiny").stdout
    assert "Running stage" not in printed
    assert "anon_dp" in printed


def test_an_edited_params_file_is_kept(chain: tuple[Path, str]) -> None:
    path = chain[0] / "params.yaml"
    text = path.read_text()
    path.write_text(text.replace("title: voxveil", "title: mine"))
    try:
        code = (
            "from voxveil.cli.demo import _params; from pathlib import Path\n_params(Path('.'), 'quickstart')"
        )
        printed = workspace.run(chain[0], sys.executable, "-c", code).stdout
        assert "was edited" in printed
        assert "title: mine" in path.read_text()
    finally:
        path.write_text(text)


def test_pairs_are_unpacked(chain: tuple[Path, str]) -> None:
    names = sorted(path.name for path in (chain[0] / "demo-audio").glob("*.flac"))
    assert len(names) == 6
    assert len({name.rsplit(".", 2)[0] for name in names}) == 3


def test_dvc_shows_metrics_and_plots(chain: tuple[Path, str]) -> None:
    shown = json.loads(workspace.run(chain[0], "dvc", "metrics", "show", "--json").stdout)
    assert "metrics/anon_dp.metrics.json" in json.dumps(shown)
    assert "index.html" in workspace.run(chain[0], "dvc", "plots", "show").stdout


def test_reordering_systems_reruns_nothing(chain: tuple[Path, str]) -> None:
    path = chain[0] / "params.yaml"
    text = path.read_text()
    block = re.search(r"^  anon: .*\n", text, re.MULTILINE)
    assert block
    path.write_text(text.replace(block[0], "").replace("systems:\n", f"systems:\n{block[0]}", 1))
    try:
        assert "up to date" in workspace.run(chain[0], "dvc", "status").stdout
    finally:
        path.write_text(text)


def test_mlflow_has_a_parent_and_a_run_per_system(chain: tuple[Path, str]) -> None:
    with sqlite3.connect(chain[0] / "mlflow.db") as store:
        tags = store.execute("select run_uuid, key, value from tags").fetchall()
        values = store.execute("select run_uuid, key, value from latest_metrics").fetchall()
    runs: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for run, key, value in tags:
        runs[run][key] = value
    # However often the demo has run here: the same results are published once.
    (parent,) = [run for run, found in runs.items() if found.get("voxveil.role") == "run"]
    children = [found for found in runs.values() if found.get("voxveil.role") == "system"]
    assert sorted(found["voxveil.system"] for found in children) == sorted(SYSTEMS)
    assert {found["mlflow.parentRunId"] for found in children} == {parent}
    assert {found["voxveil.run_key"] for found in children} == {runs[parent]["voxveil.run_key"]}
    assert metrics(chain, "anon_dp")["privacy/eer"] in {
        value for _, key, value in values if key == "privacy/eer"
    }
    assert any(key == "privacy/epsilon_utterance" for _, key, _ in values)


def test_training_streamed_its_curves(chain: tuple[Path, str]) -> None:
    with sqlite3.connect(chain[0] / "mlflow.db") as store:
        stages = {row[0] for row in store.execute("select value from tags where key = 'voxveil.stage'")}
        points = store.execute("select count(*) from metrics where key like '%/loss'").fetchone()[0]
    assert {"train_content", "train_vocoder", "train_attacker"} <= stages
    assert points > 20


def test_ones_own_recording_is_anonymized(chain: tuple[Path, str], tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    original = next((chain[0] / "demo-audio").glob("*.original.flac"))
    audio, rate = soundfile.read(original)
    (tmp_path / "in/deep").mkdir(parents=True)
    soundfile.write(tmp_path / "in/deep/mine.wav", audio, rate)
    for name in ("a", "b"):
        folders = (str(tmp_path / "in"), str(tmp_path / name))
        command = ("voxveil", "anonymize", *folders, "--model", "models/anon_dp")
        workspace.run(chain[0], *command, VOXVEIL_LEDGER=str(tmp_path / "register"))
    first, _ = soundfile.read(tmp_path / "a/deep/mine.flac")
    second, _ = soundfile.read(tmp_path / "b/deep/mine.flac")
    assert len(first) == len(second) == len(audio)
    assert (first != second).any()
    assert len(list((tmp_path / "register").rglob("*.json"))) == 2


def test_halving_epsilon_moves_features_ledger_and_mlflow(chain: tuple[Path, str], tmp_path: Path) -> None:
    root = chain[0]
    shutil.copytree(root / "metrics", tmp_path / "metrics")
    before = {stage: workspace.outputs(root, stage) for stage in workspace.locked(root)}
    flat, lock = metrics(chain, "anon_dp"), (root / "dvc.lock").read_bytes()
    printed = workspace.run(
        root, "dvc", "exp", "run", "--name", "half", "-S", "pitch_variants.dp.epsilon=5"
    ).stdout
    try:
        after = {stage: workspace.outputs(root, stage) for stage in workspace.locked(root)}
        moved = {stage for stage in after if after[stage] != before[stage]}
        ran = set(re.findall(r"Running stage '([^']+)'", printed))
        assert ran == {stage for stage in after if stage.endswith("@anon_dp")} | {"train_pitch@dp", "report"}
        assert {"train_pitch@dp", "anonymize@anon_dp", "evaluate@anon_dp"} <= moved
        halved = metrics(chain, "anon_dp")
        assert halved["privacy/epsilon_utterance"] == pytest.approx(flat["privacy/epsilon_utterance"] - 5.0)
        with sqlite3.connect(root / "mlflow.db") as store:
            values = store.execute("select value from metrics where key = 'privacy/epsilon_pitch'").fetchall()
        assert {5.0, 10.0} <= {value for (value,) in values}
    finally:
        workspace.run(root, "git", "checkout", "-q", "--", "params.yaml", check=False)
        workspace.run(root, "voxveil", "params", "use", "tiny")
        (root / "dvc.lock").write_bytes(lock)
        # Metrics and curves are not cached, so dvc checkout does not bring them back.
        shutil.copytree(tmp_path / "metrics", root / "metrics", dirs_exist_ok=True)
        workspace.run(root, "dvc", "checkout", "-q", "--force")
        assert "up to date" in workspace.run(root, "dvc", "status").stdout


@pytest.mark.parametrize("stage", list(kill_stages.INSTANCES))
def test_a_killed_stage_can_be_run_again(chain: tuple[Path, str], stage: str) -> None:
    seen = kill_stages.kill_once(chain[0], stage, random.Random(f"{stage}"))
    assert not seen["leftovers"]
    if kill_stages.INSTANCES[stage]:
        assert seen["equal"], seen
