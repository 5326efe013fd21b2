"""Table, figures and page of an experiment's probes, in the layout of ``voxveil probe run``.

The page holds the tables and figures in one HTML file.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from voxveil import __version__
from voxveil.config import Params
from voxveil.research.probe.gather import (
    NOTES,
    Probe,
    content_rows,
    experiment_lines,
    pitch_rows,
    read_probes,
)
from voxveil.research.probe.pipeline import FEATURES, PROBED, PROBES, draws_of, probe_folder
from voxveil.results.html import Picture, document, figure_html, html_table
from voxveil.runtime.atomic import whole_directory, write_json, write_text
from voxveil.runtime.done import finish, require_done
from voxveil.runtime.errors import InputError, MissingExtraError, ParamsError
from voxveil.stages.registry import stage_spec

__all__ = ["CAPTIONS", "arrange", "experiment_page", "write_results"]


def write_results(probes: Path, out: Path) -> list[str]:
    """Write table, figures, page and every number of finished probes; return the lines of the table.

    Args:
        probes: Folder with probes below it.
        out: Folder for them; replaced whole.
    """
    found = read_probes(probes)
    lines = experiment_lines(found)
    with whole_directory(out) as folder:
        write_text(folder / "table.txt", "\n".join(lines) + "\n")
        write_json(folder / "results.json", {"format": 1, "probes": found})
        _draw(found, folder)
        drawn = {path.stem: path.read_bytes() for path in folder.glob("*.png")}
        write_text(folder / "index.html", experiment_page(found, drawn))
        finish(folder, "gather", None)
    return lines


def arrange(probes: Iterable[Path], folder: Path, params: Params) -> list[str]:
    """Copy probes to where ``voxveil probe run`` has them and write their results; return the table.

    Args:
        probes: Finished probes of every variant, as many draws of each variant with noise, in any order.
        folder: An empty folder, afterwards that of an experiment but for models and speech.
        params: Say which variants there must be.

    Raises:
        InputError: A draw is missing or there twice, or a folder is not the probe that it says.
        ParamsError: The variants are not those of the parameters.
    """
    found: set[tuple[str, str, int]] = set()
    for path in probes:
        done = require_done(path, "probe")
        for probe in read_probes(path):
            kind, variant, draw = str(probe["kind"]), str(probe["variant"]), int(probe["draw"])
            name = f"probe of {kind} {variant}, draw {draw}"
            if (done.stage, done.key) != (f"probe_{kind}", variant):
                raise InputError(f"{name}: is output of {done.stage}[{done.key}]")
            if (kind, variant, draw) in found:
                raise InputError(f"{name}: is there twice")
            found.add((kind, variant, draw))
            shutil.copytree(path, folder / probe_folder(kind, variant, draw))
    _check_whole(found, params)
    return write_results(folder / PROBES, folder / FEATURES)


def _check_whole(found: set[tuple[str, str, int]], params: Params) -> None:
    """Raise an error if a probe of the experiment is missing."""
    wanted = {(kind, name) for kind, trainer in PROBED.items() for name in stage_spec(trainer).keys(params)}
    present = {(kind, variant) for kind, variant, _ in found}
    if present != wanted:
        raise ParamsError(
            f"probes are there of {_listed(present)}; params have {_listed(wanted)};"
            " compile the pipeline again with these params"
        )
    draws = max((draw for _, _, draw in found), default=1)
    for kind, variant in sorted(wanted):
        drawn = {draw for one, other, draw in found if (one, other) == (kind, variant)}
        needed = set(draws_of(params, kind, variant, draws))
        if drawn != needed:
            raise InputError(
                f"probe of {kind} {variant}: draws {sorted(drawn)} are there, needed are {sorted(needed)}"
            )


def _listed(variants: set[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} {variant}" for kind, variant in sorted(variants)) or "none"


def _draw(probes: Sequence[Probe], folder: Path) -> None:
    try:
        from voxveil.research.probe import experiment_figures as figures
    except ImportError:
        raise MissingExtraError("matplotlib", "plots") from None
    from voxveil.metrics.plots import save_figure

    kinds = {probe["kind"] for probe in probes}
    save_figure(figures.asi_figure(probes), folder / "p_asi.png")
    if "pitch" in kinds:
        save_figure(figures.correlation_figure(probes), folder / "pitch_correlation.png")
        save_figure(figures.track_figure(probes), folder / "pitch_tracks.png")
    if "content" in kinds:
        save_figure(figures.accuracy_figure(probes), folder / "content_accuracy.png")


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
    content = "Content: ε per released vector; utterance: of the median held-out utterance"
    for kind, caption, rows in (
        ("pitch", "Pitch: ε per utterance", pitch_rows),
        ("content", content, content_rows),
    ):
        if any(probe["kind"] == kind for probe in probes):
            header, *body = [[escape(cell) for cell in row] for row in rows(probes)]
            table = html_table(caption, header, body)
            parts.append(f"<section><h2>{kind.capitalize()}</h2>{table}</section>")
    drawn = [
        figure_html(Picture(figures[name]), escape(caption), escape(caption))
        for name, caption in CAPTIONS.items()
        if name in figures
    ]
    parts.append("<section><h2>Figures</h2>" + "\n".join(drawn) + "</section>")
    parts.append("<section><h2>Reading it</h2>" + f"<p>{escape(' '.join(NOTES))}</p></section>")
    return document("Features against ε", "\n".join(parts))
