"""The page of a feature-level experiment: its tables and figures in one HTML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from voxveil import __version__
from voxveil.research.probe.gather import NOTES, Probe, content_rows, pitch_rows
from voxveil.results.html import Picture, document, figure_html, html_table

__all__ = ["CAPTIONS", "experiment_page"]

#: Figures in the order of the page, with what each shows.
CAPTIONS = {
    "p_asi": "Who speaks: error of naming the speaker against ε (after the paper's figure 5), chance dotted.",
    "pitch_correlation": "What is left of the F0, and who speaks by it (after the paper's figure 6).",
    "pitch_tracks": "F0 of held-out public speakers before and after (after the paper's figure 3).",
    "content_accuracy": "What is left of the words, at equal ε of the whole utterance.",
}


def experiment_page(probes: Sequence[Probe], figures: Mapping[str, bytes]) -> str:
    """Return the page.

    Args:
        probes: At least one.
        figures: PNG by name, of :data:`CAPTIONS`.
    """
    corpus = probes[0]["corpus"]
    kind_of_speech = ", synthetic speech" if corpus["synthetic"] else ""
    facts = (
        f"Corpus {corpus['name']}{kind_of_speech}; public speakers only; data revision"
        f" {str(corpus['revision'])[:12]}; voxveil {__version__}."
    )
    parts = [f"<header><h1>Features against ε</h1><p>{escape(facts)}</p></header>"]
    for kind, caption, rows in (
        ("pitch", "Pitch: ε per utterance", pitch_rows),
        (
            "content",
            "Content: ε per released vector; utterance: of the median held-out utterance",
            content_rows,
        ),
    ):
        if any(probe["kind"] == kind for probe in probes):
            header, *body = [[escape(cell) for cell in row] for row in rows(probes)]
            parts.append(
                f"<section><h2>{kind.capitalize()}</h2>{html_table(caption, header, body)}</section>"
            )
    drawn = [
        figure_html(Picture(figures[name]), escape(caption), escape(caption))
        for name, caption in CAPTIONS.items()
        if name in figures
    ]
    parts.append("<section><h2>Figures</h2>" + "\n".join(drawn) + "</section>")
    parts.append("<section><h2>Reading it</h2>" + f"<p>{escape(' '.join(NOTES))}</p></section>")
    return document("Features against ε", "\n".join(parts))
