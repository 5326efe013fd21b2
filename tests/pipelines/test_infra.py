"""The manifests: what pods refer to exists, every overlay is valid, and the check finds what it is for."""

from __future__ import annotations

import copy
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import goldens
import pytest
import yaml

from voxveil.kubeflow import pods
from voxveil.kubeflow.graph import Task, read_pipeline
from voxveil.kubeflow.steps.registry import STEPS, all_steps, gather_of, share_of
from voxveil.stages.registry import STAGES

Objects = list[dict[str, Any]]


@pytest.fixture(scope="module")
def objects(root: Path) -> dict[tuple[str, str], dict[str, Any]]:
    base = root / "infra/base/pipelines"
    resources = yaml.safe_load((base / "kustomization.yaml").read_text())["resources"]
    documents = [item for name in resources for item in yaml.safe_load_all((base / name).read_text())]
    return {(item["kind"], item["metadata"]["name"]): item for item in documents}


def tasks() -> list[Task]:
    """Return every task of every pipeline under review."""
    found = []
    for name, scale in goldens.KEPT:
        pipeline = read_pipeline(goldens.compiled(scale, name))
        found += [*pipeline.tasks, *([pipeline.exit] if pipeline.exit else [])]
    return found


def test_every_value_a_pod_takes_is_in_the_config_map(objects: dict[tuple[str, str], Any]) -> None:
    given = set(objects["ConfigMap", pods.CONFIG_MAP]["data"])
    taken = set()
    for task in tasks():
        for reference in task.kubernetes.get("configMapAsEnv", []):
            assert reference["configMapName"] == pods.CONFIG_MAP
            taken |= {item["configMapKey"] for item in reference["keyToEnv"]}
    assert taken == given


def test_every_secret_a_pod_takes_is_explained(root: Path) -> None:
    text = (root / "infra/README.md").read_text()
    named = {pods.SECRET, pods.TRACKING_SECRET, pods.WEBHOOK_SECRET}
    taken: dict[str, set[bool]] = {}
    for task in tasks():
        for reference in task.kubernetes.get("secretAsEnv", []):
            taken.setdefault(reference["secretName"], set()).add(bool(reference.get("optional")))
            for item in reference["keyToEnv"]:
                assert f"--from-literal={item['secretKey']}=" in text
    assert set(taken) == named
    assert all(f"secret generic {name} " in text for name in named)
    # Without the store nothing works; a server without users and a team without a chat are no fault.
    assert taken[pods.SECRET] == {False}
    assert taken[pods.TRACKING_SECRET] == taken[pods.WEBHOOK_SECRET] == {True}


def test_the_claim_of_checkpoints_exists(objects: dict[tuple[str, str], Any]) -> None:
    assert ("PersistentVolumeClaim", pods.CHECKPOINT_CLAIM) in objects


def test_policies_select_stages_and_deny_by_default(objects: dict[tuple[str, str], Any]) -> None:
    policies = {name: item["spec"] for (kind, name), item in objects.items() if kind == "NetworkPolicy"}
    everyone = {"key": pods.STAGE_LABEL, "operator": "Exists"}
    deny = policies.pop("voxveil-stages-deny")
    assert deny == {
        "podSelector": {"matchExpressions": [everyone]},
        "policyTypes": ["Ingress", "Egress"],
    }
    known = {spec.name for spec in (*STAGES, *all_steps())}
    for name, spec in policies.items():
        (rule,) = spec["podSelector"]["matchExpressions"]
        assert rule["key"] == pods.STAGE_LABEL, name
        assert set(rule.get("values", [])) <= known, name
        assert "ingress" not in spec


def test_who_speaks_to_mlflow_may_reach_it(objects: dict[tuple[str, str], Any]) -> None:
    (rule,) = objects["NetworkPolicy", "voxveil-stages-mlflow"]["spec"]["podSelector"]["matchExpressions"]
    speaking = set()
    for task in tasks():
        keys = {
            item["configMapKey"]
            for reference in task.kubernetes.get("configMapAsEnv", [])
            for item in reference["keyToEnv"]
        }
        if "MLFLOW_TRACKING_URI" in keys:
            speaking.add(task.kubernetes["podMetadata"]["labels"][pods.STAGE_LABEL])
    assert set(rule["values"]) == speaking


def test_stages_with_private_speech_reach_neither_mlflow_nor_the_world(
    objects: dict[tuple[str, str], Any],
) -> None:
    private = {"anonymize", "score", "transcribe", "evaluate"}
    private |= {spec.name for spec in STEPS if share_of(spec.name) or gather_of(spec.name)}
    for name in ("voxveil-stages-mlflow", "voxveil-stages-https"):
        (rule,) = objects["NetworkPolicy", name]["spec"]["podSelector"]["matchExpressions"]
        assert not private & set(rule["values"]), name


def test_no_secret_is_in_the_tree(root: Path) -> None:
    kinds = {
        item["kind"]
        for path in (root / "infra").rglob("*.yaml")
        for item in yaml.safe_load_all(path.read_text())
        if item
    }
    assert "Secret" not in kinds


