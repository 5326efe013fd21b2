"""A parameter section, and its check, as another package registers it."""

from __future__ import annotations

from dataclasses import dataclass

from voxveil.config.fields import knob
from voxveil.runtime.errors import ParamsError


@dataclass(frozen=True)
class MadeParams:
    """A section for tests."""

    low: int = knob(0, "the lower number", low=0)
    high: int = knob(9, "the higher number", low=0)

    def check(self, path: str) -> None:
        if self.low > self.high:
            raise ParamsError(f"{path}.low: must be at most {path}.high ({self.high}), got {self.low}")
