"""Check before any work that this PyTorch can use the pod's GPU.

PyTorch falls back to the processor without a word where the driver is too old, and a node that costs
dollars an hour then does what a laptop could.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from voxveil.runtime.errors import InputError

__all__ = ["CAPABILITY", "DRIVERS", "driver_version", "gpu_fault", "require_gpu"]

#: Oldest driver on Linux by major version of CUDA (NVIDIA's CUDA compatibility guide).
DRIVERS: Mapping[int, int] = {11: 450, 12: 525, 13: 580}
#: Oldest GPU generation that CUDA 13 builds for: Turing (T4, RTX 20).
CAPABILITY = (7, 5)

_VERSION = Path("/proc/driver/nvidia/version")


def require_gpu(environ: Mapping[str, str] | None = None) -> None:
    """Raise an error if a GPU was assigned but is not usable, or is too old.

    NVIDIA's device plugin names the GPUs of a pod in ``NVIDIA_VISIBLE_DEVICES``; without it there is none.

    Raises:
        InputError: What is too old or missing, and what is needed.
    """
    env = os.environ if environ is None else environ
    if env.get("NVIDIA_VISIBLE_DEVICES", "void") in ("", "void", "none"):
        return
    import torch

    usable = torch.cuda.is_available()
    capability = torch.cuda.get_device_capability() if usable else None
    fault = gpu_fault(torch.version.cuda, driver_version(), capability)
    if fault:
        raise InputError(fault)


def gpu_fault(cuda: str | None, driver: str, capability: tuple[int, int] | None) -> str:
    """Return why the GPU cannot be used, empty where it can.

    Args:
        cuda: Version of CUDA that PyTorch was built with, None for a build without.
        driver: Version of the driver, empty where there is none.
        capability: Compute capability of the GPU, None where CUDA cannot be used.
    """
    if cuda is None:
        return (
            "a GPU was given, but this image holds PyTorch without CUDA; build target gpu without TORCH_INDEX"
        )
    major = int(cuda.partition(".")[0])
    needed = DRIVERS.get(major)
    wanted = f"CUDA {cuda} needs driver {needed} or newer" if needed else f"CUDA {cuda} needs a newer driver"
    if capability is None:
        return f"a GPU was given, but CUDA cannot be used: {wanted}, the node has {driver or 'none'}"
    if needed and driver and int(driver.partition(".")[0]) < needed:
        return f"the driver of this node is too old: {wanted}, the node has {driver}"
    if major >= 13 and capability < CAPABILITY:
        least = ".".join(map(str, CAPABILITY))
        got = ".".join(map(str, capability))
        return (
            f"the GPU is too old: CUDA {cuda} needs compute capability {least} (Turing) or newer, got {got}"
        )
    return ""


def driver_version(path: Path = _VERSION) -> str:
    """Return the version of the kernel's NVIDIA driver, empty where there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"Kernel Module(?: for \S+)?\s+(\d+(?:\.\d+)+)", text)
    return found[1] if found else ""
