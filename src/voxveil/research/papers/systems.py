"""Figures 7 and 8 and appendices B and C of the DP speaker anonymization paper, of a finished chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from voxveil.research.papers.attacks import Chain, Judged, open_chain
from voxveil.research.papers.catalogue import ITEMS
from voxveil.research.papers.families import System, families
from voxveil.research.papers.result import (
    Cell,
    Drawn,
    Number,
    Options,
    Result,
    Source,
    Table,
    of_metric,
    pair_of,
)
from voxveil.results.report.published import U_ASR
from voxveil.results.wording import epsilon_value
from voxveil.runtime.errors import IncompleteInputError

__all__ = ["MAKERS", "strongest"]

_PAPER = "Differentially private speaker anonymization (2023), text"
#: What stands in the tables of privacy.
_PRIVACY = {
    "eer": "EER, %",
    "unlinkability": "unlinkability",
    "identification_rate": "identification rate, %",
}
_DIFFERENCES = {
    "Sizes": "The paper trains at full size with a Kaldi recognizer and x-vectors; at the mini"
    " size an hour of speech trains everything. Utility lies lower throughout, so compare systems with"
    " each other.",
    "Attacker": "The paper attacks with x-vectors and PLDA, retrained on anonymized speech. The attacker"
    " here is named in every row; where it is stronger, privacy reads lower.",
    "U_ASR": "The paper trains a recognizer on each system's speech. Here one recognizer of original"
    " speech hears them all unless words were decoded otherwise, which is harder on anonymized speech.",
}


_NO_WORDS = (
    "No words were recognized in this run (transcribe.words): phones stand in, which are not comparable"
    " with the published U_ASR."
)


def privacy(project: Path, options: Options) -> Result:
    """Make figure 7: privacy metrics of systems against epsilon."""
    from voxveil.research.papers.figures import Line, against_epsilon_figure

    chain = open_chain("dp-fig7", project, options)
    systems = families(chain)
    attacks = strongest(chain)
    cells = {
        metric: {name: _metric(judged, metric) for name, judged in attacks.items()} for metric in _PRIVACY
    }
    lines = [
        Line("EER", "%", *_values(cells["eer"]), 50.0),
        Line("unlinkability", "", *_values(cells["unlinkability"]), 1.0),
    ]
    drawn = Drawn(
        "privacy",
        against_epsilon_figure(systems, lines),
        "EER and unlinkability of the semi-informed attack against ε of each stream with noise; systems"
        " without noise as horizontal lines; bars: 95 %; dotted: nothing is recognized.",
        "A panel for each metric; values are in the table",
        [attack.source for attack in attacks.values()],
    )
    rows = [_privacy_row(system, attacks[system.name]) for system in systems]
    header = ["System", "family", "ε of a stream", "ε of an utterance", "attacker", *_PRIVACY.values()]
    table = Table("Privacy under the semi-informed attack, 95 % intervals over speakers", header, rows)
    return Result([table], [drawn], _DIFFERENCES, chain.facts(), warnings=chain.warnings())


def utility(project: Path, options: Options) -> Result:
    """Make figure 8: utility of words and intonation against epsilon."""
    from voxveil.research.papers.figures import Line, against_epsilon_figure

    chain = open_chain("dp-fig8", project, options)
    systems = families(chain)
    worded = any(system.summary["utility"]["wer"] for system in systems)
    title = "U_ASR on words" if worded else "100 - phone errors"
    left = {s.name: _left(s, chain) for s in systems}
    correlations = {s.name: _correlation(s, chain) for s in systems}
    lines = [
        Line(title, "%", *_values(left), None),
        Line("pitch correlation", "", *_values(correlations), None),
    ]
    drawn = Drawn(
        "utility",
        against_epsilon_figure(systems, lines),
        f"{title} and pitch correlation against ε of each stream with noise; systems without noise as lines.",
        "A panel for each metric; values are in the table",
        [_source(chain, system.name) for system in systems],
    )
    rows: list[list[Cell]] = [
        [s.name, s.family, _epsilon(s), left[s.name], correlations[s.name], _published(s)] for s in systems
    ]
    header = ["System", "family", "ε of a stream", f"{title}, %", "pitch correlation", "U_ASR published, %"]
    table = Table("Utility, 95 % intervals over speakers", header, rows)
    warnings = chain.warnings() if worded else (*chain.warnings(), _NO_WORDS)
    return Result([table], [drawn], _DIFFERENCES, chain.facts(), warnings=warnings)


def targets(project: Path, options: Options) -> Result:
    """Make appendix B: a target voice for each utterance against one for all of a speaker."""
    chain = open_chain("dp-appendix-b", project, options)
    attacks = strongest(chain)
    shown = [s for s in families(chain) if s.summary["kind"] == "anonymized"]
    levels = {level: [s for s in shown if s.level == level] for level in ("utterance", "speaker")}
    for level, found in levels.items():
        if not found:
            raise IncompleteInputError(
                f"{project}: no system with target_level: {level}; appendix B needs one of each,"
                f" {ITEMS['dp-appendix-b'].commands(options.size)}"
            )
    chosen = {_apart(s, "target_level") for s in levels["speaker"]}
    rows: list[list[Cell]] = [
        [s.name, s.family, s.level, *(_metric(attacks[s.name], metric) for metric in _PRIVACY)]
        for s in shown
        if _apart(s, "target_level") in chosen
    ]
    header = ["System", "family", "a voice for each", *_PRIVACY.values()]
    table = Table("Target voices by utterance and by speaker", header, rows)
    reading = [
        "One voice for all of a speaker keeps the trials of that speaker alike: what links them is then the"
        " target, not the speaker's own voice, and it depends on who speaks. No ε covers it.",
    ]
    return Result([table], [], _DIFFERENCES, chain.facts(), reading, chain.warnings())


def variation(project: Path, options: Options) -> Result:
    """Make appendix C: variation of equal systems over draws of noise and targets."""
    chain = open_chain("dp-appendix-c", project, options)
    attacks = strongest(chain)
    groups: dict[tuple[Any, ...], list[System]] = {}
    for system in families(chain):
        if system.summary["kind"] == "anonymized":
            groups.setdefault(_apart(system), []).append(system)
    repeated = [group for group in groups.values() if len(group) > 1]
    if not repeated:
        raise IncompleteInputError(
            f"{project}: no two systems of equal settings; appendix C needs them under different names,"
            f" {ITEMS['dp-appendix-c'].commands(options.size)}"
        )
    rows = [row for group in repeated for row in _spread(group, attacks)]
    header = ["Systems", "family", "metric", "smallest", "mean", "largest", "one interval of 95 %"]
    table = Table("Systems of equal settings, each with draws of its own", header, rows)
    reading = [
        "Systems under different names draw targets and noise of their own, and their acoustic models and"
        " attackers are trained anew on them, so the spread is an upper end of what noise and targets do.",
    ]
    return Result([table], [], _DIFFERENCES, chain.facts(), reading, chain.warnings())


def strongest(chain: Chain) -> dict[str, Judged]:
    """Return the attack with the lowest EER of every system, semi-informed (or on original speech)."""
    attacks: dict[str, list[Judged]] = {}
    for attack in chain.of("semi_informed"):
        attacks.setdefault(attack.system, []).append(attack)
    return {system: min(found, key=_eer) for system, found in attacks.items()}


def _eer(attack: Judged) -> float:
    value = attack.metrics["eer"]["value"]
    return np.inf if value is None else float(value)


def _privacy_row(system: System, attack: Judged) -> list[Cell]:
    promised = system.summary["promise"]["utterance"]["epsilon"]
    spent: Cell = "none" if promised == "none" else "∞"
    total = np.inf if promised == "none" else epsilon_value(promised)
    if np.isfinite(total):
        spent = Number(f"{system.name}/epsilon_utterance", total, "nat", attack.source, digits=5)
    cells = [_metric(attack, metric) for metric in _PRIVACY]
    return [system.name, system.family, _epsilon(system), spent, attack.who, *cells]


def _metric(attack: Judged, metric: str) -> Number:
    return of_metric(f"{attack.system}/{metric}", attack.metrics[metric], attack.source)


def _epsilon(system: System) -> str:
    if np.isfinite(system.epsilon):
        return f"{system.epsilon:g}"
    return "differ" if system.family.startswith("Anon+DP") else "∞"


def _left(system: System, chain: Chain) -> Number:
    """Return 100 - word errors, or 100 - phone errors without word recognition."""
    errors = system.summary["utility"]["wer"] or system.summary["utility"]["per"]
    value = None if errors["value"] is None else 100.0 - errors["value"]
    bounds = errors.get("ci95")
    pair = None if not bounds else (100.0 - bounds[1], 100.0 - bounds[0])
    note = errors.get("reason") or ""
    return Number(f"{system.name}/u_asr", value, "%", _source(chain, system.name), pair, note=note)


def _correlation(system: System, chain: Chain) -> Cell:
    found = system.summary["utility"].get("pitch")
    if not found:
        return "not measured"
    name, source = f"{system.name}/pitch_correlation", _source(chain, system.name)
    return Number(name, found["value"], "fraction", source, pair_of(found.get("ci95")))


def _values(
    cells: Mapping[str, Cell],
) -> tuple[dict[str, float | None], dict[str, tuple[float, float] | None]]:
    """Return values and intervals of the cells that are numbers."""
    numbers = {name: cell if isinstance(cell, Number) else None for name, cell in cells.items()}
    return (
        {name: number.value if number else None for name, number in numbers.items()},
        {name: number.interval if number else None for name, number in numbers.items()},
    )


def _published(system: System) -> Cell:
    epsilon = f"{system.epsilon:g}" if np.isfinite(system.epsilon) else ""
    value = U_ASR.get((system.family, epsilon))
    if value is None:
        return "not published"
    return Number(f"{system.name}/published", value, "%", Source("published", _PAPER), digits=4)


def _source(chain: Chain, system: str) -> Source:
    return next(attack.ranked for attack in chain.attacks if attack.system == system)


def _apart(system: System, *left_out: str) -> tuple[Any, ...]:
    """Return a system's parameters without ``left_out`` and its name, for comparison."""
    return tuple((name, value) for name, value in sorted(system.settings.items()) if name not in left_out)


def _spread(group: list[System], attacks: Mapping[str, Judged]) -> list[list[Cell]]:
    rows: list[list[Cell]] = []
    names = ", ".join(system.name for system in group)
    for metric, title in _PRIVACY.items():
        judged = [attacks[system.name] for system in group]
        values = [j.metrics[metric]["value"] for j in judged]
        if any(value is None for value in values):
            continue
        first, unit = judged[0], judged[0].metrics[metric]["unit"]
        source = Source("computed", f"over the systems {names}", run=first.source.run)
        low, mean, high = (
            Number(f"{group[0].name}/{metric}/{how}", float(value), unit, source)
            for how, value in (("least", min(values)), ("mean", np.mean(values)), ("most", max(values)))
        )
        single = _metric(first, metric)
        rows.append([names, group[0].family, title, low, mean, high, single])
    return rows


MAKERS: dict[str, Callable[[Path, Options], Result]] = {
    "dp-fig7": privacy,
    "dp-fig8": utility,
    "dp-appendix-b": targets,
    "dp-appendix-c": variation,
}
