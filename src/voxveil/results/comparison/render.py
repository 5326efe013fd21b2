"""Rendering of a comparison as plain text or Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from voxveil.results.wording import bounds_text, epsilon_text, metric_text, number
from voxveil.runtime.terminal import align_columns

__all__ = ["comparison_markdown", "comparison_text"]

NOTES = (
    "Square brackets are 95 % intervals over speakers. Within noise: the interval of the difference holds 0;"
    " about 1 in 20 differences of equal runs lies outside by chance.",
    "paired: one draw of speakers for both, on the same trials. unpaired: from the two intervals alone,"
    " as if the runs had nothing in common (Zou and Donner 2008); real differences may go unseen.",
    "A maximum over utterances has a range over speakers, which judges nothing.",
    "An epsilon is a promise by construction: its differences are exact. ∞: nothing is promised.",
)


def comparison_text(comparison: Mapping[str, Any]) -> str:
    """Return the comparison for a terminal."""
    lines = [f"{_letter(i)}  {run['label']}: {run['origin']}" for i, run in enumerate(comparison["runs"])]
    lines += [f"WARNING: {text}" for text in comparison["warnings"]]
    for block in comparison["blocks"]:
        table = [_header(block), *_rows(block)]
        lines += ["", _title(block), *_facts(block), *align_columns(table, rule=True, indent="  ")]
    return "\n".join([*lines, "", *_reasons(comparison), *NOTES])


def comparison_markdown(comparison: Mapping[str, Any]) -> str:
    """Return the comparison as a Markdown page."""
    lines = ["# Comparison", ""]
    lines += [
        f"- **{_letter(i)}** {_escape(run['label'])}: {_escape(run['origin'])}"
        for i, run in enumerate(comparison["runs"])
    ]
    lines += [f"\n> **Warning:** {_escape(text)}" for text in comparison["warnings"]]
    for block in comparison["blocks"]:
        lines += ["", f"## {_escape(_title(block))}", ""]
        letters = [_letter(i) for i in range(len(block["systems"]))]
        lines += _markdown(["", *letters], [[f["fact"], *map(_text, f["values"])] for f in block["facts"]])
        lines += ["", *(f"{index}. {_escape(attack)}" for index, attack in enumerate(_attacks(block), 1))]
        lines += ["", *_markdown(_header(block), _rows(block))]
    lines += ["", *(f"{note}\n" for note in (*_reasons(comparison), *NOTES))]
    return "\n".join(lines).rstrip() + "\n"


def _letter(index: int) -> str:
    return chr(ord("A") + index) if index < 26 else f"R{index + 1}"


def _title(block: Mapping[str, Any]) -> str:
    names = [name for name in block["systems"] if name]
    return "System " + " against ".join(dict.fromkeys(names))


def _facts(block: Mapping[str, Any]) -> list[str]:
    rows = [[fact["fact"], *map(_text, fact["values"])] for fact in block["facts"]]
    lines = []
    for name, *values in rows:
        if len(set(values)) == 1:
            lines.append(f"  {name}: {values[0]}")
        else:
            lines += [f"  {name}, {_letter(i)}: {value}" for i, value in enumerate(values)]
    attacks = _attacks(block)
    marks = [f" [{index}]" if len(attacks) > 1 else "" for index in range(1, len(attacks) + 1)]
    return [*lines, *(f"  attacker{mark}: {attack}" for mark, attack in zip(marks, attacks, strict=True))]


def _attacks(block: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys(row["attack"] for row in block["rows"] if row["attack"]))


def _header(block: Mapping[str, Any]) -> list[str]:
    letters = [_letter(i) for i in range(len(block["systems"]))]
    return ["metric", letters[0], *(cell for x in letters[1:] for cell in (x, f"{x} - {letters[0]}"))]


def _rows(block: Mapping[str, Any]) -> list[list[str]]:
    attacks = _attacks(block)
    rows = []
    for row in block["rows"]:
        where = f" [{attacks.index(row['attack']) + 1}]" if row["attack"] and len(attacks) > 1 else ""
        cells = [f"{row['metric']} {row['unit']}{where}", _value(row, 0)]
        for index, difference in enumerate(row["differences"], 1):
            cells += [_value(row, index), difference_text(difference)]
        rows.append(cells)
    return rows


def _value(row: Mapping[str, Any], index: int) -> str:
    entry = row["values"][index]
    if entry is None:
        return "-"
    if row["metric"].startswith("epsilon_"):
        return epsilon_text(entry["value"])
    return metric_text(entry)


def difference_text(difference: Mapping[str, Any]) -> str:
    """Return a difference with its interval and verdict, e.g. ``+3.1 [+0.2, +6.0] better (paired)``."""
    if difference["verdict"] == "not judged":
        value = "" if difference["value"] is None else f"{_signed(difference['value'])} "
        return f"{value}not judged ({difference['note']})"
    show = _signed_epsilon if difference["method"] == "exact" else _signed
    value = "" if difference["value"] is None else show(difference["value"])
    interval = bounds_text(difference["interval95"])
    verdict = difference["verdict"]
    if difference["meaning"]:
        verdict = f"{verdict}, {difference['meaning']}"
    note = f"; {difference['note']}" if difference["note"] else ""
    return " ".join(part for part in (value, interval, f"{verdict} ({difference['method']}{note})") if part)


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{number(value)}"


def _signed_epsilon(value: float) -> str:
    """Return a difference of two epsilons, written as they are."""
    return f"{'+' if value > 0 else '-' if value < 0 else ''}{epsilon_text(abs(value))}"


def _reasons(comparison: Mapping[str, Any]) -> list[str]:
    """Return why differences are unpaired, each reason once."""
    reasons = dict.fromkeys(
        difference["unpaired_because"]
        for block in comparison["blocks"]
        for row in block["rows"]
        for difference in row["differences"]
        if "unpaired_because" in difference
    )
    return [f"Unpaired because {reason}." for reason in reasons]


def _text(value: str | None) -> str:
    return "-" if value is None else value


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    table = [header, ["---"] * len(header), *rows]
    return [f"| {' | '.join(_escape(cell) for cell in row)} |" for row in table]


def _escape(text: str) -> str:
    return text.replace("|", "/").replace("\n", " ")