# The check that 'make infra-check' runs.


@pytest.fixture(scope="module")
def check(root: Path) -> ModuleType:
    pytest.importorskip("kubernetes_validate", reason="needs the dev extra")
    spec = importlib.util.spec_from_file_location("infra_check", root / "infra/check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def local(check: ModuleType) -> Objects:
    (overlay,) = [path for path in check.overlays() if path.name == "local"]
    return check.build(overlay)


def test_every_overlay_is_good(check: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["cloud", "local"]
    assert all(line.endswith("Kubernetes 1.33 to 1.37: good") for line in lines)


def item(items: Objects, kind: str, name: str) -> dict[str, Any]:
    return next(each for each in items if (each["kind"], each["metadata"]["name"]) == (kind, name))


def server(items: Objects) -> dict[str, Any]:
    return item(items, "Deployment", "mlflow")["spec"]["template"]["spec"]["containers"][0]


def misspell(items: Objects) -> None:
    server(items)["imagePullPolice"] = "Always"


def old_api(items: Objects) -> None:
    item(items, "Deployment", "mlflow")["apiVersion"] = "apps/v1beta1"


def unknown_kind(items: Objects) -> None:
    item(items, "Deployment", "mlflow")["kind"] = "Deploiment"


def wrong_type(items: Objects) -> None:
    item(items, "Deployment", "mlflow")["spec"]["replicas"] = "two"


def other_label(items: Objects) -> None:
    item(items, "Deployment", "mlflow")["spec"]["template"]["metadata"]["labels"] = {"app": "mlflow"}


def no_account(items: Objects) -> None:
    items.remove(item(items, "ServiceAccount", "mlflow"))


def no_config(items: Objects) -> None:
    items.remove(item(items, "ConfigMap", "mlflow"))


def no_such_key(items: Objects) -> None:
    server(items)["env"][0]["valueFrom"]["secretKeyRef"]["key"] = "PASSWORD"


def written_out(items: Objects) -> None:
    server(items)["env"][0] = {"name": "VOXVEIL_DB_PASSWORD", "value": "x"}


def a_secret(items: Objects) -> None:
    items.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "namespace": "voxveil"}})


def no_volume(items: Objects) -> None:
    item(items, "Deployment", "mlflow")["spec"]["template"]["spec"]["volumes"] = []


def wrong_port(items: Objects) -> None:
    item(items, "Service", "mlflow")["spec"]["ports"][0]["targetPort"] = "web"


def wrong_quantity(items: Objects) -> None:
    server(items)["resources"]["limits"]["memory"] = "1GiB"


def root_user(items: Objects) -> None:
    del item(items, "Deployment", "mlflow")["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"]


def writable(items: Objects) -> None:
    server(items)["securityContext"]["readOnlyRootFilesystem"] = False


def moving_image(items: Objects) -> None:
    server(items)["image"] = "voxveil-mlflow:latest"


def every_secret(items: Objects) -> None:
    for rule in item(items, "Role", "voxveil-runner")["rules"]:
        rule.pop("resourceNames", None)


def open_network(items: Objects) -> None:
    items.remove(item(items, "NetworkPolicy", "deny"))


def half_open_network(items: Objects) -> None:
    item(items, "NetworkPolicy", "deny")["spec"]["policyTypes"] = ["Ingress"]


def no_role(items: Objects) -> None:
    items.remove(item(items, "Role", "voxveil-runner"))


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        (misspell, "imagePullPolice"),
        (old_api, "has no apps/v1beta1 Deployment"),
        (unknown_kind, "has no apps/v1 Deploiment"),
        (wrong_type, "'two' is not of type"),
        (other_label, "finds none of its own pods"),
        (no_account, "no ServiceAccount mlflow"),
        (no_config, "no ConfigMap mlflow"),
        (no_such_key, "makes no key PASSWORD of Secret mlflow"),
        (written_out, "VOXVEIL_DB_PASSWORD is written out"),
        (a_secret, "secrets are made by people"),
        (no_volume, "mounts tmp, no volume of it"),
        (wrong_port, "no pod has a port web"),
        (wrong_quantity, "is no quantity: '1GiB'"),
        (root_user, "may run as root"),
        (writable, "may write its root"),
        (moving_image, "has no version"),
        (every_secret, "reads every secret"),
        (open_network, "no policy denies its traffic by default"),
        (half_open_network, "no policy denies its traffic by default"),
        (no_role, "no Role voxveil-runner"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_check_finds_what_is_wrong(
    spoil: Callable[[Objects], None],
    text: str,
    check: ModuleType,
    local: Objects,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # One schema is enough to be found by.
    monkeypatch.setattr(check, "VERSIONS", check.VERSIONS[:1])
    items = copy.deepcopy(local)
    spoil(items)
    faults = check.faults(items)
    assert any(text in fault for fault in faults), faults
