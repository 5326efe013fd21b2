"""HTML building blocks: a self-contained document, figures, tables and cells.

The style sheet serves light and dark themes, narrow screens and print.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from voxveil.results.wording import bounds_text, value_text

__all__ = [
    "STYLE",
    "Picture",
    "document",
    "figure_html",
    "html_table",
    "small_below",
    "terms_html",
    "value_cell",
]


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
    return small_below(value_text(entry), bounds_text(entry.get("ci95")))


def small_below(text: str, below: str) -> str:
    """Return a cell of plain text with small text below it, nothing below where that is empty."""
    return f"{escape(text)}<small>{escape(below)}</small>" if below else escape(text)


def terms_html(terms: Mapping[str, str]) -> str:
    """Return a list of terms with their explanations, both plain text."""
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in terms.items())
    return f'<dl class="terms">{rows}</dl>'


STYLE = """
:root { color-scheme: light dark; --ink: #1c2024; --soft: #57606a; --ground: #fbfbfa; --card: #ffffff;
  --line: #d9dde1; --accent: #12436d; --note: #f3f0e6; --note-line: #8a6d1f; }
@media screen and (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --soft: #a4adb6; --ground: #14171a;
  --card: #1c2024; --line: #3a4046; --accent: #8fc1e3; --note: #2a2717; --note-line: #cbb266; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1.25rem 3rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .25rem; }
h2 { font-size: 1.3rem; margin: 2.5rem 0 .5rem; padding-top: .75rem; border-top: 2px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .4rem; }
p, ul, dl { max-width: 46rem; margin: .5rem 0; }
a { color: var(--accent); }
.lead { color: var(--soft); font-size: 1.05rem; }
.facts { display: flex; flex-wrap: wrap; gap: .4rem; padding: 0; margin: .75rem 0; list-style: none;
  max-width: none; }
.facts li { border: 1px solid var(--line); border-radius: .3rem; padding: .1rem .5rem;
  background: var(--card); font-size: .9rem; }
.note { background: var(--note); border-left: .3rem solid var(--note-line); padding: .6rem .9rem;
  margin: .9rem 0; max-width: 52rem; }
.note p { margin: .2rem 0; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; background: var(--card); font-size: .93rem; margin: .6rem 0; }
caption { text-align: left; color: var(--soft); padding: .3rem 0; caption-side: top; }
th, td { text-align: left; vertical-align: top; padding: .4rem .6rem; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 600; white-space: nowrap; }
td small, th small { display: block; color: var(--soft); font-weight: 400; }
tr.nothing td, tr.nothing th { font-style: italic; background: var(--ground); }
figure { margin: 1rem 0; }
figure img { width: 100%; height: auto; display: block; }
figure img.dark { display: none; }
@media screen and (prefers-color-scheme: dark) {
  figure img.light { display: none; } figure img.dark { display: block; }
}
figcaption { color: var(--soft); font-size: .92rem; max-width: 52rem; }
audio { width: 100%; min-width: 9rem; max-width: 16rem; height: 2.2rem; display: block; }
.pairs { display: grid; gap: .75rem; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); }
.pairs div { background: var(--card); border: 1px solid var(--line); border-radius: .3rem;
  padding: .5rem .6rem; }
.pairs b { display: block; margin-bottom: .25rem; font-weight: 600; }
dl.terms { display: grid; grid-template-columns: minmax(9rem, 12rem) minmax(0, 1fr);
  gap: .3rem 1rem; max-width: 56rem; overflow-wrap: anywhere; }
dl.terms dt { font-weight: 600; } dl.terms dd { margin: 0; }
footer { margin-top: 3rem; color: var(--soft); font-size: .88rem; border-top: 1px solid var(--line);
  padding-top: .75rem; overflow-wrap: anywhere; }
@media screen and (max-width: 46rem) {
  main { padding: 1rem .9rem 2rem; } h1 { font-size: 1.5rem; }
  table.cards, .cards tbody, .cards tr, .cards th, .cards td, .cards caption { display: block; width: auto; }
  table.cards { background: none; }
  .cards thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .cards tr { background: var(--card); border: 1px solid var(--line); border-radius: .3rem; margin: .6rem 0;
    padding: .4rem .7rem; }
  .cards th, .cards td { border: 0; padding: .2rem 0; } .cards tbody th { font-size: 1.05rem; }
  .cards td { display: grid; grid-template-columns: 8.5rem minmax(0, 1fr); gap: .5rem; }
  .cards td::before { content: attr(data-label); color: var(--soft); }
  .cards td.blank { display: none; }
  table.wide { width: max-content; } table.wide caption { max-width: 85vw; }
  .wide th:first-child { position: sticky; left: 0; background: var(--card); }
  figure img { width: auto; max-width: none; height: 20rem; }
  dl.terms { grid-template-columns: minmax(0, 1fr); } dl.terms dd { margin-bottom: .5rem; }
}
@page { size: A4 landscape; margin: 1.2cm; }
@media print {
  body { background: #fff; font-size: 10pt; } main { max-width: none; padding: 0; }
  .listen { display: none; } tr, figure, .note { break-inside: avoid; } h2, h3 { break-after: avoid; }
  figure img { width: auto; max-width: 100%; max-height: 14cm; }
  table { font-size: 8.5pt; } a { color: inherit; }
}
"""
