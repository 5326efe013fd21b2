"""Figures 3, 5 and 6 of the DP speaker anonymization paper, of a finished ``voxveil probe run``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from voxveil.research.papers.catalogue import ITEMS
from voxveil.research.papers.result import (
    Cell,
    Drawn,
    Number,
    Options,
    Result,
    Source,
    Table,
    pair_of,
)
from voxveil.research.probe.gather import PUBLISHED, Probe, mean_of, read_probes, series
from voxveil.research.probe.pipeline import PROBES, probe_folder
from voxveil.research.probe.word_floor import RESULTS, read_floor
from voxveil.results.wording import concentrated, epsilon_value
from voxveil.runtime.done import file_sha256
from voxveil.runtime.errors import IncompleteInputError, InputError

__all__ = ["MAKERS"]

_PAPER = "Differentially private speaker anonymization (2023), figure 5 and its text"
_ASI = ("P_ASI measured, %", "least proven P_ASI, %", "P_ASI published, %")
_UNITS = {"pitch": "utterance", "content": "released vector"}

#: Folder of ``voxveil probe words`` beside the probes; figure 5 shows it where it is there.
_WORDS = "words"
_FLOOR_READING = (
    "No mechanism of this ε releases the right sentence more often, or errs in fewer words, than the limits"
    " say: for sentences drawn from the public language model that is proven, for the text of a test set it"
    " is an estimate, which a better language model lowers."
)

_DIFFERENCES = {
    "Corpus and sizes": "The paper trains on LibriSpeech as a whole, tens of hours of 921 speakers; the mini"
    " size has 40 minutes of 200 speakers. An attacker who learns from less is weaker, so P_ASI without noise"
    " lies higher at that size.",
    "Pitch at ε up to 100": "The noise of an utterance has the scale C x K / ε, so the limit leaves any"
    " attacker near chance. What correlation there is is that of a decoder which has learned what pitch looks"
    " like: the column of noise alone.",
    "Content at ε = 10 and 100": "At K vectors of ε each the bound of an utterance no longer binds. What the"
    " attack names depends on how concentrated the vectors are that the extractor learned.",
}


def tracks(project: Path, options: Options) -> Result:
    """Make figure 3: original and released pitch tracks."""
    from voxveil.research.probe.experiment_figures import track_figure

    probes = _probes("dp-fig3", options, "pitch")
    shown = [draws[0] for variants in series(probes, "pitch").values() for draws in variants]
    sources = [_source(options, probe) for probe in shown]
    drawn = Drawn(
        "tracks",
        track_figure(probes),
        "True F0 of held-out public speakers on the unit scale (grey) and what was released (dashed), a"
        " row per mechanism and ε.",
        "Two lines for each utterance: true and released",
        sources,
    )
    return Result([_pitch_table(options, probes)], [drawn], _DIFFERENCES, _facts(probes))


def asi(project: Path, options: Options) -> Result:
    """Make figure 5: speaker identification from features alone."""
    from voxveil.research.probe.experiment_figures import asi_figure

    probes = _probes("dp-fig5", options, "pitch", "content")
    ours = [probe for probe in probes if probe["mechanism"] in ("identity", "laplace") and _dense(probe)]
    drawn = Drawn(
        "p_asi",
        asi_figure(ours),
        "P_ASI, the error of naming the speaker, against ε: mean over draws (line), each draw (points),"
        " chance and the proven least error of any attacker; crosses: published.",
        "A panel for pitch and one for content; values are in the tables",
        [_source(options, probe) for probe in ours],
    )
    tables = [_asi_table(options, ours, kind) for kind in ("pitch", "content")]
    reading = [
        "P_ASI is the error rate of a classifier that names the speaker of an utterance from its features"
        " alone; 100 (1 - 1/S) % is chance among S speakers. The limit is proven: with I nat of"
        " information at most in an utterance no attacker errs less than 1 - 1/S - sqrt(I/2).",
    ]
    figures = [drawn]
    floor = read_floor(Path(options.features or "") / _WORDS)
    if floor is not None:
        path = f"{_WORDS}/{RESULTS}"
        source = Source("file", path, file_sha256(Path(options.features or "") / path))
        worded = [probe for probe in probes if probe["kind"] == "content" and "wer" in probe]
        shown = [source, *(_source(options, probe) for probe in worded)]
        figures.append(_floor_drawn(floor, worded, shown))
        tables += [_floor_table(part, name, source) for name, part in floor["sets"].items()]
        reading.append(_FLOOR_READING)
    return Result(tables, figures, _DIFFERENCES, _facts(probes), reading)


def _floor_drawn(floor: dict[str, Any], probes: Sequence[Probe], sources: Sequence[Source]) -> Drawn:
    from voxveil.research.probe.experiment_figures import floor_figure

    return Drawn(
        "floor",
        floor_figure(floor, probes),
        "Sentences with every word right, and word errors, against ε of an utterance: every mechanism, and"
        " the most and the least that any mechanism of that ε can reach.",
        "Two panels with lines of the limits and points of the mechanisms; values are in the tables",
        sources,
    )


def _floor_table(part: dict[str, Any], name: str, source: Source) -> Table:
    floor = part["floor"]
    rows: list[list[Cell]] = []
    for row, most, least in zip(part["resampled"], floor["exact"], floor["errors"], strict=True):
        label = f"words/{name}/{row['epsilon']:g}"
        values = {"right": row["exact"], "most": 100 * most, "errors": row["errors"], "least": least}
        rows.append(
            [f"{row['epsilon']:g}", *(Number(f"{label}/{k}", v, "%", source) for k, v in values.items())]
        )
    kind = "drawn from the language: proven" if name == "drawn" else "of a test set: the limits are estimates"
    header = [
        "ε of an utterance",
        "right, %",
        "right at most, %",
        "word errors, %",
        "word errors at least, %",
    ]
    return Table(f"Resampled words and the limits of every mechanism; sentences {kind}", header, rows)


def against_naive(project: Path, options: Options) -> Result:
    """Make figure 6: correlation and P_ASI of ours and of the naive baseline."""
    from voxveil.research.probe.experiment_figures import correlation_figure

    probes = _probes("dp-fig6", options, "pitch")
    drawn = Drawn(
        "correlation",
        correlation_figure(probes),
        "Correlation with the true F0 and P_ASI against ε of an utterance, for the autoencoder (laplace),"
        " noise straight on the F0 (naive) and a few coefficients of the contour (contour); 'noise alone':"
        " the decoder fed with nothing but noise.",
        "A panel of correlations and one of P_ASI; values are in the table",
        [_source(options, probe) for probe in probes],
    )
    return Result([_pitch_table(options, probes)], [drawn], _DIFFERENCES, _facts(probes))


def _probes(name: str, options: Options, *kinds: str) -> list[Probe]:
    """Return the probes of these kinds; a missing one is an error with the commands to produce it."""
    how = ITEMS[name].commands(options.size)
    if options.features is None:
        raise InputError(f"--features DIR names the folder of a finished 'voxveil probe run'; {how}")
    try:
        probes = read_probes(options.features / PROBES)
    except IncompleteInputError as error:
        raise IncompleteInputError(f"{error}; {how}") from None
    for kind in kinds:
        if not any(probe["kind"] == kind for probe in probes):
            raise InputError(f"{options.features}: no {kind} variant was probed")
    return [probe for probe in probes if probe["kind"] in kinds]


def _dense(probe: Probe) -> bool:
    return int(probe.get("every", 1)) == 1


def _source(options: Options, probe: Probe) -> Source:
    path = f"{probe_folder(probe['kind'], probe['variant'], probe['draw'])}/probe.json"
    return Source("file", path, file_sha256(Path(options.features or "") / path))


def _facts(probes: Sequence[Probe]) -> list[str]:
    corpus, first = probes[0]["corpus"], probes[0]["asi"]
    synthetic = " (synthetic speech)" if corpus["synthetic"] else ""
    draws = max(int(probe["draw"]) for probe in probes)
    return [
        f"corpus {corpus['name']}{synthetic}, public speakers",
        f"identification among {round(1 / first['chance'])} speakers",
        f"draws of the noise: {draws}; intervals over speakers, of draw 1",
    ]


def _number(
    options: Options, draws: Sequence[Probe], name: str, *path: str, interval: str, percent: bool = False
) -> Number:
    """Return the mean over draws of a figure, with the interval of its first draw."""
    probe, mean = draws[0], mean_of(draws, *path)
    scale, unit = (100.0, "%") if percent else (1.0, "fraction")
    pair = pair_of(probe[path[0]].get(interval), scale)
    value = None if math.isnan(mean) else scale * mean
    return Number(_label(probe, name), value, unit, _source(options, probe), pair)


def _label(probe: Probe, name: str) -> str:
    return f"{probe['kind']}/{probe['variant']}/{name}"


def _epsilon(probe: Probe) -> str:
    if concentrated(probe["loss"]):
        return f"zCDP ρ {probe['loss']['rho']:g}"
    value = epsilon_value(probe["loss"]["epsilon"])
    return "∞" if value == float("inf") else f"{value:g}"


def _named(probe: Probe) -> str:
    return f"{probe['mechanism']}, ε = {_epsilon(probe)}"


def _asi_cells(options: Options, draws: Sequence[Probe]) -> list[Cell]:
    """Return the columns of speaker identification, :data:`_ASI`."""
    probe, limit = draws[0], 100.0 * (1.0 - mean_of(draws, "asi", "limit"))
    return [
        _number(options, draws, "p_asi", "asi", "p_asi", interval="p_asi_ci95", percent=True),
        Number(_label(probe, "limit"), limit, "%", _source(options, probe)),
        _published(probe),
    ]


def _published(probe: Probe) -> Cell:
    if probe["mechanism"] not in ("identity", "laplace"):
        return "not published"
    text = PUBLISHED[probe["kind"]].get(_epsilon(probe).replace("∞", "inf"), "")
    if not text:
        return "not published"
    if text.startswith("above "):
        return text
    return Number(_label(probe, "published"), float(text), "%", Source("published", _PAPER))


def _asi_table(options: Options, probes: Sequence[Probe], kind: str) -> Table:
    rows: list[list[Cell]] = [
        [_named(draws[0]), *_asi_cells(options, draws)]
        for variants in series(probes, kind).values()
        for draws in variants
    ]
    caption = f"Speaker identification from {kind} features; ε per {_UNITS[kind]}"
    return Table(caption, ["Mechanism", *_ASI], rows)


def _pitch_table(options: Options, probes: Sequence[Probe]) -> Table:
    rows: list[list[Cell]] = []
    for draws in (draws for variants in series(probes, "pitch").values() for draws in variants):
        floor: Cell = "no noise"
        if "correlation_floor" in draws[0]:
            floor = _number(options, draws, "floor", "correlation_floor", "value", interval="ci95")
        measured = _number(options, draws, "correlation", "correlation", "value", interval="ci95")
        rows.append([_named(draws[0]), measured, floor, *_asi_cells(options, draws)])
    header = ["Mechanism", "correlation with the true F0", "correlation of noise alone", *_ASI]
    return Table("Pitch features; ε per utterance", header, rows)


MAKERS: dict[str, Callable[[Path, Options], Result]] = {
    "dp-fig3": tracks,
    "dp-fig5": asi,
    "dp-fig6": against_naive,
}
