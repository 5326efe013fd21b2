"""Early stopping: keep the weights that did best on held-out speech, and end when nothing improves."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import nn

__all__ = ["EarlyStopping"]


class EarlyStopping:
    """A watch for :func:`voxveil.training.loop.fit`.

    Args:
        model: What is trained.
        validate: Returns figures of the model as it is, called without gradients in evaluation mode.
        judged: The figure that should become small.
        patience: Points of the curve without a new best after which training ends.
    """

    def __init__(
        self, model: nn.Module, validate: Callable[[], Mapping[str, float]], *, judged: str, patience: int
    ) -> None:
        self._model, self._validate, self._judged, self._patience = model, validate, judged, patience
        self._weights: dict[str, torch.Tensor] = {}
        self._best, self._waited = float("inf"), 0
        #: Step of the best point so far; 0 before the first.
        self.best_step = 0

    def __call__(self, step: int) -> tuple[dict[str, float], bool]:
        """Return the figures after ``step`` steps, and whether to stop."""
        with torch.no_grad():
            figures = dict(self._validate())
        if figures[self._judged] < self._best:
            self._best, self._waited, self.best_step = figures[self._judged], 0, step
            self._weights = {name: value.clone() for name, value in self._model.state_dict().items()}
        else:
            self._waited += 1
        return figures, self._waited >= self._patience

    def restore(self) -> int:
        """Give the model its best weights back and return their step; 0 leaves it as it is."""
        if self._weights:
            self._model.load_state_dict(self._weights)
        return self.best_step
