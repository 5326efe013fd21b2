"""Runs and schedules on a server that speaks Kubeflow's API, whose bodies Kubeflow's own models check."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import goldens
import pytest

pytest.importorskip("kfp", reason="needs the pipeline extra")

import kfp_server
import messages

from voxveil.cli.main import main
from voxveil.config.compose import params_text
from voxveil.kubeflow.cron import check_cron
from voxveil.kubeflow.pods import Images, load_images
from voxveil.kubeflow.server import Endpoint, KubeflowError, Server, find_endpoint
from voxveil.kubeflow.submitting import Order, cancel, find_started, schedule, submit, unschedule
from voxveil.runtime.errors import InputError

WEEKLY = "0 0 3 * * 1"


@pytest.fixture
def remote() -> Iterator[kfp_server.Server]:
    with kfp_server.serving() as server:
        yield server


@pytest.fixture
def server(remote: kfp_server.Server) -> Server:
    return Server(Endpoint(remote.url), backoff=0)


@pytest.fixture(scope="module")
def images() -> Images:
    return load_images(goldens.HERE / "images.lock.json")


#: The smallest pipeline: none of this hangs on the number of tasks.
NAME = "voxveil-evaluate-external"
GIVEN = {"location": "s3://theirs/attack"}


@pytest.fixture(scope="module")
def order() -> Order:
    text = goldens.compiled("tiny", "evaluate_external")
    return Order(text, "speech", arguments=GIVEN)


def changed(order: Order) -> Order:
    """Return an order for another pipeline of the same name."""
    return dataclasses.replace(order, text=order.text.replace("scale: tiny", "scale: small", 1))


def test_a_run_starts_with_the_uploaded_file(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    run_id, started = submit(server, order, images)
    assert started
    (run,) = remote.runs.values()
    assert run["run_id"] == run_id
    assert run["runtime_config"] == {"parameters": GIVEN}
    version = remote.versions[run["pipeline_version_reference"]["pipeline_version_id"]]
    assert version["name"] == order.version
    assert remote.uploads[version["pipeline_version_id"]] == order.text
    assert remote.experiments[run["experiment_id"]]["display_name"] == "speech"


def test_submitting_what_still_runs_starts_nothing(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    first = submit(server, order, images)
    assert submit(server, order, images) == (first[0], False)
    assert len(remote.runs) == len(remote.versions) == len(remote.pipelines) == len(remote.experiments) == 1
    remote.runs[first[0]]["state"] = "SUCCEEDED"
    second = submit(server, order, images)
    assert second[1]
    assert len(remote.runs) == 2
    assert len(remote.versions) == 1


def test_an_active_run_of_the_name_with_something_else_is_refused(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    named = dataclasses.replace(order, name="nightly")
    submit(server, named, images)
    with pytest.raises(InputError, match="'nightly' .* is active with another pipeline or other arguments"):
        submit(server, changed(named), images)
    with pytest.raises(InputError, match="other arguments"):
        submit(server, dataclasses.replace(named, arguments=GIVEN | {"params": {}}), images)
    assert len(remote.runs) == 1


def test_only_images_of_the_lock_leave_this_machine(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    tagged = dataclasses.replace(
        order, text=order.text.replace(images.cpu, "registry.example/voxveil-cpu:1.0")
    )
    for act in (lambda: submit(server, tagged, images), lambda: schedule(server, tagged, images, WEEKLY)):
        with pytest.raises(InputError, match=r"voxveil-cpu:1.0 is not in the image lock"):
            act()
    assert remote.calls == []


def test_a_schedule_is_one_run_at_a_time_without_catching_up(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    made, what = schedule(server, order, images, WEEKLY)
    assert what == "made"
    item = remote.schedules[made]
    assert (item["max_concurrency"], item["no_catchup"], item["status"]) == ("1", True, "ENABLED")
    assert item["trigger"] == {"cron_schedule": {"cron": WEEKLY}}
    assert item["display_name"] == NAME


def test_the_same_schedule_again_changes_nothing(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    made = schedule(server, order, images, WEEKLY)[0]
    del remote.calls[:]
    assert schedule(server, order, images, "  0 0  3 * * 1 ") == (made, "unchanged")
    assert changes(remote) == []


@pytest.mark.parametrize("what", ["cron", "pipeline", "arguments", "switched off", "twice"])
def test_the_same_name_replaces(
    what: str, server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    made = schedule(server, order, images, WEEKLY)[0]
    cron, wanted = WEEKLY, order
    if what == "cron":
        cron = "0 30 4 * * *"
    if what == "pipeline":
        wanted = changed(order)
    if what == "arguments":
        wanted = dataclasses.replace(order, arguments=GIVEN | {"params": {"a": 1.0}})
    if what == "switched off":
        remote.schedules[made]["status"] = "DISABLED"
    if what == "twice":
        # More than one page of them, as a person might leave behind.
        for number in range(3):
            copy = f"copy-{number}"
            remote.schedules[copy] = remote.schedules[made] | {"recurring_run_id": copy}
    new, done = schedule(server, wanted, images, cron)
    assert done == "replaced"
    assert list(remote.schedules) == [new]
    assert remote.schedules[new]["trigger"]["cron_schedule"]["cron"] == cron
    version = remote.versions[remote.schedules[new]["pipeline_version_reference"]["pipeline_version_id"]]
    assert version["name"] == wanted.version


def test_never_two_are_on_and_none_is_lost(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    made = schedule(server, order, images, WEEKLY)[0]
    remote.faults["POST /recurringruns"] = (400, "quota of schedules")
    with pytest.raises(KubeflowError, match="400 quota of schedules"):
        schedule(server, order, images, "0 30 4 * * *")
    assert changes(remote)[-3:] == [
        f"POST /recurringruns/{made}:disable",
        "POST /recurringruns",
        f"POST /recurringruns/{made}:enable",
    ]
    assert [item["status"] for item in remote.schedules.values()] == ["ENABLED"]
    remote.faults = {}
    schedule(server, order, images, "0 30 4 * * *")
    assert changes(remote)[-3:] == [
        f"POST /recurringruns/{made}:disable",
        "POST /recurringruns",
        f"DELETE /recurringruns/{made}",
    ]


def changes(remote: kfp_server.Server) -> list[str]:
    """Return the calls that changed something."""
    return [call for call in remote.calls if not call.startswith("GET ")]


def test_unscheduling_deletes_by_name(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    schedule(server, order, images, WEEKLY)
    kept = schedule(server, dataclasses.replace(order, name="other"), images, WEEKLY)[0]
    assert unschedule(server, "speech", NAME) == 1
    assert list(remote.schedules) == [kept]
    assert unschedule(server, "nowhere", "other") == 0


def test_cancel_by_id_and_by_name(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    run_id = submit(server, dataclasses.replace(order, name="a b"), images)[0]
    assert cancel(server, "speech", "a b") == (run_id, True)
    assert remote.runs[run_id]["state"] == "CANCELING"
    remote.runs[run_id]["state"] = "CANCELED"
    assert cancel(server, "speech", run_id) == (run_id, False)
    with pytest.raises(InputError, match="nothing: no run with this id, and none of this name"):
        cancel(server, "speech", "nothing")


def test_of_many_runs_of_a_name_the_newest_is_meant(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    named = dataclasses.replace(order, name="nightly")
    for _ in range(5):
        last = submit(server, named, images)[0]
        remote.runs[last]["state"] = "FAILED"
    assert find_started(server, "speech", "nightly").run_id == last


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("0 3 * * 1", r"must have 6 fields .* got 5; with seconds first: '0 0 3 \* \* 1'"),
        ("0 0 3 * * 1 2026", "got 7"),
        ("@daily", "got 1"),
        ("0 60 3 * * 1", "minutes must be 0-59, got '60'"),
        ("0 0 24 * * 1", "hours must be 0-23, got '24'"),
        ("0 0 3 0 * 1", "day of month must be 1-31, got '0'"),
        ("0 0 3 * 13 1", "month must be 1-12 or JAN-DEC, got '13'"),
        ("0 0 3 * * MOON", "day of week must be 0-6 or SUN-SAT, got 'MOON'"),
        ("0 0 5-3 * * 1", "hours runs backwards"),
        ("0 0 */0 * * 1", "hours has a step of 0"),
        ("0 0 3 * ? 1", "month cannot be '[?]'"),
        ("0 0 *-4 * * 1", "hours cannot be read"),
        ("0 0 3;4 * * 1", "hours cannot be read"),
        ("* 0 3 * * 1", "seconds must be one number"),
        ("*/5 * * * * *", "seconds must be one number"),
    ],
)
def test_wrong_times_are_named(expression: str, text: str) -> None:
    with pytest.raises(InputError, match=text):
        check_cron(expression)


@pytest.mark.parametrize(
    "expression", [WEEKLY, "0 */15 8-18 * JAN-MAR MON,wed,5", "30 0 0 1,15 * ?", "0 0 0 ? * 0"]
)
def test_right_times_pass(expression: str) -> None:
    assert check_cron(expression) == expression


@pytest.mark.parametrize(
    ("arguments", "root", "text"),
    [
        (GIVEN | {"other": 1}, "", "has no argument 'other'; it has: attacker, location, params, scenario"),
        ({}, "", "argument location is missing"),
        (GIVEN, "here", "--pipeline-root here: must be s3://BUCKET/KEY"),
        (GIVEN, "s3://bucket/key?colour=blue", "unknown option 'colour'"),
    ],
)
def test_a_wrong_order_is_refused_before_anything_is_sent(
    arguments: dict[str, Any],
    root: str,
    text: str,
    server: Server,
    remote: kfp_server.Server,
    order: Order,
    images: Images,
) -> None:
    wrong = dataclasses.replace(order, arguments=arguments, pipeline_root=root)
    with pytest.raises(InputError, match=text):
        submit(server, wrong, images)
    assert remote.calls == []


def test_token_and_namespace_are_shown_and_never_printed(
    remote: kfp_server.Server, order: Order, images: Images
) -> None:
    remote.token, remote.namespace = "s3cret", "team"
    with pytest.raises(KubeflowError, match="refuses the caller .401 Unauthorized.; set KFP_TOKEN") as caught:
        submit(Server(Endpoint(remote.url, "team", "wr0ng")), order, images)
    assert "wr0ng" not in str(caught.value)
    mine = Endpoint(remote.url, "team", "s3cret")
    assert submit(Server(mine), order, images)[1]
    assert schedule(Server(mine), order, images, WEEKLY)[1] == "made"
    assert schedule(Server(mine), order, images, WEEKLY)[1] == "unchanged"
    assert {item["namespace"] for item in remote.experiments.values()} == {"team"}
    assert "s3cret" not in repr(mine)


def test_a_server_that_is_busy_is_asked_again_and_a_start_never_twice(
    server: Server, remote: kfp_server.Server, order: Order, images: Images
) -> None:
    remote.faults["GET /experiments"] = (503, "busy")
    with pytest.raises(KubeflowError, match="503 busy"):
        submit(server, order, images)
    assert remote.calls == ["GET /experiments"] * 4
    remote.faults = {"POST /runs": (503, "busy")}
    with pytest.raises(KubeflowError, match="503 busy"):
        submit(server, order, images)
    assert remote.calls.count("POST /runs") == 1


def test_a_dead_server_and_a_login_page_give_one_line(order: Order, images: Images) -> None:
    with kfp_server.serving() as gone:
        url = gone.url
    with pytest.raises(KubeflowError, match="cannot be reached .*refused") as caught:
        submit(Server(Endpoint(url), backoff=0), order, images)
    assert "\n" not in str(caught.value)
    with kfp_server.serving() as other:

        def page(self: Any) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(200)
            self.send_header("Content-Length", "20")
            self.end_headers()
            self.wfile.write(b"<html>log in</html> ")

        other.RequestHandlerClass = type("Login", (kfp_server.Handler,), {"answer": page})
        with pytest.raises(KubeflowError, match="not that of the API v2beta1"):
            submit(Server(Endpoint(other.url)), order, images)


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({}, "KFP_ENDPOINT is not set"),
        ({"KFP_ENDPOINT": "kubeflow.example.org"}, "must be http://HOST or https://HOST"),
        ({"KFP_ENDPOINT": "https://ann:pw@kubeflow.example.org"}, "must hold no user or password"),
        ({"KFP_ENDPOINT": "https://h", "KFP_TOKEN_FILE": "/none"}, "KFP_TOKEN_FILE /none: No such file"),
    ],
)
def test_a_wrong_endpoint_is_named_without_its_password(variables: dict[str, str], text: str) -> None:
    with pytest.raises(InputError, match=text) as caught:
        find_endpoint(variables)
    assert "pw" not in str(caught.value)


def test_the_token_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    endpoint = find_endpoint(
        {"KFP_ENDPOINT": "https://h/pipeline/", "KFP_TOKEN_FILE": str(tmp_path / "token")}
    )
    assert (endpoint.url, endpoint.token) == ("https://h/pipeline", "abc")


def test_the_commands(
    remote: kfp_server.Server,
    tmp_path: Path,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("KFP_ENDPOINT", remote.url)
    (tmp_path / "params.yaml").write_text(params_text(messages.tiny_params()))
    source = ["--params", str(tmp_path / "params.yaml"), "--project", str(root)]
    source += ["--images", str(goldens.HERE / "images.lock.json"), "--pipeline", "evaluate_external"]
    source += ["--set", "location=s3://theirs/attack"]

    def call(*words: str, status: int = 0) -> str:
        assert main(["pipeline", *words]) == status
        out, err = capsys.readouterr()
        return out if status == 0 else err

    assert "nothing was ever started" in call("status")
    line, address = call("submit", *source).splitlines()
    run_id = line.partition(":")[0]
    assert line.endswith(
        f"started; version {Order(goldens.compiled('tiny', 'evaluate_external'), '').version}"
    )
    assert address == f"{remote.url}/#/runs/details/{run_id}"
    assert "is active already" in call("submit", *source)
    assert "replaced" not in call("schedule", "--cron", WEEKLY, "--name", "weekly", *source)
    assert "must have 6 fields" in call("schedule", "--cron", "0 3 * * 1", *source, status=2)
    assert "needs either --cron EXPR, or --delete" in call("schedule", *source, status=2)
    shown = call("status").splitlines()
    assert [line.split()[0] for line in shown] == ["schedule", "run"]
    assert "ENABLED  0 0 3 * * 1  weekly" in shown[0]

    failed = {
        "display_name": "score anon",
        "state": "FAILED",
        "error": {"code": 2, "message": "no\nspace left"},
    }
    done = {"display_name": "prepare", "state": "SUCCEEDED"}
    remote.runs[run_id] |= {"state": "FAILED", "run_details": {"task_details": [failed, done]}}
    shown = call("status", run_id).splitlines()
    assert "tasks: 1 FAILED, 1 SUCCEEDED" in shown
    assert "failed: score anon: no space left" in shown
    assert "had ended already" in call("cancel", run_id)
    assert "1 deleted" in call("schedule", "--delete", "--name", "weekly")
    assert "no schedule of this name" in call("schedule", "--delete", "--name", "weekly", status=2)

    tags = tmp_path / "tags.json"
    tags.write_text(json.dumps({"cpu": "voxveil-cpu:1.0", "gpu": "voxveil-gpu:1.0"}))
    count = len(remote.calls)
    assert "not a tag" in call("submit", *source, "--images", str(tags), status=2)
    assert len(remote.calls) == count
