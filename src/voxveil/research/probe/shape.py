"""Schema check of ``probe.json``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from voxveil.results.report.shape import EPSILON, FLAG, NUMBER, PAIR, SOME, TEXT, Maybe, check_shape
from voxveil.runtime.errors import IncompleteInputError

__all__ = ["check_probe"]

_MEASURED = {"value": Maybe(NUMBER), "ci95?": Maybe(PAIR)}
_COMMON = {
    "variant": TEXT,
    "mechanism": TEXT,
    "draw": SOME,
    "corpus": {"name": TEXT, "synthetic": FLAG},
    "loss": {"epsilon": EPSILON, "measure?": TEXT, "rho?": Maybe(NUMBER)},
    "epsilon_utterance": {"median": EPSILON},
    "asi": {"accuracy": NUMBER, "p_asi": NUMBER, "p_asi_ci95": PAIR, "chance": NUMBER, "limit": NUMBER},
}
_OF_KIND: dict[str, dict[str, Any]] = {
    "pitch": {
        "correlation": _MEASURED,
        "correlation_floor?": _MEASURED,
        "tracks": [{"utterance": TEXT, "true": [NUMBER], "released": [NUMBER]}],
    },
    "content": {
        "every": SOME,
        "phones": SOME,
        "phone_frames": NUMBER,
        "frame_chance": NUMBER,
        "vectors": {"median": NUMBER},
        "frame_accuracy": {"all": _MEASURED},
        "frame_accuracy_phone_lm?": {"all": _MEASURED},
        "wer?": _MEASURED,
        "delta?": NUMBER,
        "epsilon_delta_utterance?": {"median": NUMBER},
    },
}


def check_probe(path: Path, content: dict[str, Any]) -> None:
    """Raise an error if a probe lacks a required field.

    Raises:
        IncompleteInputError: Naming the file, the place, what is there and what must be.
    """
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in _OF_KIND:
        raise IncompleteInputError(f"{path}: kind must be pitch or content, got {kind!r}; run it again")
    check_shape(path, content, {**_COMMON, **_OF_KIND[kind]}, stage="probe")
