"""The training loop all models share, and early stopping.

What a step sees depends on (seed, step) only, so a killed run that resumes from its checkpoint
ends where an uninterrupted one does. Several processes may share the steps (:mod:`voxveil.training.ranks`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from voxveil.runtime.atomic import write_bytes
from voxveil.runtime.errors import VoxveilError
from voxveil.runtime.seeding import stream_seed
from voxveil.runtime.terminal import Progress
from voxveil.training import ranks
from voxveil.training.checkpoint import load_checkpoint, load_weights, model_bytes, save_checkpoint

__all__ = [
    "CurveSink",
    "EarlyStopping",
    "Plan",
    "TrainingError",
    "Watch",
    "device",
    "early_stopping",
    "fit",
    "precision",
    "seeded",
    "use_threads",
]

#: Called with (step, values) whenever a point of the curve is recorded.
CurveSink = Callable[[int, dict[str, float]], None]

#: Called with the step at every point of the curve; returns further values for it, and whether to stop.
Watch = Callable[[int], tuple[dict[str, float], bool]]

#: The best weights so far, beside the checkpoint.
_BEST = "best.safetensors"


class TrainingError(VoxveilError):
    """Training cannot go on (a loss that is not finite)."""

    exit_code = 1


@dataclass(frozen=True)
class Plan:
    """Parameters of a training.

    Attributes:
        name: For progress and messages, e.g. ``train_pitch[dp]``.
        seed: The run's seed.
        steps: Optimizer steps.
        learning_rate: Peak of a one-cycle schedule (linear warm-up over a tenth, cosine to a twentieth).
        clip: Largest gradient norm.
        checkpoint_seconds: Time between checkpoints.
        curve_every: Steps between points of the curve; 0 = a fortieth of the steps.
        bf16: Compute in bfloat16 where there is a GPU; parameters and their updates stay in float32.
    """

    name: str
    seed: int
    steps: int
    learning_rate: float
    clip: float = 1.0
    checkpoint_seconds: float = 5.0
    curve_every: int = 0
    bf16: bool = False


def device() -> torch.device:
    """Return the GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def use_threads(threads: int) -> None:
    """Let torch use ``threads`` CPU threads; 0 leaves its own choice."""
    if threads:
        torch.set_num_threads(threads)


