"""Conversion of names and values to those that MLflow accepts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["PREFIX", "finite", "flat_params", "mlflow_name", "short"]

#: Every tag of ours starts with this; ``mlflow.*`` belongs to MLflow.
PREFIX = "voxveil."

_REFUSED = re.compile(r"[^A-Za-z0-9_./ -]")
_PARAM_LIMIT = 500
_TAG_LIMIT = 5000


def mlflow_name(name: str) -> str:
    """Return ``name`` with every character that MLflow rejects replaced by ``_uHEX_``."""
    return _REFUSED.sub(lambda match: f"_u{ord(match.group()):x}_", name)


def finite(values: Mapping[str, float]) -> dict[str, float]:
    """Return the values that are numbers; MLflow would store infinity as 1.8e308."""
    return {mlflow_name(name): float(value) for name, value in values.items() if math.isfinite(float(value))}


def flat_params(content: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested parameters as dotted names with short text values.

    A text longer than 500 characters is left out (MLflow would cut it): files hold it in full.
    """
    flat: dict[str, str] = {}
    for key, value in content.items():
        name = f"{prefix}.{key}" if prefix else str(key)
        if isinstance(value, Mapping):
            flat.update(flat_params(value, name))
        elif len(text := _text(value)) <= _PARAM_LIMIT:
            flat[mlflow_name(name)] = text
    return flat


def short(text: str) -> str:
    """Return ``text`` shortened to the length of a tag, with a mark for the missing part."""
    return text if len(text) <= _TAG_LIMIT else f"{text[: _TAG_LIMIT - 3]}..."


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
