"""Data-parallel training: every process takes its share of a step's batch.

A step gives the same on one process and on N, up to rounding: what a loss adds up over its batch is added up
over the processes (:func:`total`), batch norm takes its statistics from the whole batch, and gradients are
averaged (Li et al., "PyTorch Distributed", VLDB 2020). Every process then has the same weights without being
sent any. With one process everything here does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from voxveil.runtime.errors import ParamsError

__all__ = [
    "agreed",
    "barrier",
    "count",
    "is_first",
    "joined",
    "joint_batch_norm",
    "joint_mean",
    "joint_norm",
    "joint_step",
    "key",
    "rank",
    "share",
    "total",
]

#: How long a process waits for the others before it takes them for lost.
_PATIENCE = timedelta(minutes=30)

LossOfStep = Callable[[int], tuple[torch.Tensor, dict[str, float]]]


def count() -> int:
    """Return the number of processes that train together, at least 1."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Return this process's rank, from 0."""
    return dist.get_rank() if dist.is_initialized() else 0


def is_first() -> bool:
    """Return whether this process writes and reports."""
    return rank() == 0


def key() -> tuple[str | int, ...]:
    """Return this process's suffix for keys of random streams that differ by process; empty for the first."""
    return () if is_first() else ("rank", rank())


def share(rows: int) -> slice:
    """Return this process's rows of a batch: every N-th.

    Raises:
        ParamsError: There are fewer rows than processes.
    """
    if rows < count():
        raise ParamsError(
            f"gpus: got {count()}, more than the {rows} rows of a batch; every process needs one at least"
        )
    return slice(rank(), None, count())


class _Total(torch.autograd.Function):
    """Sum over the processes; each of them goes on with it, so each one's gradient counts."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        result = value.clone()
        dist.all_reduce(result)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        result = gradients[0].clone()
        dist.all_reduce(result)
        return result


def total(value: torch.Tensor) -> torch.Tensor:
    """Return the sum of ``value`` over the processes, with its gradient."""
    if count() == 1:
        return value
    result: torch.Tensor = _Total.apply(value)
    return result


def joint_mean(value: torch.Tensor, weight: torch.Tensor | float) -> torch.Tensor:
    """Return the mean over the whole batch.

    Args:
        value: () mean over this process's share.
        weight: What that share counts: its rows or frames, above 0.
    """
    if count() == 1:
        return value
    counted = torch.as_tensor(weight, dtype=value.dtype, device=value.device)
    return total(value * counted) / total(counted)


def joint_norm(value: torch.Tensor) -> torch.Tensor:
    """Return the Euclidean norm over the whole batch, given that of this process's share."""
    # The root has no gradient at 0.
    return value if count() == 1 else total(value.square()).clamp_min(1e-30).sqrt()


def agreed(values: Mapping[str, float]) -> dict[str, float]:
    """Return the first process's values, so that all processes decide alike."""
    if count() == 1:
        return dict(values)
    names = sorted(values)
    broadcast = torch.tensor([values[name] for name in names], dtype=torch.float64, device=_where())
    dist.broadcast(broadcast, 0)
    return dict(zip(names, broadcast.tolist(), strict=True))


def barrier() -> None:
    """Wait until every process has reached this call."""
    if count() > 1:
        dist.barrier()


@contextmanager
def joined(local_rank: int, processes: int) -> Iterator[None]:
    """Train together with the other processes that torchrun started, on a GPU each, or on the CPU.

    Args:
        local_rank: Of this process on this machine, which is also its GPU.
        processes: How many there are.
    """
    if torch.cuda.is_available():
        where = torch.device("cuda", local_rank)
        torch.cuda.set_device(where)
        dist.init_process_group("nccl", timeout=_PATIENCE, device_id=where)
    else:
        dist.init_process_group("gloo", timeout=_PATIENCE)
    if count() != processes:
        raise RuntimeError(f"{count()} processes have joined, {processes} were started")
    yield
    # Not after an error: it may wait for the others, who wait for what this one did not do.
    dist.destroy_process_group()


def joint_step(model: nn.Module, loss_of_step: LossOfStep) -> LossOfStep:
    """Return ``loss_of_step`` as something whose gradients are averaged over the processes."""
    if count() == 1:
        return loss_of_step
    # Buffers need no sending: batch norm's are equal everywhere, the others are constants.
    step: LossOfStep = DistributedDataParallel(_Step(model, loss_of_step), broadcast_buffers=False)
    return step


class _Step(nn.Module):
    """A step as the forward pass of a module that owns the trained parameters."""

    def __init__(self, model: nn.Module, loss_of_step: LossOfStep) -> None:
        super().__init__()
        self.model = model
        self._loss_of_step = loss_of_step

    def forward(self, step: int) -> tuple[torch.Tensor, dict[str, float]]:
        return self._loss_of_step(step)


@contextmanager
def joint_batch_norm(model: nn.Module) -> Iterator[None]:
    """Let every batch norm of ``model`` take its statistics from the whole batch.

    PyTorch's SyncBatchNorm does so on GPUs only.
    """
    layers = [] if count() == 1 else [module for module in model.modules() if isinstance(module, _BatchNorm)]
    for layer in layers:
        layer.forward = partial(_batch_norm, layer)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _batch_norm(layer: _BatchNorm, given: torch.Tensor) -> torch.Tensor:
    if not layer.training:
        return type(layer).forward(layer, given)
    values = given.float()
    over = [axis for axis in range(values.ndim) if axis != 1]
    shape = [-1 if axis == 1 else 1 for axis in range(values.ndim)]
    rows = values.new_full((1,), values.numel() / values.shape[1])
    sums = total(torch.cat([values.sum(over), rows]))
    number = sums[-1]
    mean = sums[:-1] / number
    centred = values - mean.view(shape)
    variance = total(centred.square().sum(over)) / number
    _keep_statistics(layer, mean.detach(), variance.detach() * number / (number - 1))
    result = centred * torch.rsqrt(variance + layer.eps).view(shape)
    if layer.affine:
        result = result * layer.weight.view(shape) + layer.bias.view(shape)
    return result.to(given.dtype)


def _keep_statistics(layer: _BatchNorm, mean: torch.Tensor, variance: torch.Tensor) -> None:
    if layer.running_mean is None or layer.running_var is None or layer.num_batches_tracked is None:
        return
    layer.num_batches_tracked.add_(1)
    share = layer.momentum if layer.momentum is not None else 1.0 / float(layer.num_batches_tracked)
    layer.running_mean.lerp_(mean, share)
    layer.running_var.lerp_(variance, share)


def _where() -> torch.device:
    return torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
