"""The steps that only a cluster's pipelines have: fetched data, the gate against the registry, the alias."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import messages
import pytest
from s3_server import Store

from made_corpora import SIZES, write_corpus
from made_datasets import commit, make_project, shell
from made_outputs import Made, evaluate, make_outputs
from voxveil.anonymize.bundle import write_bundle
from voxveil.cli.main import main
from voxveil.config import SystemParams, load_params
from voxveil.config.compose import to_mapping
from voxveil.kubeflow.steps.registry import spec_of, step_values
from voxveil.kubeflow.steps.running import run_step
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import finish, require_done
from voxveil.runtime.errors import IncompleteInputError, InputError, PrivacyError
from voxveil.tracking.client import TrackingError, connect
from voxveil.tracking.models.contents import locate_model
from voxveil.tracking.models.registering import find_alias
from voxveil.tracking.store import resolve_store

pytest.importorskip("mlflow", reason="needs the mlflow extra")

ORIGINAL = Made(4.0, per=20.0, kind="original")
MODEL = "anonymizer"


def message(step: str, out: Path, parameters: dict[str, Any], artifacts: dict[str, Path]) -> str:
    """Return the executor input of a step; inputs travel with their digests."""
    spec = spec_of(step)
    digests = {f"{name}_digest": require_done(path, name).digest for name, path in artifacts.items()}
    call = messages.message(step, out, parameters | digests, artifacts)
    call["outputs"]["parameters"] |= {
        name: {"outputFile": str(out / name)} for name in step_values(spec.name)
    }
    return json.dumps(call)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Finished runs of one system that leaks little, or much; the noise of all is the same."""
    made = {}
    for name, leak in (("first", 0.2), ("leaky", 2.5)):
        made[name] = tmp_path_factory.mktemp(name)
        systems = {"original": ORIGINAL, "anon_dp": Made(leak, pitch=10.0, content=10.0)}
        make_outputs(made[name], systems, samples=False)
        for system in systems:
            evaluate(made[name], system)
    return made


class Team:
    """A registry, a store, and the two steps on a run's outputs."""

    def __init__(self, folder: Path, runs: dict[str, Path]) -> None:
        self.folder, self.runs, self.count = folder, runs, 0

    def gate(self, run: str) -> tuple[Path, dict[str, Any]]:
        """Run the gate; return its output folder and its decision."""
        self.count += 1
        out = self.folder / f"gate-{self.count}"
        outputs = self.runs[run] / "outputs"
        artifacts = {
            "metrics": outputs / "evaluate/anon_dp",
            "scores": outputs / "score/anon_dp",
            "original": outputs / "evaluate/original",
        }
        params = to_mapping(load_params(self.runs[run] / "params.yaml"))
        parameters = {"params": messages.as_floats(params), "key": "anon_dp", "registered_model": MODEL}
        assert run_step("gate", message("gate", out, parameters, artifacts)) == 0
        return out / "decision", read_json(out / "decision/decision.json")

    def register(self, run: str, decision: Path, revision: str) -> dict[str, Any]:
        """Register a bundle that this revision of the data gave; return what the step reports."""
        self.count += 1
        out, bundle = self.folder / f"register-{self.count}", self.folder / f"bundle-{self.count}"
        corpus = {"name": "made", "synthetic": True, "public": True, "revision": revision}
        bundle.mkdir()
        write_bundle(bundle, "anon_dp", SystemParams(kind="original"), {}, corpus)
        finish(bundle, "bundle", "anon_dp", "model")
        parameters = {
            "params": messages.as_floats(to_mapping(load_params(self.runs[run] / "params.yaml"))),
            "key": "anon_dp",
            "registered_model": MODEL,
            "model_store": "s3://models/voxveil",
            "repository": "https://git.example.org/data.git",
            "commit": revision,
        }
        assert (
            run_step(
                "register", message("register", out, parameters, {"model": bundle, "decision": decision})
            )
            == 0
        )
        return read_json(out / "registration/registration.json")


