"""Families of systems in the DP speaker anonymization paper: Anon, Anon+PC, Anon+DP_Pitch and so on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from voxveil.config import SystemParams
from voxveil.config.compose import to_mapping
from voxveil.config.load import read_mapping
from voxveil.research.papers.attacks import Chain
from voxveil.results.report.results import Summary
from voxveil.results.wording import epsilon_value
from voxveil.runtime.errors import IncompleteInputError

__all__ = ["System", "families"]


@dataclass(frozen=True)
class System:
    """A system of a chain by its place in the paper.

    Attributes:
        summary: Its ``summary.json``.
        family: ``Anon``, ``Anon+PC``, ``Anon+DP_Pitch``, ``Anon+DP_BN`` or ``Anon+DP``, then ``, zCDP`` where
            the noise is Gaussian; or its kind.
        epsilon: Of each stream that has noise, in nat; NaN without noise or where they differ.
        level: Whether a target voice serves an utterance or a speaker.
        settings: Its section of the parameters, defaults filled in.
    """

    summary: Summary
    family: str
    epsilon: float
    level: str
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Its name in the chain."""
        return str(self.summary["system"])


def families(chain: Chain) -> list[System]:
    """Return every system of a chain by its place in the paper, in the chain's order."""
    named = read_mapping(chain.project / "params.yaml")["systems"]
    # Written by hand, a name of digits is a number in YAML; a setting that is left out has its default.
    defaults = to_mapping(SystemParams())
    settings = {str(name): {**defaults, **section} for name, section in named.items()}
    return [_placed(summary, settings[summary["system"]]) for summary in chain.summaries]


def _placed(summary: Summary, settings: Mapping[str, Any]) -> System:
    level = str(settings.get("target_level", "utterance"))
    if summary["kind"] != "anonymized":
        return System(summary, str(summary["kind"]), float("nan"), level, settings)
    streams = summary["promise"]["streams"]
    for name in ("pitch", "content"):
        if name not in streams:
            raise IncompleteInputError(
                f"system {summary['system']}: its summary.json promises nothing of its {name};"
                " run its evaluate stage again"
            )
    noise = {name: epsilon_value(streams[name]["epsilon"]) for name in ("pitch", "content")}
    finite = {name: value for name, value in noise.items() if np.isfinite(value)}
    gaussian = [name for name in noise if streams[name].get("rho")]
    converted = summary["composition"]["pitch_conversion"]
    family = {
        (): "Anon+PC" if converted else "Anon",
        ("pitch",): "Anon+DP_Pitch",
        ("content",): "Anon+DP_BN",
        ("pitch", "content"): "Anon+DP",
    }[tuple(name for name in noise if name in finite or name in gaussian)]
    if gaussian:
        # Noise all the same, but of no pure epsilon: on no axis and beside no published value.
        return System(summary, f"{family}, zCDP", float("nan"), level, settings)
    epsilon = next(iter(finite.values())) if len(set(finite.values())) == 1 else float("nan")
    return System(summary, family, epsilon, level, settings)