@contextmanager
def seeded(seed: int, *keys: str | int) -> Iterator[None]:
    """Run a block with torch's generators seeded by (seed, keys), and leave them as they were."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(stream_seed(seed, *keys) % 2**63)
        yield


def precision(bf16: bool, where: torch.device, *, cpu: bool = False) -> AbstractContextManager[object]:
    """Return the context a loss is computed in: bfloat16 where asked for, else as it is.

    Args:
        bf16: Whether it is asked for.
        where: What computes.
        cpu: A CPU too may compute this in bfloat16 (no Fourier transform is among it).
    """
    if bf16 and (where.type == "cuda" or cpu):
        return torch.autocast(where.type, torch.bfloat16)
    return nullcontext()


class EarlyStopping:
    """A watch for :func:`fit`: keeps the best weights on held-out speech and ends when nothing improves.

    Args:
        model: What is trained.
        validate: Returns figures of the model as it is, called without gradients in evaluation mode.
        judged: The figure that should become small.
        patience: Points of the curve without a new best after which training ends.
        folder: Of the checkpoints; the best weights lie there too, so that a resumed training goes on as an
            uninterrupted one does. None = in memory.
    """

    def __init__(
        self,
        model: nn.Module,
        validate: Callable[[], Mapping[str, float]],
        *,
        judged: str,
        patience: int,
        folder: Path | None = None,
    ) -> None:
        self._model, self._validate, self._judged, self._patience = model, validate, judged, patience
        self._path = None if folder is None else Path(folder) / _BEST
        self._weights: dict[str, torch.Tensor] = {}
        self._best, self._waited = float("inf"), 0
        #: Step of the best point so far; 0 before the first.
        self.best_step = 0

    @property
    def resumes(self) -> bool:
        """The best weights outlive the process."""
        return self._path is not None

    def resume(self, curve: Sequence[Mapping[str, float]]) -> None:
        """Restore the state from a saved curve."""
        for point in curve:
            self._judge(point[self._judged], int(point["step"]))

    def __call__(self, step: int) -> tuple[dict[str, float], bool]:
        """Return the figures after ``step`` steps, and whether to stop."""
        with torch.no_grad():
            figures = ranks.agreed(self._validate())
        if self._judge(figures[self._judged], step):
            if self._path is None:
                self._weights = {name: value.clone() for name, value in self._model.state_dict().items()}
            elif ranks.is_first():
                write_bytes(self._path, model_bytes(self._model))
        return figures, self._waited >= self._patience

    def restore(self) -> int:
        """Give the model its best weights back and return their step; 0 leaves it as it is."""
        if self.best_step and self._path is not None:
            # The first has written it by then.
            ranks.barrier()
            load_weights(self._model, self._path)
        elif self._weights:
            self._model.load_state_dict(self._weights)
        return self.best_step

    def _judge(self, value: float, step: int) -> bool:
        better = value < self._best
        if better:
            self._best, self._waited, self.best_step = value, 0, step
        else:
            self._waited += 1
        return better


def early_stopping(
    model: nn.Module, validate: Callable[[], Mapping[str, float]], patience: int, folder: Path | None
) -> EarlyStopping | None:
    """Return the watch of a training judged by its figure ``held_out``; None where ``patience`` is 0."""
    if not patience:
        return None
    return EarlyStopping(model, validate, judged="held_out", patience=patience, folder=folder)


def fit(
    model: nn.Module,
    loss_of_step: Callable[[int], tuple[torch.Tensor, dict[str, float]]],
    plan: Plan,
    *,
    checkpoints: Path | None = None,
    sink: CurveSink | None = None,
    watch: Watch | None = None,
    apart: Sequence[nn.Module] = (),
) -> list[dict[str, float]]:
    """Train ``model`` and return its curve.

    Args:
        model: Every trained parameter; already initialized from a seed (:func:`seeded`).
        loss_of_step: Maps a step to (scalar loss, further values for the curve); draws its batch from
            ``voxveil.runtime.seeding.stream(seed, ..., step)``, takes its rows of it (``ranks.share``),
            and gives loss and values of the whole batch (``ranks.joint_mean`` and its like).
        plan: How to train.
        checkpoints: Folder to resume from and save to; none is kept if absent.
        sink: Called with each point of the curve, e.g. to stream it to MLflow.
        watch: May stop the training, asked in evaluation mode; :class:`EarlyStopping` also gives the model
            its best weights at the end. With ``checkpoints`` it must keep its best weights in a folder.
        apart: Parts of the model whose gradients are clipped by themselves (adversaries).

    Returns:
        Points ``{"step": ..., "loss": ..., "learning_rate": ..., ...}``; a loss is the mean since the last.

    Raises:
        TrainingError: The loss became NaN or infinite, or the processes read different checkpoints.
    """
    if checkpoints and watch is not None and not (isinstance(watch, EarlyStopping) and watch.resumes):
        raise ValueError(f"{plan.name}: a watch that keeps nothing on disk goes with no checkpoints")
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups, where = _groups(model, apart), parameters[0].device
    optimizer = torch.optim.Adam(parameters, lr=plan.learning_rate, betas=(0.9, 0.98))
    # None reads a checkpoint that the first is still writing.
    ranks.barrier()
    done, curve = load_checkpoint(checkpoints, model, optimizer) if checkpoints else (0, [])
    if ranks.agreed({"step": done})["step"] != done:
        raise TrainingError(
            f"{plan.name}: the processes read different checkpoints; {checkpoints} must be one folder"
        )
    if isinstance(watch, EarlyStopping):
        watch.resume(curve)
    every = plan.curve_every or max(1, plan.steps // 40)
    progress = Progress(plan.name, plan.steps, "step", start=done)
    saved, total, count = time.monotonic(), 0.0, 0
    step_loss = ranks.joint_step(model, loss_of_step)
    model.train()
    for step in range(done, plan.steps):
        rate = plan.learning_rate * _schedule(step, plan.steps)
        for settings in optimizer.param_groups:
            settings["lr"] = rate
        random = seeded(plan.seed, plan.name, "step", step, *ranks.key())
        with random, precision(plan.bf16, where), ranks.joint_batch_norm(model):
            loss, values = step_loss(step)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        for group in groups:
            torch.nn.utils.clip_grad_norm_(group, plan.clip)
        optimizer.step()
        number = float(loss.detach())
        if number != number or number in (float("inf"), float("-inf")):
            raise TrainingError(f"{plan.name}: the loss is {number} at step {step}; lower the learning rate")
        total, count = total + number, count + 1
        if (step + 1) % every == 0 or step + 1 == plan.steps:
            point = {"step": step + 1, "loss": total / count, "learning_rate": rate, **values}
            curve.append(point)
            total, count = 0.0, 0
            stop = False
            if watch is not None:
                model.eval()
                found, stop = watch(step + 1)
                point.update(found)
                model.train()
            if sink is not None:
                sink(step + 1, {name: value for name, value in point.items() if name != "step"})
            if stop:
                break
        progress.update(step + 1, f"loss {number:.4g}")
        # Only at a point of the curve: a mean over half an interval would differ after a resume.
        due = count == 0 and time.monotonic() - saved >= plan.checkpoint_seconds
        if checkpoints and due and step + 1 < plan.steps and ranks.is_first():
            save_checkpoint(checkpoints, step + 1, model, optimizer, curve)
            saved = time.monotonic()
    model.eval()
    if isinstance(watch, EarlyStopping):
        watch.restore()
    return curve


def _groups(model: nn.Module, apart: Sequence[nn.Module]) -> list[list[nn.Parameter]]:
    """Return the trained parameters of each part, and those of the rest."""
    groups = [[p for p in part.parameters() if p.requires_grad] for part in apart]
    taken = {id(p) for group in groups for p in group}
    rest = [p for p in model.parameters() if p.requires_grad and id(p) not in taken]
    return [group for group in (*groups, rest) if group]


def _schedule(step: int, steps: int) -> float:
    warm = max(1, steps // 10)
    if step < warm:
        return (step + 1) / warm
    position = torch.tensor((step - warm) / max(1, steps - warm) * torch.pi)
    return 0.05 + 0.95 * 0.5 * (1.0 + float(torch.cos(position)))
