"""The training loop: resume equals an uninterrupted run, checkpoints without pickle, progress."""

from __future__ import annotations

import io
import math
import subprocess
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import nn

import numeric_margins
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream
from voxveil.runtime.terminal import Progress
from voxveil.training.checkpoint import load_model, model_bytes
from voxveil.training.loop import EarlyStopping, Plan, TrainingError, fit, precision, seeded

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]


def make() -> nn.Module:
    with seeded(3, "init"):
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.3), nn.Linear(8, 1))


def plan(steps: int = 24) -> Plan:
    return Plan("toy", 3, steps, 1e-2, checkpoint_seconds=0.0, curve_every=4)


def loss_of(model: nn.Module, stop_at: int | None = None):
    def loss_of_step(step: int):
        if step == stop_at:
            raise KeyboardInterrupt
        x = torch.from_numpy(stream(3, "batch", step).normal(size=(16, 4)).astype("float32"))
        loss = ((model(x)[:, 0] - x.sum(1)) ** 2).mean()
        return loss, {"twice": 2 * float(loss.detach())}

    return loss_of_step


@pytest.mark.parametrize("stop_at", [0, 5, 13, 23])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path: Path, stop_at: int) -> None:
    whole = make()
    curve = fit(whole, loss_of(whole), plan())
    part = make()
    with pytest.raises(KeyboardInterrupt):
        fit(part, loss_of(part, stop_at), plan(), checkpoints=tmp_path)
    resumed = make()
    again = fit(resumed, loss_of(resumed), plan(), checkpoints=tmp_path)
    assert again == curve
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name


def test_a_killed_run_resumes(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; sys.path[:0] = sys.argv[1:3]\n"
        "from pathlib import Path\nimport numeric_margins, test_training as t\n"
        "numeric_margins.compute_as_asked()\n"
        "t.torch.set_num_threads(1); model = t.make(); inner = t.loss_of(model)\n"
        "def loss(step):\n"
        "    if step == 17: os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return inner(step)\n"
        "t.fit(model, loss, t.plan(), checkpoints=Path(sys.argv[3]))\n"
    )
    modules = [str(Path(module).parent) for module in (__file__, numeric_margins.__file__)]
    command = [sys.executable, "-c", code, *modules, str(tmp_path)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -9
    whole, resumed = make(), make()
    fit(whole, loss_of(whole), plan())
    fit(resumed, loss_of(resumed), plan(), checkpoints=tmp_path)
    assert all(torch.equal(whole.state_dict()[name], value) for name, value in resumed.state_dict().items())


def test_a_loss_that_is_not_finite_stops_with_its_step() -> None:
    model = make()
    with pytest.raises(TrainingError, match=r"toy: the loss is nan at step 2"):
        fit(model, lambda step: (model(torch.ones(2, 4)).sum() * (math.nan if step == 2 else 1), {}), plan())


def test_training_leaves_the_global_generator_alone() -> None:
    torch.manual_seed(0)
    before = torch.get_rng_state()
    model = make()
    fit(model, loss_of(model), plan(3))
    assert torch.equal(before, torch.get_rng_state())


def test_model_bytes_fit_only_their_model() -> None:
    model = make()
    data = model_bytes(model)
    load_model(make(), data, "m")
    with pytest.raises(InputError, match=r"^x.safetensors: does not fit") as error:
        load_model(nn.Linear(2, 2), data, "x.safetensors")
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"does not fit"):
        load_model(make(), b"\x80\x04pickle", "x")


def test_progress_in_a_log_is_plain_lines_with_rate_and_time_left() -> None:
    now = iter([0.0, 1.0, 11.0, 30.0])
    stream_out = io.StringIO()
    progress = Progress("toy", 30, "step", stream=stream_out, clock=lambda: next(now))
    progress.update(1)
    progress.update(10, "loss 1")
    progress.update(30)
    lines = stream_out.getvalue().splitlines()
    assert lines == ["toy: 10/30 steps, 0.9/s, 22 s left, loss 1", "toy: 30/30 steps, 1.0/s"]


