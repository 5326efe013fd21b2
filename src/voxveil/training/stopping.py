"""Early stopping: keeps the best weights on held-out speech and ends when nothing improves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch
from torch import nn

from voxveil.runtime.atomic import write_bytes
from voxveil.training import ranks
from voxveil.training.checkpoint import load_model, model_bytes

__all__ = ["EarlyStopping", "early_stopping"]

_NAME = "best.safetensors"


class EarlyStopping:
    """A watch for :func:`voxveil.training.loop.fit`.

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
        self._path = None if folder is None else Path(folder) / _NAME
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
            load_model(self._model, self._path.read_bytes(), str(self._path))
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
