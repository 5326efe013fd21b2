"""What pods refer to by name exists in the base, and no secret lies in the tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import goldens
import pytest
import yaml

from voxveil.kubeflow import placement
from voxveil.kubeflow.graph import read_pipeline


@pytest.fixture(scope="module")
def objects(root: Path) -> dict[tuple[str, str], dict[str, Any]]:
    base = root / "infra/base"
    resources = yaml.safe_load((base / "kustomization.yaml").read_text())["resources"]
    documents = [item for name in resources for item in yaml.safe_load_all((base / name).read_text())]
    return {(item["kind"], item["metadata"]["name"]): item for item in documents}


def test_every_value_a_pod_takes_is_in_the_config_map(objects: dict[tuple[str, str], Any]) -> None:
    given = set(objects["ConfigMap", placement.CONFIG_MAP]["data"])
    taken = set()
    for task in read_pipeline(goldens.golden("tiny").read_text()).tasks:
        for reference in task.kubernetes.get("configMapAsEnv", []):
            assert reference["configMapName"] == placement.CONFIG_MAP
            taken |= {item["configMapKey"] for item in reference["keyToEnv"]}
    assert taken == given


def test_the_claim_of_checkpoints_exists(objects: dict[tuple[str, str], Any]) -> None:
    assert ("PersistentVolumeClaim", placement.CHECKPOINT_CLAIM) in objects


def test_the_network_policy_selects_the_label_of_stages(objects: dict[tuple[str, str], Any]) -> None:
    (rule,) = objects["NetworkPolicy", "voxveil-stages"]["spec"]["podSelector"]["matchExpressions"]
    assert rule == {"key": placement.STAGE_LABEL, "operator": "Exists"}


def test_no_secret_is_in_the_tree(root: Path) -> None:
    kinds = {
        item["kind"]
        for path in (root / "infra").rglob("*.yaml")
        for item in yaml.safe_load_all(path.read_text())
        if item
    }
    assert "Secret" not in kinds
    assert placement.SECRET in (root / "infra/README.md").read_text()
