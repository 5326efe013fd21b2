"""Figure of several attackers in several scenarios. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from voxveil.metrics.plots import CHANCE, new_figure

__all__ = ["attack_matrix_figure"]

_MARKERS = {"original": "o", "ignorant": "^", "lazy_informed": "s", "semi_informed": "D"}


def attack_matrix_figure(attacks: Sequence[Mapping[str, Any]]) -> Figure:
    """Draw the EER of every attacker in every scenario with its interval over speakers.

    Args:
        attacks: Summaries: ``attacker``, ``scenario`` and ``metrics`` with ``eer``.
    """
    names = list(dict.fromkeys(str(attack["attacker"]) for attack in attacks))
    scenarios = [name for name in _MARKERS if any(attack["scenario"] == name for attack in attacks)]
    figure, (axis,) = new_figure(width=max(5.5, 1.1 * len(names) + 2.5))
    for position, scenario in enumerate(scenarios):
        shift = (position - (len(scenarios) - 1) / 2) * 0.16
        shade = f"{0.1 + 0.6 * position / max(1, len(scenarios) - 1):.2f}"
        chosen = [attack for attack in attacks if attack["scenario"] == scenario]
        for attack in chosen:
            entry, x = attack["metrics"]["eer"], names.index(attack["attacker"]) + shift
            if entry["value"] is not None and entry["ci95"]:
                axis.vlines(x, *entry["ci95"], color=shade, linewidth=1.2)
        known = [attack for attack in chosen if attack["metrics"]["eer"]["value"] is not None]
        axis.plot(
            [names.index(attack["attacker"]) + shift for attack in known],
            [attack["metrics"]["eer"]["value"] for attack in known],
            _MARKERS[scenario],
            color=shade,
            fillstyle="full" if scenario == "semi_informed" else "none",
            label=scenario.replace("_", "-"),
        )
    axis.axhline(50, label="chance", **CHANCE)
    axis.set_xticks(range(len(names)), names, rotation=20, ha="right", fontsize=8)
    axis.set(ylabel="EER (%)", title="Every attacker; lower = more identity left", ylim=(0, 65))
    axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1, 1))
    return figure