def watched(losses: list[float], patience: int) -> tuple[nn.Module, list[dict[str, float]], int]:
    model, answers, seen = make(), iter(losses), []

    def validate() -> dict[str, float]:
        assert not model.training and not torch.is_grad_enabled()
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return {"held": next(answers)}

    stopping = EarlyStopping(model, validate, judged="held", patience=patience)
    curve = fit(model, loss_of(model), plan(), watch=stopping)
    step = stopping.restore()
    for name, value in model.state_dict().items():
        assert torch.equal(value, seen[step // 4 - 1][name]), name
    return model, curve, step


def test_a_watched_training_ends_early_and_keeps_its_best_weights() -> None:
    _, curve, step = watched([3.0, 1.0, 2.0, 1.0, 0.5, 0.1], patience=2)
    assert [point["step"] for point in curve] == [4, 8, 12, 16]
    assert [point["held"] for point in curve] == [3.0, 1.0, 2.0, 1.0]
    assert step == 8
    _, curve, step = watched([3.0, 1.0, 2.0, 1.0, 0.5, 0.1], patience=3)
    assert (len(curve), step) == (6, 24)


def test_watching_changes_nothing_in_the_training(tmp_path: Path) -> None:
    plain, seen = make(), make()
    fit(plain, loss_of(plain), plan())
    fit(seen, loss_of(seen), plan(), watch=lambda step: ({}, False))
    for name, value in plain.state_dict().items():
        assert torch.equal(value, seen.state_dict()[name]), name
    with pytest.raises(ValueError, match="no checkpoints"):
        fit(make(), loss_of(plain), plan(), checkpoints=tmp_path, watch=lambda step: ({}, False))


@pytest.mark.parametrize("stop_at", [5, 17, 21])
def test_a_resumed_run_stops_where_an_uninterrupted_one_does(tmp_path: Path, stop_at: int) -> None:
    values = [5.0, 4.0, 3.0, 3.5, 3.0, 6.0, 1.0]

    def run(folder: Path | None, stop: int | None = None) -> tuple[nn.Module, list[dict[str, float]], int]:
        model, steps = make(), []
        inner = loss_of(model, stop)

        def loss(step: int):
            steps.append(step)
            return inner(step)

        watch = EarlyStopping(
            model, lambda: {"held": values[steps[-1] // 4]}, judged="held", patience=3, folder=folder
        )
        curve = fit(model, loss, plan(60), checkpoints=folder, watch=watch)
        return model, curve, watch.restore()

    model, curve, step = run(None)
    # Best at the third point; three points later nothing was better.
    assert [point["held"] for point in curve] == values[:6]
    assert step == 12
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, stop_at)
    again, same, at = run(tmp_path)
    assert (same, at) == (curve, step)
    for name, value in model.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), name


def test_adversaries_are_clipped_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.ModuleList([nn.Linear(2, 1), nn.Linear(2, 1)])
    x, norms = torch.ones(1, 2), []

    def loss(step: int):
        return 1e-3 * model[0](x).sum() + 1e3 * model[1](x).sum(), {}

    hook = torch.optim.Adam.step

    def spy(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        norms.extend(float(sum(p.grad.square().sum() for p in part.parameters())) ** 0.5 for part in model)
        return hook(self, *args, **kwargs)

    monkeypatch.setattr(torch.optim.Adam, "step", spy)
    fit(model, loss, Plan("toy", 3, 1, 1e-2), apart=(model[1],))
    assert norms == pytest.approx([1e-3 * 3**0.5, 1.0], rel=1e-3)


def test_bfloat16_is_for_the_gpu_or_what_a_cpu_may_compute_in_it() -> None:
    assert isinstance(precision(True, torch.device("cpu")), nullcontext)
    assert isinstance(precision(False, torch.device("cpu"), cpu=True), nullcontext)
    with precision(True, torch.device("cpu"), cpu=True):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    assert isinstance(precision(False, torch.device("cuda")), nullcontext)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no GPU here
        asked = precision(True, torch.device("cuda"))
    assert isinstance(asked, torch.autocast)
    assert (asked.device, asked.fast_dtype) == ("cuda", torch.bfloat16)
    if torch.cuda.is_available():
        with precision(True, torch.device("cuda")):
            assert (torch.ones(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")).dtype == torch.bfloat16
