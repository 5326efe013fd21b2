"""Pod resources from ``components/<stage>/resources.yaml``, and the images of stages."""

from __future__ import annotations

import dataclasses
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from voxveil.runtime.errors import InputError, ParamsError

__all__ = ["Images", "Resources", "load_images", "load_resources"]

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
