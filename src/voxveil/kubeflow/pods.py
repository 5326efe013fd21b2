"""Pod configuration of a stage: image, resources, GPU node, retries, secrets, caching."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from voxveil.config import Params
from voxveil.kubeflow.steps.registry import spec_of
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.registry import StageSpec

__all__ = [
    "CHECKPOINT_CLAIM",
    "CONFIG_MAP",
    "Images",
    "Configure",
    "SECRET",
    "STAGE_LABEL",
    "TRACKING_SECRET",
    "WEBHOOK_SECRET",
    "load_images",
    "load_resources",
    "pod_configurer",
]

_CPU = re.compile(r"[1-9][0-9]*m?\Z")
_MEMORY = re.compile(r"[1-9][0-9]*(Mi|Gi)\Z")
_DIGEST = re.compile(r"[^@\s]+@sha256:[0-9a-f]{64}\Z")


@dataclass(frozen=True)
class Resources:
    """Resources of one stage.

    Attributes:
        image: Target of docker/Dockerfile: ``cpu`` or ``gpu``.
        cpu: CPU cores requested and allowed, e.g. ``8``.
        memory: Memory requested and allowed, e.g. ``32Gi``.
        gpu: GPUs: 0 or 1 in the file.
        timeout_s: Seconds after which the pod is stopped.
        retries: How often a pod that was pre-empted or failed is started again.
    """

    image: str
    cpu: str
    memory: str
    gpu: int
    timeout_s: int
    retries: int

    def times(self, gpus: int) -> Resources:
        """Return the resources of ``gpus`` processes, each with a GPU and the file's resources."""
        if gpus == 1:
            return self
        cpu = re.sub(r"\d+", lambda count: str(gpus * int(count[0])), self.cpu)
        memory = re.sub(r"\d+", lambda count: str(gpus * int(count[0])), self.memory)
        return dataclasses.replace(self, cpu=cpu, memory=memory, gpu=gpus)


def load_resources(path: Path) -> Resources:
    """Read and check one ``resources.yaml``.

    Raises:
        ParamsError: Naming the file, the key, what was got and what is allowed.
    """
    try:
        content: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ParamsError(f"{path}: no such file") from None
    except yaml.YAMLError as error:
        raise ParamsError(f"{path}: not valid YAML ({' '.join(str(error).split())})") from None
    names = [field.name for field in dataclasses.fields(Resources)]
    if not isinstance(content, dict) or sorted(content) != sorted(names):
        raise ParamsError(f"{path}: must have exactly the keys {', '.join(names)}")
    allowed: dict[str, tuple[bool, str]] = {
        "image": (content["image"] in ("cpu", "gpu"), "cpu or gpu"),
        "cpu": (_matches(_CPU, content["cpu"]), "text such as '8' or '500m'"),
        "memory": (_matches(_MEMORY, content["memory"]), "text such as '32Gi' or '512Mi'"),
        "gpu": (content["gpu"] in (0, 1), "0 or 1"),
        "timeout_s": (_whole(content["timeout_s"], 1), "a whole number of seconds, at least 1"),
        "retries": (_whole(content["retries"], 0), "a whole number, at least 0"),
    }
    for name, (good, what) in allowed.items():
        if not good:
            raise ParamsError(f"{path}: {name}: must be {what}, got {content[name]!r}")
    return Resources(**content)


@dataclass(frozen=True)
class Images:
    """The image of each Dockerfile target."""

    cpu: str
    gpu: str

    def of(self, target: str) -> str:
        """Return the image of ``cpu`` or ``gpu``."""
        return self.gpu if target == "gpu" else self.cpu


def load_images(path: Path) -> Images:
    """Read ``images.lock.json``: an image by digest for each target.

    A tag can be moved to another content, and Kubeflow's cache key holds the text only.

    Raises:
        InputError: A target is missing, or an image is not named by digest.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file; it names the images by digest: "
            '{"cpu": "REGISTRY/voxveil-cpu@sha256:...", "gpu": "REGISTRY/voxveil-gpu@sha256:..."}'
        ) from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: not valid JSON ({error})") from None
    if not isinstance(content, dict) or sorted(content) != ["cpu", "gpu"]:
        raise InputError(f"{path}: must have exactly the keys cpu, gpu")
    for target, image in content.items():
        if not _matches(_DIGEST, image):
            raise InputError(f"{path}: {target}: must be NAME@sha256:64-HEX-DIGITS, not a tag; got {image!r}")
    return Images(**content)


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.match(value) is not None


def _whole(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= low


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

_STORE_CONFIG = ("AWS_ENDPOINT_URL", "AWS_REGION")
_STORE_SECRET = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
_TRACKING_CONFIG = ("MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME")
_TRACKING_SECRET = ("MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD")
_LEDGER_CONFIG = ("VOXVEIL_LEDGER",)

#: Takes a task, the stem of its stage and its key; returns the task.
Configure = Callable[[Any, str, str], Any]


def pod_configurer(root: Path, images: Images, params: Params) -> Configure:
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
        kubernetes.use_config_map_as_env(task, CONFIG_MAP, _same_names(_TRACKING_CONFIG))
        # A server without users needs no password.
        kubernetes.use_secret_as_env(task, TRACKING_SECRET, _same_names(_TRACKING_SECRET), optional=True)
        kubernetes.use_field_path_as_env(task, "KFP_RUN_ID", "metadata.labels['pipeline/runid']")
    if spec.uses("ledger"):
        kubernetes.use_config_map_as_env(task, CONFIG_MAP, _same_names(_LEDGER_CONFIG))
    if spec.uses("store"):
        kubernetes.use_config_map_as_env(task, CONFIG_MAP, _same_names(_STORE_CONFIG))
        kubernetes.use_secret_as_env(task, SECRET, _same_names(_STORE_SECRET))
    if spec.uses("webhook"):
        kubernetes.use_secret_as_env(task, WEBHOOK_SECRET, {"url": "VOXVEIL_WEBHOOK"}, optional=True)


def _same_names(names: Sequence[str]) -> dict[str, str]:
    """Return the variable of each key of a config map or secret: called as the key."""
    return {name: name for name in names}
