"""Two processes that train together end where one does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load

import made_ranks
import voxveil.features.speaker.crops as crops
from made_speech import write_models, write_prepared

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

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


@pytest.mark.parametrize("name", NAMES)
def test_two_processes_end_where_one_does(
    name: str, together: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "speaker":
        # Several processes draw a row's crop from the row's own stream; so does one here.
        rows = SimpleNamespace(count=lambda: 2, share=lambda count: slice(None))
        monkeypatch.setattr(crops, "ranks", rows)
    theirs = made_ranks.read_steps((together / f"0-{name}.safetensors").read_bytes())
    with made_ranks.watched_steps(follow=theirs.weights) as steps:
        model, alone = made_ranks.trainings(together)[name](tmp_path)
    curves = [json.loads((together / f"{place}.json").read_text())[name] for place in (0, 1)]
    assert curves[0] == curves[1]
    assert len(curves[0]) == len(alone) and len(alone) >= 4
    for got, wanted in zip(curves[0], alone, strict=True):
        assert got == pytest.approx(wanted, rel=1e-4, abs=1e-5)
    for kind in ("gradients", "means"):
        got, wanted = getattr(theirs, kind), getattr(steps, kind)
        assert len(got) == len(wanted) == len(curves[0])
        for step, (one, other) in enumerate(zip(got, wanted, strict=True)):
            assert difference(one, other) < 2e-2, (kind, step)
    first, second = (load((together / f"{place}.safetensors").read_bytes()) for place in (0, 1))
    state = model.state_dict()
    ours = {key: first[f"{name}.{key}"] for key in state}
    assert all(torch.equal(value, second[f"{name}.{key}"]) for key, value in ours.items())
    assert difference(list(ours.values()), list(state.values())) < 1e-4


def difference(got: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> float:
    """Return the largest difference of a tensor, relative to its norm.

    A gradient that is taken out again by what follows is rounding only; so what counts is at least a
    hundredth of the norm of all.
    """
    norms = [float(value.double().norm()) for value in wanted]
    whole = sum(norm**2 for norm in norms) ** 0.5
    return max(
        float((one.double() - other.double()).norm()) / max(norm, 1e-2 * whole)
        for one, other, norm in zip(got, wanted, norms, strict=True)
    )
