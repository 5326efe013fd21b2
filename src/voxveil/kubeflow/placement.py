"""Pod configuration of a stage: image, resources, GPU node, retries, secrets, caching."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from voxveil.config import Params
from voxveil.kubeflow.resources import Images, Resources, load_resources
from voxveil.kubeflow.steps.registry import spec_of
from voxveil.stages.registry import StageSpec

__all__ = [
    "CHECKPOINTS",
    "CHECKPOINT_CLAIM",
    "CONFIG_MAP",
    "SECRET",
    "STAGE_LABEL",
    "TRACKING_SECRET",
    "WEBHOOK_SECRET",
    "Place",
    "placer",
]

#: Label of every pod: the stem of its stage.
STAGE_LABEL = "voxveil/stage"

#: Objects of the cluster that pods refer to by name (infra/ makes them); never their content.
CONFIG_MAP = "voxveil"
SECRET = "voxveil-store"  # noqa: S105 - the name of a Kubernetes object
TRACKING_SECRET = "voxveil-mlflow"  # noqa: S105 - the name of a Kubernetes object
WEBHOOK_SECRET = "voxveil-webhook"  # noqa: S105 - the name of a Kubernetes object
CHECKPOINT_CLAIM = "voxveil-checkpoints"

#: Where the volume of checkpoints is mounted.
CHECKPOINTS = "/checkpoints"

# The label that NVIDIA's feature discovery gives to nodes, and the taint that keeps others off them.
_GPU = "nvidia.com/gpu"
_GPU_LABEL = ("nvidia.com/gpu.present", "true")
_SHARED = "8Gi"

_STORE_CONFIG = {"AWS_ENDPOINT_URL": "AWS_ENDPOINT_URL", "AWS_REGION": "AWS_REGION"}
_STORE_SECRET = {"AWS_ACCESS_KEY_ID": "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY": "AWS_SECRET_ACCESS_KEY"}
_TRACKING_CONFIG = {
    "MLFLOW_TRACKING_URI": "MLFLOW_TRACKING_URI",
    "MLFLOW_EXPERIMENT_NAME": "MLFLOW_EXPERIMENT_NAME",
}
_TRACKING_SECRET = {
    "MLFLOW_TRACKING_USERNAME": "MLFLOW_TRACKING_USERNAME",
    "MLFLOW_TRACKING_PASSWORD": "MLFLOW_TRACKING_PASSWORD",
}

_LEDGER_CONFIG = {"VOXVEIL_LEDGER": "VOXVEIL_LEDGER"}

#: Takes a task, the stem of its stage and its key; returns the task.
Place = Callable[[Any, str, str], Any]


def placer(root: Path, images: Images, params: Params) -> Place:
    """Return the function a pipeline calls on each of its tasks.

    Args:
        root: The project, for ``components/<stage>/resources.yaml``.
        images: Image of each target.
        params: Say how many GPUs a training shares its steps between (``SECTION.gpus``).
    """
    known: dict[str, Resources] = {}

    def configure(task: Any, stage: str, key: str = "") -> Any:
        spec = spec_of(stage)
        if stage not in known:
            known[stage] = load_resources(root / "components" / spec.name / "resources.yaml")
        resources = known[stage].times(getattr(params, spec.name).gpus if spec.trains else 1)
        _run_as(task, spec, key, resources, images)
        _schedule(task, resources)
        _connect(task, spec)
        return task

    return configure


def _run_as(task: Any, spec: StageSpec, key: str, resources: Resources, images: Images) -> None:
    from kfp import kubernetes

    task.set_display_name(f"{spec.name} {key}".strip())
    task.set_container_image(images.of(resources.image))
    if not spec.cacheable:
        # In the file itself: switching caching off when submitting is ignored for uploaded pipelines.
        task.set_caching_options(False)
    kubernetes.add_pod_label(task, STAGE_LABEL, spec.name)
    # /tmp stays writable where the root file system is read-only.
    kubernetes.empty_dir_mount(task, "tmp", "/tmp")  # noqa: S108


def _schedule(task: Any, resources: Resources) -> None:
    from kfp import kubernetes

    task.set_cpu_request(resources.cpu).set_cpu_limit(resources.cpu)
    task.set_memory_request(resources.memory).set_memory_limit(resources.memory)
    kubernetes.set_timeout(task, resources.timeout_s)
    if resources.retries:
        task.set_retry(
            resources.retries, backoff_duration="60s", backoff_factor=2, backoff_max_duration="1800s"
        )
    if resources.gpu:
        task.set_accelerator_type(_GPU).set_accelerator_limit(resources.gpu)
        kubernetes.add_node_selector(task, *_GPU_LABEL)
        kubernetes.add_toleration(task, key=_GPU, operator="Exists", effect="NoSchedule")
    if resources.gpu > 1:
        # GPUs that cannot reach each other's memory talk through this one; a pod's own has 64 MiB. It counts
        # as memory of the pod.
        kubernetes.empty_dir_mount(task, "shm", "/dev/shm", medium="Memory", size_limit=_SHARED)  # noqa: S108


def _connect(task: Any, spec: StageSpec) -> None:
    """Give a stage the stores it uses, by reference only."""
    from kfp import kubernetes

    if spec.trains:
        kubernetes.mount_pvc(task, CHECKPOINT_CLAIM, CHECKPOINTS)
        task.set_env_variable("VOXVEIL_CHECKPOINTS", CHECKPOINTS)
    if spec.uses("mlflow"):
        kubernetes.use_config_map_as_env(task, CONFIG_MAP, _TRACKING_CONFIG)
        # A server without users needs no password.
        kubernetes.use_secret_as_env(task, TRACKING_SECRET, _TRACKING_SECRET, optional=True)
        kubernetes.use_field_path_as_env(task, "KFP_RUN_ID", "metadata.labels['pipeline/runid']")
    if spec.uses("ledger"):
        kubernetes.use_config_map_as_env(task, CONFIG_MAP, _LEDGER_CONFIG)
    if spec.uses("store"):
        kubernetes.use_config_map_as_env(task, CONFIG_MAP, _STORE_CONFIG)
        kubernetes.use_secret_as_env(task, SECRET, _STORE_SECRET)
    if spec.uses("webhook"):
        kubernetes.use_secret_as_env(task, WEBHOOK_SECRET, {"url": "VOXVEIL_WEBHOOK"}, optional=True)