@pytest.fixture
def team(
    runs: dict[str, Path],
    empty_store: Path,
    store: Store,
    clean: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Team:
    for name in list(os.environ):
        if name.startswith(("MLFLOW_", "DVC_", "KFP_")):
            clean.delenv(name)
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    clean.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    clean.setenv("KFP_RUN_ID", "run-7")
    clean.setenv("AWS_ENDPOINT_URL", store.url)
    clean.setenv("VOXVEIL_CACHE", str(tmp_path / "cache"))
    return Team(tmp_path, runs)


def test_first_champion_then_worse_then_equal(team: Team, store: Store) -> None:
    """The life of a registered model: nobody, a champion, a candidate that is kept, one that follows."""
    with connect(resolve_store()).burst() as client:
        experiment = client.get_experiment_by_name("voxveil").experiment_id
        entry = {"voxveil.role": "run", "voxveil.kfp_run": "run-7"}
        published = client.create_run(experiment, tags=entry).info.run_id
    folder, decision = team.gate("first")
    assert decision["promote"], decision["reason"]
    first = team.register("first", folder, "a" * 40)
    with connect(resolve_store()).burst() as client:
        tags = client.get_run(published).data.tags
    assert (tags["voxveil.gate"], tags["voxveil.dvc_revision"]) == ("promoted", "a" * 40)
    assert first["aliases"] == ["champion", "reference"]
    champion = find_alias(MODEL, "champion", resolve_store())
    assert champion is not None
    assert champion.number == first["version"] == "1"
    wanted = {"gate": "promoted", "dvc_revision": "a" * 40, "run_key": "run-7"}
    assert wanted.items() <= champion.tags.items()
    assert champion.tags["scores"] == decision["scores"]
    # What people fetch by the alias is what was uploaded.
    assert locate_model(f"models:/{MODEL}@champion").is_dir()

    folder, decision = team.gate("leaky")
    assert not decision["promote"]
    assert "loss in linkability (ecapa/semi_informed) against the reference" in decision["reason"]
    kept = team.register("leaky", folder, "b" * 40)
    assert (kept["version"], kept["aliases"]) == ("2", [])
    with connect(resolve_store()).burst() as client:
        tags = client.get_model_version(MODEL, "2").tags
    assert tags["voxveil.gate"] == "kept"
    assert tags["voxveil.gate_reason"] == decision["reason"]
    champion = find_alias(MODEL, "champion", resolve_store())
    assert champion is not None
    assert champion.number == "1"

    folder, decision = team.gate("first")
    assert decision["promote"], decision["reason"]
    follows = team.register("first", folder, "c" * 40)
    assert (follows["version"], follows["aliases"]) == ("3", ["champion"])
    reference = find_alias(MODEL, "reference", resolve_store())
    assert reference is not None
    assert reference.number == "1", "only people move the reference"


def test_evidence_that_is_gone_or_changed_promotes_nothing(team: Team, tmp_path: Path) -> None:
    folder, _ = team.gate("first")
    team.register("first", folder, "a" * 40)
    moved = {"first": tmp_path / "copy", "leaky": team.runs["leaky"]}
    shutil.copytree(team.runs["first"], moved["first"])
    team.runs = moved
    second, decision = team.gate("first")
    assert decision["promote"]
    team.register("first", second, "b" * 40)
    scores = moved["first"] / "outputs/score/anon_dp/ecapa/semi_informed/scores.txt"
    text = scores.read_text()
    scores.write_text(text.replace("0.", "0.1", 1))
    with pytest.raises(IncompleteInputError, match=r"scores of anonymizer@champion \(version 2\).*changed"):
        Team(tmp_path / "again", {"first": team.runs["leaky"]}).gate("first")
    shutil.rmtree(moved["first"] / "outputs/score")
    with pytest.raises(InputError, match="no such folder"):
        Team(tmp_path / "again", {"first": team.runs["leaky"]}).gate("first")


def test_a_registry_that_is_away_promotes_nothing(
    team: Team, clean: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    clean.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert main(["pipeline", "step", "gate", "--executor-input", "{}"]) == 2
    with pytest.raises(TrackingError, match="MLflow at http://127.0.0.1:9"):
        team.gate("first")
    assert not (tmp_path / "gate-1/decision").exists()


def test_a_champion_without_evidence_is_an_error_with_a_hint(team: Team) -> None:
    with connect(resolve_store()).burst() as client:
        client.create_registered_model(MODEL)
        run = client.create_run("0")
        client.create_model_version(MODEL, f"runs:/{run.info.run_id}/model", run.info.run_id)
        client.set_registered_model_alias(MODEL, "champion", "1")
    with pytest.raises(InputError, match=r"anonymizer@champion \(version 1\): its tag metrics is missing"):
        team.gate("first")


def test_a_decision_on_another_system_registers_nothing(team: Team, tmp_path: Path) -> None:
    folder, _ = team.gate("first")
    content = read_json(folder / "decision.json") | {"system": "anon"}
    other = tmp_path / "other"
    other.mkdir()
    (other / "decision.json").write_text(json.dumps(content))
    finish(other, "gate", "anon_dp", "decision")
    with pytest.raises(InputError, match="not the gate's decision on system anon_dp"):
        team.register("first", other, "a" * 40)
    assert find_alias(MODEL, "champion", resolve_store()) is None


def test_an_output_of_another_stage_is_refused(team: Team, tmp_path: Path) -> None:
    swapped = tmp_path / "swapped"
    shutil.copytree(team.runs["first"], swapped)
    shutil.rmtree(swapped / "outputs/score/anon_dp")
    shutil.copytree(swapped / "outputs/evaluate/anon_dp", swapped / "outputs/score/anon_dp")
    team.runs = {"first": swapped}
    with pytest.raises(InputError, match="input scores: must be output of score, is output of evaluate"):
        team.gate("first")


# The step that fetches data.


@pytest.fixture(scope="module")
def made_project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a repository and its remote; the dataset ``clinic`` is public at first, then private."""
    pytest.importorskip("dvc", reason="needs the data extra")
    top = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
        folder = make_project(top / "project", "../../remote")
        (top / "remote").mkdir()
        patch.chdir(folder)
        corpus = write_corpus(top / "corpus")
        for tag, words in (("public", []), ("private", ["--private"])):
            assert main(["data", "add", "clinic", str(corpus), *words]) == 0
            commit(folder, tag)
            shell(folder, "git", "tag", tag)
        # Both versions hold the same recordings.
        shell(folder, "dvc", "push", "-q")
    return top


@pytest.fixture
def project(made_project: Path, tmp_path: Path, clean: pytest.MonkeyPatch) -> Path:
    """A copy of its own, whose recordings are in the remote only."""
    for name in list(os.environ):
        if name.startswith(("MLFLOW_", "DVC_", "KFP_")):
            clean.delenv(name)
    clean.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for name in ("project", "remote"):
        shutil.copytree(made_project / name, tmp_path / name, symlinks=True)
    shutil.rmtree(tmp_path / "project/.dvc/cache", ignore_errors=True)
    shutil.rmtree(tmp_path / "project/data/clinic")
    clean.chdir(tmp_path)
    return tmp_path / "project"


def fetch(project: Path, out: Path, revision: str, **prepare: Any) -> str:
    params = messages.tiny_params()
    sizes = SIZES | {"alignment": "corpus", "source": "embedded"} | prepare
    params = dataclasses.replace(params, prepare=dataclasses.replace(params.prepare, **sizes))
    parameters = {
        "params": messages.as_floats(to_mapping(params)),
        "repository": str(project),
        "dataset": "clinic",
        "revision": revision,
    }
    return message("prepare_revision", out, parameters, {})


def test_a_revision_is_fetched_and_prepared(project: Path, tmp_path: Path) -> None:
    """The step as a launcher runs it: one process, its message as the argument."""
    words = ["voxveil", "pipeline", "step", "prepare-revision", "--executor-input"]
    result = subprocess.run(
        [*words, fetch(project, tmp_path / "out", "public")],
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr
    wanted = shell(project, "git", "rev-parse", "public").strip()
    assert messages.reported(tmp_path / "out")["parameterValues"]["commit"] == wanted
    done = require_done(tmp_path / "out/public", "public")
    # What later stages ask for: the output of prepare.
    assert (done.stage, done.output) == ("prepare", "public")
    assert read_json(tmp_path / "out/public/corpus.json")["splits"]["extractor"]["speakers"] == 2


@pytest.mark.parametrize(
    ("revision", "prepare", "text"),
    [
        ("private", {}, "dataset clinic is not declared public"),
        ("public", {"public": False}, "prepare.public: must be true"),
    ],
)
def test_what_is_not_declared_public_is_not_even_fetched(
    revision: str, prepare: dict[str, Any], text: str, project: Path, tmp_path: Path
) -> None:
    # Without the remote nothing could be fetched: the refusal comes before.
    shutil.rmtree(tmp_path / "remote")
    with pytest.raises(PrivacyError, match=text):
        run_step("prepare_revision", fetch(project, tmp_path / "out", revision, **prepare))
    assert not (tmp_path / "out").exists()


# The step that judges somebody else's scores.


def test_somebody_elses_scores(team: Team, store: Store, tmp_path: Path) -> None:
    folder = team.runs["leaky"] / "outputs/score/anon_dp/ecapa/semi_informed"
    for name in ("scores.txt", "trials.txt", "rank.npz"):
        store.objects[f"theirs/attack/{name}"] = (folder / name).read_bytes()
    parameters = {
        "params": messages.tiny(),
        "location": "s3://theirs/attack",
        "attacker": "theirs",
        "scenario": "lazy",
    }
    assert run_step("evaluate_scores", message("evaluate_scores", tmp_path / "out", parameters, {})) == 0
    result = read_json(tmp_path / "out/result/result.json")
    stored = read_json(team.runs["leaky"] / "outputs/evaluate/anon_dp/ecapa-semi_informed.json")
    for name in ("eer", "identification_rate", "linkability"):
        assert result["metrics"][name]["value"] == pytest.approx(stored["metrics"][name]["value"], rel=1e-12)
    shown = messages.reported(tmp_path / "out")["artifacts"]["flat"]["artifacts"][0]["metadata"]
    assert shown["privacy/theirs/lazy/eer"] == result["metrics"]["eer"]["value"]


def test_scores_that_are_not_there_or_damaged_are_named_by_address(
    team: Team, store: Store, tmp_path: Path
) -> None:
    parameters = {
        "params": messages.tiny(),
        "location": "s3://theirs/attack",
        "attacker": "theirs",
        "scenario": "lazy",
    }
    call = message("evaluate_scores", tmp_path / "out", parameters, {})
    store.objects["theirs/attack/readme"] = b"x"
    with pytest.raises(InputError, match="s3://theirs/attack: holds neither scores.txt"):
        run_step("evaluate_scores", call)
    store.objects["theirs/attack/scores.txt"] = b"a b not-a-number\n"
    store.objects["theirs/attack/trials.txt"] = b"a b target\na c nontarget\n"
    with pytest.raises(InputError, match="^s3://theirs/attack/scores.txt:1"):
        run_step("evaluate_scores", call)
    assert not (tmp_path / "out/result").exists()


def test_a_stage_is_no_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pipeline", "step", "score", "--executor-input", "{}"]) == 2
    assert "score is a stage; run it by 'voxveil stage score'" in capsys.readouterr().err
    assert main(["pipeline", "step", "nothing", "--executor-input", "{}"]) == 2
    assert "no step 'nothing'; steps: prepare-revision, gate, register" in capsys.readouterr().err
