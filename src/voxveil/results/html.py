"""HTML building blocks: a self-contained document, figures, tables and cells."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from voxveil.results.report.style import STYLE
from voxveil.results.wording import bounds_text, metric_text

__all__ = ["Picture", "document", "figure_html", "html_table", "value_cell"]


@dataclass(frozen=True)
class Picture:
    """A figure in both themes, or one with its own background.

    Attributes:
        light: PNG for light ground and paper.
        dark: PNG for dark ground; None where ``light`` has a ground of its own.
    """

    light: bytes
    dark: bytes | None = None


def document(title: str, body: str) -> str:
    """Return a self-contained HTML file without scripts.

    Args:
        title: Plain text.
        body: HTML of the main part.
    """
    style_hash = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{style_hash}'; img-src data:; media-src data:"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{escape(title)}</title>\n<link rel="icon" href="data:,">\n<style>{STYLE}</style>\n</head>\n'
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def figure_html(picture: Picture, alt: str, caption: str) -> str:
    """Return a figure; ``alt`` and ``caption`` are HTML."""
    # Two images and a style rule, since <picture> keeps its dark source when it is printed.
    grounds = [("light", picture.light), ("dark", picture.dark)] if picture.dark else [("", picture.light)]
    images = "".join(
        f'<img class="{ground}" src="data:image/png;base64,{base64.b64encode(png).decode()}" alt="{alt}">'
        for ground, png in grounds
        if png is not None
    )
    return f'<figure><div class="scroll">{images}</div><figcaption>{caption}</figcaption></figure>'


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
