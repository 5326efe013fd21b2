"""The tables of ``docs/costs.md``: measured rates of each stage, and what they give for a larger corpus."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import yaml

from voxveil.runtime.errors import InputError
from voxveil.stages.registry import STAGES, StageSpec

__all__ = ["costs_tables"]

_KEYS = {"measured", "seconds", "bytes"}
_OPTIONAL = {"with", "where"}
_MISSING = "not measured"


def costs_tables(text: str) -> Mapping[str, str]:
    """Return the generated parts of ``docs/costs.md``.

    Args:
        text: Content of ``docs/costs.yaml``: quantities of the larger corpus, and per stage the measured
            seconds and the rates ``[NUMBER, FACTORS, ...]`` of seconds and megabytes.

    Returns:
        The tables ``rates`` and ``larger`` in Markdown. A stage without an entry is not measured.

    Raises:
        InputError: The content is not of this form, or names no stage.
    """
    content = yaml.safe_load(text)
    stages, quantities = content["stages"], content["quantities"]
    unknown = set(stages) - {spec.name for spec in STAGES}
    if unknown:
        raise InputError(f"docs/costs.yaml: stages: no stage {', '.join(sorted(unknown))}")
    for name, entry in stages.items():
        if not _KEYS <= set(entry) <= _KEYS | _OPTIONAL:
            raise InputError(f"docs/costs.yaml: stages.{name}: must have the keys {', '.join(sorted(_KEYS))}")
    rates = [
        "| Stage | Where | Measured, s | Seconds on two cores | Bytes kept in S3 |",
        "|---|---|---|---|---|",
    ]
    larger = ["| Stage | Hours on two cores | S3, GB |", "|---|---|---|"]
    for spec in STAGES:
        entry = stages.get(spec.name)
        rates.append(_rate(spec, entry))
        if entry is None:
            larger.append(f"| {spec.name} | {_MISSING} | {_MISSING} |")
            continue
        hours = _amount(entry["seconds"], quantities, spec.name) / 3600
        size = _amount(entry["bytes"], quantities, spec.name) / 1000
        larger.append(f"| {spec.name} | {hours:.1f} | {size:.{1 if size >= 1 else 2}f} |")
    return {"rates": "\n".join(rates), "larger": "\n".join(larger)}


def _rate(spec: StageSpec, entry: Mapping[str, Any] | None) -> str:
    where = "GPU" if spec.gpu else "CPU"
    if entry is None:
        return f"| {spec.name} | {where} | {_MISSING} | {_MISSING} | {_MISSING} |"
    name = f"{spec.name} ({entry['with']})" if "with" in entry else spec.name
    seconds = " ".join(str(part) for part in entry["seconds"] if part)
    number, _, *words = entry["bytes"]
    unit = f"{number:g} MB" if number >= 0.1 else f"{1000 * number:g} kB"
    size = " ".join([unit, *words])
    return f"| {name} | {entry.get('where', where)} | {entry['measured']} | {seconds} | {size} |"


def _amount(rate: list[Any], quantities: Mapping[str, float], stage: str) -> float:
    """Return a rate times its factors: a product of quantities, and of sums of them in parentheses."""
    number, *factors = rate
    terms = re.findall(r"\(([^)]*)\)|(\S+)", str(factors[0]) if factors else "")
    try:
        sums = [
            sum(
                quantities[word] if word in quantities else float(word)
                for word in re.split(r"\s*\+\s*", group or word)
            )
            for group, word in terms
        ]
    except ValueError as error:
        raise InputError(f"docs/costs.yaml: stages.{stage}: {factors[0]!r} is no product ({error})") from None
    return float(number) * math.prod(sums)
