"""What is said of a GPU that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from voxveil.runtime.errors import InputError
from voxveil.training.devices import driver_version, gpu_fault, require_gpu

NEW = "580.95.05"


@pytest.mark.parametrize(
    ("cuda", "driver", "capability", "text"),
    [
        ("13.0", NEW, (9, 0), ""),
        ("13.0", NEW, (7, 5), ""),
        ("12.8", "525.60.13", (7, 0), ""),
        ("13.0", "", (9, 0), ""),
        ("13.0", "570.86.15", (9, 0), "CUDA 13.0 needs driver 580 or newer, the node has 570.86.15"),
        (
            "13.0",
            "535.1",
            None,
            "CUDA cannot be used: CUDA 13.0 needs driver 580 or newer, the node has 535.1",
        ),
        ("13.0", "", None, "the node has none"),
        ("13.0", NEW, (7, 0), "needs compute capability 7.5 (Turing) or newer, got 7.0"),
        ("14.1", NEW, None, "CUDA 14.1 needs a newer driver"),
        (None, NEW, None, "PyTorch without CUDA"),
    ],
)
def test_faults(cuda: str | None, driver: str, capability: tuple[int, int] | None, text: str) -> None:
    fault = gpu_fault(cuda, driver, capability)
    assert text in fault
    assert bool(fault) == bool(text)


@pytest.mark.parametrize("given", [{}, {"NVIDIA_VISIBLE_DEVICES": "void"}, {"NVIDIA_VISIBLE_DEVICES": ""}])
def test_without_a_gpu_nothing_is_asked(given: dict[str, str]) -> None:
    require_gpu(given)


@pytest.mark.torch
def test_a_gpu_that_cannot_be_used_stops_the_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch", reason="needs the train extra")
    # This machine may have one that can.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="a GPU was given, but"):
        require_gpu({"NVIDIA_VISIBLE_DEVICES": "GPU-0"})


@pytest.mark.parametrize(
    "line",
    [
        "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build",
    ],
)
def test_the_driver_says_its_version(line: str, tmp_path: Path) -> None:
    (tmp_path / "version").write_text(f"{line}\nGCC version: 12.2\n")
    assert driver_version(tmp_path / "version") == NEW
    assert driver_version(tmp_path / "none") == ""
