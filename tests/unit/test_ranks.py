"""Two processes that train together end where one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load

import made_ranks
import voxveil.features.speaker.crops as crops
from made_speech import write_models, write_prepared
from voxveil.training.loop import use_threads

pytestmark = pytest.mark.torch

#: Taken out again by what follows, so that their gradient is rounding only; and what adds them up.
UNDETERMINED = ("frames.frames.14.bias", "frames.segment.bias", "rows.running_mean", "output.bias")
NAMES = (
    "toy",
    "resumed",
    "stopped early",
    "pitch",
    "content",
    "speaker",
    "vocoder",
    "adversarial",
    "acoustic",
)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every training by two processes."""
    folder = tmp_path_factory.mktemp("ranks")
    write_prepared(folder)
    write_models(folder / "models")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--local-addr", "localhost"]
    command += ["--nproc-per-node", "2", made_ranks.__file__, str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment(), timeout=400
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


def environment() -> dict[str, str]:
    """Return the variables of this machine without its GPUs: two processes cannot share one."""
    more = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
    return {**os.environ, **more, "CUDA_VISIBLE_DEVICES": ""}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    use_threads(1)
    yield
    use_threads(before)


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_end_where_one_does(
    name: str, together: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "speaker":
        # Several processes draw a row's crop from the row's own stream; so does one here.
        rows = SimpleNamespace(count=lambda: 2, share=lambda count: slice(None))
        monkeypatch.setattr(crops, "ranks", rows)
    model, alone = made_ranks.trainings(together)[name](tmp_path)
    curves = [json.loads((together / f"{place}.json").read_text())[name] for place in (0, 1)]
    assert curves[0] == curves[1]
    assert len(curves[0]) == len(alone) and len(alone) >= 4
    for got, wanted in zip(curves[0], alone, strict=True):
        assert got == pytest.approx(wanted, rel=2e-3, abs=1e-5)
    first, second = (load((together / f"{place}.safetensors").read_bytes()) for place in (0, 1))
    missed = whole = 0.0
    for key, value in model.state_dict().items():
        got = first[f"{name}.{key}"]
        assert torch.equal(got, second[f"{name}.{key}"]), key
        if key not in UNDETERMINED:
            missed += float((got.double() - value.double()).square().sum())
            whole += float(value.double().square().sum())
    assert missed**0.5 < 1e-3 * whole**0.5
