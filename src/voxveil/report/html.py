"""Tables of the page and their cells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from voxveil.report.words import bounds_text, metric_text

__all__ = ["html_table", "value_cell"]


def html_table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    marked: Sequence[str] = (),
    cards: bool = False,
) -> str:
    """Return a table; cells are HTML, the first of a row is its heading.

    Args:
        caption: Plain text.
        header: Column titles, HTML.
        rows: Cells, HTML; each row as long as ``header``.
        marked: First cells of rows to set apart.
        cards: On a narrow screen every row becomes a card; otherwise the table scrolls sideways.
    """
    labels = [title.partition("<")[0] for title in header]
    head = "".join(f'<th scope="col">{title}</th>' for title in header)
    lines = []
    for first, *cells in rows:
        body = "".join(
            f'<td data-label="{escape(label, quote=True)}"{"" if cell else " class=blank"}>'
            f"<span>{cell}</span></td>"
            for label, cell in zip(labels[1:], cells, strict=True)
        )
        kind = ' class="nothing"' if first in marked else ""
        lines.append(f'<tr{kind}><th scope="row">{first}</th>{body}</tr>')
    shape = "cards" if cards else "wide"
    return (
        f'<div class="scroll"><table class="{shape}"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n" + "\n".join(lines) + "\n</tbody></table></div>"
    )


def value_cell(entry: Mapping[str, Any]) -> str:
    """Return a value with its interval below it, as HTML."""
    interval = bounds_text(entry.get("ci95"))
    value = escape(metric_text({**entry, "ci95": None}))
    return f"{value}<small>{escape(interval)}</small>" if interval else value
