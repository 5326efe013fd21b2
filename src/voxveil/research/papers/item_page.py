"""Outputs of a reproduced item: self-contained HTML page, JSON and text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from voxveil import __version__
from voxveil.research.papers.catalogue import Item
from voxveil.research.papers.result import Cell, Number, Result, Source, Table
from voxveil.results.html import Picture, document, figure_html, html_table, small_below, terms_html
from voxveil.results.wording import bounds_text, value_text
from voxveil.runtime.atomic import write_json, write_text
from voxveil.runtime.done import finish
from voxveil.runtime.terminal import align_columns

__all__ = ["item_page", "text_lines", "write_item"]

_SOURCE = "Source"


def write_item(folder: Path, item: Item, result: Result, command: str) -> None:
    """Write a finished item into an empty folder: page, figures, ``results.json``, ``_DONE.json``.

    Args:
        folder: Where to; it becomes visible as a whole (:func:`voxveil.runtime.atomic.whole_directory`).
        item: Which one.
        result: What was found.
        command: Command line that makes it again.
    """
    from voxveil.metrics.plots import save_figure

    pictures = {}
    for drawn in result.figures:
        path = folder / "figures" / f"{drawn.name}.png"
        save_figure(drawn.figure, path)
        pictures[drawn.name] = path.read_bytes()
    about = {"item": item.name, "paper": item.paper, "title": item.title, "shows": item.shows}
    content = {"format": 1, "command": command, **about, **result.to_json(), "version": __version__}
    write_json(folder / "results.json", content)
    write_text(folder / "index.html", item_page(item, result, pictures, command))
    finish(folder, "reproduce", item.name)


def item_page(item: Item, result: Result, pictures: Mapping[str, bytes], command: str) -> str:
    """Return the page.

    Args:
        item: Which one.
        result: What was found.
        pictures: PNG of each figure by name.
        command: Command line that makes it again.
    """
    marks = {source: str(number) for number, source in enumerate(result.sources(), 1)}
    facts = "".join(f"<li>{escape(fact)}</li>" for fact in (item.paper, *result.facts))
    parts = [
        f'<header><h1>{escape(item.title)}</h1>\n<p class="lead">{escape(item.shows)}</p>\n'
        f'<ul class="facts">{facts}</ul>{_note(result.warnings)}</header>'
    ]
    if result.tables:
        tables = "\n".join(_table(table, marks) for table in result.tables)
        parts.append(f"<section><h2>Published and measured</h2>\n{tables}</section>")
    if result.figures:
        drawn = "\n".join(
            figure_html(
                Picture(pictures[figure.name]),
                escape(figure.alt, quote=True),
                f"{escape(figure.caption)} Sources: {_marks(figure.sources, marks)}.",
            )
            for figure in result.figures
        )
        parts.append(f"<section><h2>Figures</h2>\n{drawn}</section>")
    if result.differences:
        parts.append(f"<section><h2>Why they differ</h2>\n{terms_html(result.differences)}</section>")
    if result.reading:
        text = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in result.reading)
        parts.append(f"<section><h2>Reading it</h2>{text}</section>")
    parts.append(_sources(marks))
    parts.append(f"<footer>voxveil {__version__}. Made again by: {escape(command)}</footer>")
    return document(f"{item.name}: {item.title}", "\n".join(parts))


def text_lines(result: Result) -> list[str]:
    """Return the tables for the terminal."""
    lines = [*result.warnings]
    for table in result.tables:
        rows = [list(table.header), *([_text(cell) for cell in row] for row in table.rows)]
        lines += ["", table.caption, *align_columns(rows, indent="  ")]
    return lines


def _note(warnings: Sequence[str]) -> str:
    if not warnings:
        return ""
    return '\n<div class="note">' + "".join(f"<p>{escape(text)}</p>" for text in warnings) + "</div>"


def _table(table: Table, marks: Mapping[Source, str]) -> str:
    header = [_heading(title) for title in table.header]
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    used = [dict.fromkeys(cell.source for cell in row if isinstance(cell, Number)) for row in table.rows]
    if any(used):
        header.append(_SOURCE)
        rows = [[*row, _marks(list(of), marks)] for row, of in zip(rows, used, strict=True)]
    return html_table(table.caption, header, rows)


def _heading(title: str) -> str:
    """Return a column's title with its unit, the last words after a comma, below it."""
    name, sign, unit = title.rpartition(", ")
    return f"{escape(name)} <small>{escape(unit)}</small>" if sign else escape(title)


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return escape(cell)
    return small_below(_value(cell), bounds_text(cell.interval))


def _text(cell: Cell) -> str:
    if isinstance(cell, str):
        return cell
    return f"{_value(cell)} {bounds_text(cell.interval)}".rstrip()


def _value(cell: Number) -> str:
    return value_text({"value": cell.value, "note": cell.note}, cell.digits)


def _marks(sources: Sequence[Source], marks: Mapping[Source, str]) -> str:
    return ", ".join(sorted((marks[source] for source in sources), key=int))


def _sources(marks: Mapping[Source, str]) -> str:
    rows = []
    for source, mark in marks.items():
        found = {"SHA-256": source.sha256, "MLflow": source.run}
        trace = "; ".join(f"{name} {text}" for name, text in found.items() if text)
        rows.append([mark, source.kind, escape(source.location), escape(trace)])
    table = html_table(
        "Where each row and figure comes from; every number with its source stands in results.json",
        (_SOURCE, "Kind", "What", "Traced by"),
        rows,
    )
    return f"<section><h2>Sources</h2>\n{table}</section>"
