"""Build every overlay and refuse what a cluster would refuse, or accept and not run.

    make infra-check

Each overlay is built by kustomize and every object held against the schemas of several Kubernetes
versions, unknown fields and kinds refused. Schemas say nothing about whether objects fit together, so that
is checked here too: names that pods refer to, labels that selectors look for, quantities, and the rules of
this project (no root, nothing writable, no secret in the tree, no image without a version, a default-deny
policy over every pod).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
VERSIONS = ("1.33", "1.34", "1.35", "1.36", "1.37")
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "Job")
#: Made by people or by Kubeflow, never by these files: (kind, namespace, name).
GIVEN = {
    ("Secret", "voxveil", "mlflow"): {
        "DB_PASSWORD",
        "ADMIN_PASSWORD",
        "FLASK_SECRET_KEY",
        "S3_ACCESS_KEY",
        "S3_SECRET_KEY",
    },
}
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?\Z")

Object = dict[str, Any]


def overlays() -> list[Path]:
    """Return the folders of all overlays."""
    return sorted(path.parent for path in HERE.glob("overlays/*/kustomization.yaml"))


def build(overlay: Path) -> list[Object]:
    """Return every object of an overlay, as kustomize makes it."""
    program = shutil.which("kubectl", path=f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin")
    if program is None:
        raise SystemExit("infra-check: no kubectl; it comes with requirements/dev.txt")
    done = subprocess.run([program, "kustomize", str(overlay)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"infra-check: {overlay.name}: {done.stderr.strip()}")
    return [item for item in yaml.safe_load_all(done.stdout) if item]


def name_of(item: Object) -> str:
    """Return KIND NAMESPACE/NAME."""
    meta = item["metadata"]
    return f"{item['kind']} {meta.get('namespace', '-')}/{meta['name']}"


def schema_faults(item: Object, version: str) -> Iterator[str]:
    """Yield what the schema of a Kubernetes version refuses."""
    import kubernetes_validate

    try:
        kubernetes_validate.validate(item, version, strict=True)
    except kubernetes_validate.SchemaNotFoundError:
        yield f"{name_of(item)}: Kubernetes {version} has no {item['apiVersion']} {item['kind']}"
    except kubernetes_validate.ValidationError as error:
        where = ".".join(str(part) for part in error.path)
        yield f"{name_of(item)}: {where}: {error.message} (Kubernetes {version})"


def pods(items: list[Object]) -> Iterator[tuple[Object, Object]]:
    """Yield each workload with its pod template."""
    for item in items:
        if item["kind"] in WORKLOADS:
            yield item, item["spec"]["template"]


def fit_faults(items: list[Object]) -> Iterator[str]:
    """Yield where objects do not fit together."""
    by_name = {
        (item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]): item
        for item in items
    }
    if len(by_name) != len(items):
        yield "an object is there twice"
    for item, template in pods(items):
        space = item["metadata"]["namespace"]
        labels = template["metadata"]["labels"]
        selector = item["spec"].get("selector", {}).get("matchLabels", {})
        if not selector.items() <= labels.items():
            yield f"{name_of(item)}: its selector {selector} finds none of its own pods"
        account = template["spec"].get("serviceAccountName")
        if account and ("ServiceAccount", space, account) not in by_name:
            yield f"{name_of(item)}: no ServiceAccount {account}"
        for container in template["spec"]["containers"]:
            yield from _reference_faults(item, container, space, by_name)
            mounts = {mount["name"] for mount in container.get("volumeMounts", [])}
            volumes = {volume["name"] for volume in template["spec"].get("volumes", [])}
            volumes |= {claim["metadata"]["name"] for claim in item["spec"].get("volumeClaimTemplates", [])}
            if mounts - volumes:
                yield f"{name_of(item)}: mounts {', '.join(sorted(mounts - volumes))}, no volume of it"
    for item in items:
        if item["kind"] in ("Service", "PodDisruptionBudget"):
            selector = item["spec"]["selector"]
            wanted = selector.get("matchLabels", selector) if item["kind"] != "Service" else selector
            space = item["metadata"]["namespace"]
            found = [
                t
                for w, t in pods(items)
                if w["metadata"]["namespace"] == space and wanted.items() <= t["metadata"]["labels"].items()
            ]
            if not found:
                yield f"{name_of(item)}: selects no pod ({wanted})"
            if item["kind"] == "Service":
                ports = {
                    p.get("name") for t in found for c in t["spec"]["containers"] for p in c.get("ports", [])
                }
                for port in item["spec"]["ports"]:
                    if isinstance(port.get("targetPort"), str) and port["targetPort"] not in ports:
                        yield f"{name_of(item)}: no pod has a port {port['targetPort']}"
        if item["kind"] == "RoleBinding":
            space = item["metadata"]["namespace"]
            if ("Role", space, item["roleRef"]["name"]) not in by_name:
                yield f"{name_of(item)}: no Role {item['roleRef']['name']}"
            for subject in item["subjects"]:
                if (subject["kind"], subject.get("namespace", space), subject["name"]) not in by_name:
                    yield f"{name_of(item)}: no {subject['kind']} {subject['name']}"


def _reference_faults(
    item: Object, container: Object, space: str, by_name: dict[Any, Object]
) -> Iterator[str]:
    maps = [source["configMapRef"]["name"] for source in container.get("envFrom", [])]
    for name in maps:
        if ("ConfigMap", space, name) not in by_name:
            yield f"{name_of(item)}: no ConfigMap {name}"
    for variable in container.get("env", []):
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        if reference:
            keys = GIVEN.get(("Secret", space, reference["name"]), set())
            if reference["key"] not in keys:
                what = f"key {reference['key']} of Secret {reference['name']}"
                yield f"{name_of(item)}: infra/README.md makes no {what}"
        elif any(word in variable["name"] for word in ("PASSWORD", "SECRET", "TOKEN")):
            yield f"{name_of(item)}: {variable['name']} is written out"


def rule_faults(items: list[Object]) -> Iterator[str]:
    """Yield what this project does not allow."""
    for item in items:
        if item["kind"] == "Secret":
            yield f"{name_of(item)}: secrets are made by people, not by files"
        if item["kind"] in ("Role", "ClusterRole"):
            for rule in item["rules"]:
                if "*" in (*rule["verbs"], *rule["resources"], *rule["apiGroups"]):
                    yield f"{name_of(item)}: allows everything (*)"
                if "secrets" in rule["resources"] and not rule.get("resourceNames"):
                    yield f"{name_of(item)}: reads every secret"
        for where, value in _quantities(item):
            if not isinstance(value, (str, int)) or not _QUANTITY.match(str(value)):
                yield f"{name_of(item)}: {where} is no quantity: {value!r}"
    for item, template in pods(items):
        spec = template["spec"]
        privileged = item["metadata"]["namespace"] == "kube-system"
        if spec.get("automountServiceAccountToken") is not False:
            yield f"{name_of(item)}: takes a token for Kubernetes that it does not need"
        if not privileged and spec.get("securityContext", {}).get("runAsNonRoot") is not True:
            yield f"{name_of(item)}: may run as root"
        for container in spec["containers"]:
            context = container.get("securityContext", {})
            if (
                context.get("readOnlyRootFilesystem") is not True
                or context.get("allowPrivilegeEscalation") is not False
            ):
                yield f"{name_of(item)}: container {container['name']} may write its root or gain privileges"
            if context.get("capabilities", {}).get("drop") != ["ALL"]:
                yield f"{name_of(item)}: container {container['name']} keeps capabilities"
            if not re.search(r":[\w.-]+$|@sha256:[0-9a-f]{64}$", container["image"]) or container[
                "image"
            ].endswith(":latest"):
                yield f"{name_of(item)}: image {container['image']} has no version"
            if not container.get("resources", {}).get("limits", {}).get("memory"):
                yield f"{name_of(item)}: container {container['name']} has no limit of memory"
        if not privileged and not _denied(items, item, template):
            yield f"{name_of(item)}: no policy denies its traffic by default"


def _denied(items: list[Object], item: Object, template: Object) -> bool:
    for policy in items:
        same = (
            policy["kind"] == "NetworkPolicy"
            and policy["metadata"]["namespace"] == item["metadata"]["namespace"]
        )
        if (
            same
            and not policy["spec"]["podSelector"]
            and {"Ingress", "Egress"} <= set(policy["spec"]["policyTypes"])
        ):
            rules = [*policy["spec"].get("ingress", []), *policy["spec"].get("egress", [])]
            if not rules:
                return True
    return False


def _quantities(value: Any, where: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            inner = f"{where}.{key}".strip(".")
            if key in ("requests", "limits", "hard") and isinstance(item, dict):
                yield from ((f"{inner}.{name}", amount) for name, amount in item.items())
            else:
                yield from _quantities(item, inner)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _quantities(item, f"{where}[{number}]")


def faults(items: list[Object]) -> list[str]:
    """Return everything that is wrong with the objects of an overlay."""
    found = [fault for version in VERSIONS for item in items for fault in schema_faults(item, version)]
    return [*dict.fromkeys(found), *fit_faults(items), *rule_faults(items)]


def main() -> int:
    """Check every overlay; 1 where anything is wrong."""
    wrong = 0
    for overlay in overlays():
        items = build(overlay)
        found = faults(items)
        wrong += len(found)
        for fault in found:
            print(f"{overlay.name}: {fault}")
        if not found:
            print(f"{overlay.name}: {len(items)} objects, Kubernetes {VERSIONS[0]} to {VERSIONS[-1]}: good")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
