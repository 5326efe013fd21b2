"""The results of a finished run come into a folder whole, verified, and from where the report said."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kfp_server
import messages
import pytest
import yaml
from finished_run import PLACES, RUN, Ran, run_report, tree
from s3_server import Store

from voxveil.cli.main import main
from voxveil.config.compose import to_mapping, use_overlay
from voxveil.config.load import load_params
from voxveil.kubeflow import fetching
from voxveil.kubeflow.server import Endpoint, Server
from voxveil.tracking.client import connect
from voxveil.tracking.store import resolve_store

for extra, module in (("pipeline", "kfp"), ("mlflow", "mlflow"), ("data", "boto3")):
    pytest.importorskip(module, reason=f"needs the {extra} extra")


@dataclass
class Cluster:
    """A Kubeflow server, an S3 store and an MLflow store after one run, and the chain that it ran."""

    remote: kfp_server.Server
    store: Store
    chain: Path

    @property
    def run(self) -> dict[str, Any]:
        """The run as the server has it."""
        return self.remote.runs[RUN]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Ran:
    return run_report(tmp_path_factory.mktemp("ran"), empty_store)


@pytest.fixture
def cluster(ran: Ran, store: Store, clean: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cluster]:
    for name in [name for name in os.environ if name.startswith(("MLFLOW_", "DVC_", "KFP_"))]:
        clean.delenv(name)
    shutil.copy(ran.database, tmp_path / "mlflow.db")
    clean.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    clean.setenv("AWS_ENDPOINT_URL", store.url)
    store.objects = dict(ran.objects)
    with kfp_server.serving() as remote:
        clean.setenv("KFP_ENDPOINT", remote.url)
        remote.experiments["e"] = {"experiment_id": "e", "display_name": "voxveil"}
        params = messages.as_floats(to_mapping(load_params(ran.chain / "params.yaml")))
        remote.runs[RUN] = {
            "run_id": RUN,
            "experiment_id": "e",
            "display_name": "nightly",
            "state": "SUCCEEDED",
            "created_at": kfp_server.CREATED,
            # As a server's JSON has it: in no order of ours.
            "runtime_config": {"parameters": {"params": json.loads(json.dumps(params, sort_keys=True))}},
        }
        yield Cluster(remote, store, ran.chain)


def fetch(project: Path, *more: str, run: str = RUN) -> None:
    assert main(["pipeline", "fetch", run, "--project", str(project), *more]) == 0


def refused(
    capsys: pytest.CaptureFixture[str], project: Path, *more: str, run: str = RUN, code: int = 2
) -> str:
    """Fetch, which must fail in one line, leaving ``project`` as it was."""
    before = tree(project)
    capsys.readouterr()
    assert main(["pipeline", "fetch", run, "--project", str(project), *more]) == code
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert error.startswith("voxveil: error: ")
    assert tree(project) == before
    return error


def outputs_of(chain: Path, *stages: str) -> dict[str, bytes]:
    found = tree(chain / "outputs")
    return {name: data for name, data in found.items() if name.partition("/")[0] in stages}


def test_results_lie_as_in_a_checkout(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "deep/project"
    fetch(project)
    params, wanted = (load_params(folder / "params.yaml") for folder in (project, cluster.chain))
    assert params == wanted
    assert list(params.systems) == list(wanted.systems) == ["original", "anon"]
    assert tree(project / "outputs") == outputs_of(cluster.chain, "evaluate", "report")
    assert not any("older" in request for request in cluster.store.requests)
    assert "outputs/evaluate/anon: fetched" in capsys.readouterr().out
    fetch(project, "--scores", run="nightly")
    said = capsys.readouterr().out
    assert "outputs/evaluate/anon: was there" in said
    assert "outputs/score/anon: fetched" in said
    assert tree(project / "outputs") == outputs_of(cluster.chain, "evaluate", "report", "score")
    cluster.store.requests.clear()
    fetch(project)
    assert cluster.store.requests == []


@pytest.mark.parametrize(("item", "stages"), [("wcd-table3", []), ("wcd-fig3", ["score"])])
def test_a_table_is_that_of_a_checkout(
    cluster: Cluster, tmp_path: Path, item: str, stages: list[str]
) -> None:
    fetch(tmp_path / "project", *(["--scores"] if stages else []))
    by_dvc = tmp_path / "by_dvc"
    for stage in ("evaluate", *stages):
        shutil.copytree(cluster.chain / "outputs" / stage, by_dvc / "outputs" / stage)
    shutil.copy(cluster.chain / "params.yaml", by_dvc)
    for name in ("project", "by_dvc"):
        arguments = ["--project", str(tmp_path / name), "--out", str(tmp_path / f"{name}-page")]
        assert main(["reproduce", item, *arguments]) == 0
    found = tree(tmp_path / "project-page")
    assert "results.json" in found
    assert found == tree(tmp_path / "by_dvc-page")


def test_parameters_that_were_not_given_are_the_pipelines(cluster: Cluster) -> None:
    server = Server(Endpoint(cluster.remote.url), backoff=0)
    params = cluster.run["runtime_config"].pop("parameters")["params"]
    inputs = {"params": {"defaultValue": params, "parameterType": "STRUCT"}}
    text = yaml.safe_dump_all([{"root": {"inputDefinitions": {"parameters": inputs}}}, {"platforms": {}}])
    for file in (text, text.partition("---\n")[0]):
        cluster.remote.versions["v"] = {"pipeline_id": "p", "pipeline_version_id": "v", "name": "v"}
        cluster.remote.uploads["v"] = file
        cluster.run["pipeline_version_reference"] = {"pipeline_id": "p", "pipeline_version_id": "v"}
        found = fetching.finished_on_server(server, "voxveil", "nightly")
        assert found.params == load_params(cluster.chain / "params.yaml")


def test_the_version_is_gone(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del cluster.run["runtime_config"]
    cluster.run["pipeline_version_reference"] = {"pipeline_id": "p", "pipeline_version_id": "v"}
    assert "its parameters are gone with the version" in refused(capsys, tmp_path / "project")


def test_a_run_that_is_not_there_or_has_not_ended_well(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    assert "weekly: no run with this id" in refused(capsys, project, run="weekly")
    for state in ("RUNNING", "FAILED"):
        cluster.run["state"] = state
        assert f"run {RUN} is {state}; only one that SUCCEEDED is fetched" in refused(capsys, project)
    cluster.remote.token = "another"
    assert "refuses the caller (401" in refused(capsys, project, code=1)
    assert not project.exists()


def test_without_a_server_a_folder_is_asked_for(
    cluster: Cluster, clean: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean.delenv("KFP_ENDPOINT")
    said = refused(capsys, tmp_path / "project", run="runs/first")
    assert "runs/first: no such folder here, and KFP_ENDPOINT is not set" in said


def test_mlflow_without_the_run(
    cluster: Cluster,
    clean: pytest.MonkeyPatch,
    empty_store: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    project = tmp_path / "project"
    with_tags = resolve_store()
    shutil.copy(empty_store, tmp_path / "another.db")
    clean.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'another.db'}")
    assert f"has no results of Kubeflow run {RUN}; is MLFLOW_TRACKING_URI" in refused(capsys, project)
    clean.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'none.db'}")
    assert "there is no MLflow store at sqlite:///" in refused(capsys, project)
    assert not (tmp_path / "none.db").exists()
    clean.setenv("MLFLOW_TRACKING_URI", with_tags.uri)
    tracker = connect(with_tags)
    with tracker.burst() as client:
        (run,) = tracker.find(kfp_run=RUN, system="anon")
        client.delete_tag(run.info.run_id, "voxveil.evaluated")
    assert f"does not say where the outputs of Kubeflow run {RUN} lie" in refused(capsys, project)
    with tracker.burst() as client:
        client.delete_run(run.info.run_id)
    said = refused(capsys, project)
    assert "has evaluate of systems original, its parameters name anon, original" in said


def lose_all(cluster: Cluster) -> None:
    cluster.store.objects = {}


def change(cluster: Cluster) -> None:
    cluster.store.objects[f"{PLACES['evaluate']}/evaluate-anon/summary.json"] += b" "


def lose_one(cluster: Cluster) -> None:
    del cluster.store.objects[f"{PLACES['evaluate']}/evaluate-original/summary.json"]


def exchange(cluster: Cluster) -> None:
    """Put another whole output where one was."""
    objects = cluster.store.objects
    place = f"{PLACES['evaluate']}/evaluate-"
    for key in [key for key in objects if key.startswith(f"{place}anon/")]:
        del objects[key]
    objects |= {
        k.replace("-original/", "-anon/", 1): v for k, v in objects.items() if "evaluate-original/" in k
    }


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (lose_all, "s3://runs/root/new/evaluate-anon: nothing is stored there"),
        (change, "s3://runs/root/new/evaluate-anon: is not what the run made: .*summary.json changed"),
        (
            lose_one,
            "s3://runs/root/new/evaluate-original: is not what the run made: .*summary.json is missing",
        ),
        (exchange, "s3://runs/root/new/evaluate-anon: is not what the run made: .*has digest"),
    ],
)
def test_what_is_gone_or_differs_is_refused(
    cluster: Cluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    fault: Callable[[Cluster], None],
    text: str,
) -> None:
    fault(cluster)
    assert re.search(text, refused(capsys, tmp_path / "project"))


def test_without_credentials(
    cluster: Cluster, clean: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    clean.delenv("AWS_ACCESS_KEY_ID")
    clean.delenv("AWS_SECRET_ACCESS_KEY")
    said = refused(capsys, tmp_path / "project")
    assert "evaluate-anon: no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY" in said
    assert cluster.store.requests == []


def test_the_store_may_have_another_address_here(
    cluster: Cluster, clean: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean.setenv("AWS_ENDPOINT_URL", "http://store.inside.example:9000")
    fetch(tmp_path / "project", "--endpoint", cluster.store.url)
    assert tree(tmp_path / "project/outputs") == outputs_of(cluster.chain, "evaluate", "report")


def test_an_edited_params_file_is_never_replaced(
    cluster: Cluster, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    shutil.copytree(root / "params", project / "params")
    use_overlay("tiny", project, {"base.threads": "1"})
    assert f"params.yaml: is another than that of run {RUN}; fetch into" in refused(capsys, project)
    (project / "params.yaml").write_text("systems: {}\n")
    assert "params.yaml: is another" in refused(capsys, project)
    assert cluster.store.requests == []
    # As 'voxveil params use' wrote it: it can be written again.
    use_overlay("tiny", project, force=True)
    fetch(project)
    assert load_params(project / "params.yaml") == load_params(cluster.chain / "params.yaml")


def test_a_params_file_that_says_the_same_is_left_alone(cluster: Cluster, tmp_path: Path) -> None:
    content = to_mapping(load_params(cluster.chain / "params.yaml"))
    text = f"# ours\n{yaml.safe_dump(content, sort_keys=True)}"
    (tmp_path / "project").mkdir()
    (tmp_path / "project/params.yaml").write_text(text)
    fetch(tmp_path / "project")
    assert (tmp_path / "project/params.yaml").read_text() == text


@pytest.mark.parametrize(
    "place", ["evaluate/anon", "evaluate/stranger", "score/anon", "report", "train_speaker", "evaluate"]
)
def test_other_outputs_are_never_mixed_with_these(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    project = tmp_path / "project"
    if place == "evaluate":
        (project / "outputs").mkdir(parents=True)
        (project / "outputs/evaluate").write_text("a file")
    else:
        messages.made(project / "outputs" / place, "evaluate", "anon")
    assert f"outputs/{place}: is not of run {RUN}; fetch into another folder" in refused(capsys, project)
    assert cluster.store.requests == []


def test_an_output_that_was_changed_since_is_not_taken_for_the_runs(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch(tmp_path / "project")
    (tmp_path / "project/outputs/evaluate/anon/summary.json").write_text("{}")
    assert "outputs/evaluate/anon: is not of run" in refused(capsys, tmp_path / "project")


def test_a_fetch_that_was_cut_off_is_run_again(cluster: Cluster, tmp_path: Path) -> None:
    project = tmp_path / "project"
    server = Server(Endpoint(cluster.remote.url), backoff=0)
    calls: list[str] = []

    def cut(uri: str, folder: Path) -> None:
        calls.append(uri)
        if len(calls) == 2:
            raise KeyboardInterrupt
        whole(uri, folder)

    whole = fetching.fetch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetching, "fetch", cut)
        with pytest.raises(KeyboardInterrupt):
            fetching.fetch_results(fetching.finished_on_server(server, "voxveil", RUN), project)
    assert len(calls) == 2
    assert tree(project) == {}
    # What a killed process leaves at each moment: a part beside its place, the whole beside it, some placed.
    for name in ("..fetched.partial", ".fetched"):
        (project / "outputs" / name / "evaluate/anon").mkdir(parents=True)
        (project / "outputs" / name / "evaluate/anon/summary.json").write_text("half")
    shutil.copytree(cluster.chain / "outputs/evaluate/anon", project / "outputs/evaluate/anon")
    shutil.copy(cluster.chain / "params.yaml", project)
    fetch(project)
    assert tree(project / "outputs") == outputs_of(cluster.chain, "evaluate", "report")
