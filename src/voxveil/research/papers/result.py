"""Data types of reproduced tables and figures; every number names its source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Cell",
    "Drawn",
    "Number",
    "Options",
    "Result",
    "Source",
    "Table",
    "of_metric",
    "pair_of",
]


@dataclass(frozen=True)
class Options:
    """Command-line options of a reproduction.

    Attributes:
        size: ``mini`` or ``full``: which overlay a message about missing inputs names.
        features: Finished ``voxveil probe run``, where one is needed.
        scores: Folder of somebody else's score files, one folder per system.
        system: System of a figure that shows one; empty takes the last of the project.
        replicates: Behind each interval of scores that are judged here.
        seed: Of simulations and of those intervals.
    """

    size: str = "mini"
    features: Path | None = None
    scores: Path | None = None
    system: str = ""
    replicates: int = 200
    seed: int = 0


@dataclass(frozen=True)
class Source:
    """Source of a number.

    Attributes:
        kind: ``file``, ``computed`` (from a formula or a seeded simulation) or ``published``.
        location: File relative to the folder it was found in, the computation, or the publication.
        sha256: Of the file.
        run: Filter that finds the file's run in MLflow, where it has one.
    """

    kind: str
    location: str
    sha256: str = ""
    run: str = ""

    def to_json(self) -> dict[str, str]:
        """Return it for ``results.json``."""
        found = {"kind": self.kind, "place": self.location}
        return found | {name: text for name, text in (("sha256", self.sha256), ("run", self.run)) if text}


@dataclass(frozen=True)
class Number:
    """A value with unit, interval, null range and source.

    Attributes:
        name: What it is, ``ROW/METRIC``; unique within a result.
        value: In ``unit``; None where it is undefined or unbounded, and ``note`` says why.
        unit: ``%``, ``bit``, ``nat``, ``fraction`` or empty.
        source: Where it comes from.
        interval: Interval or range of 95 %.
        nothing: What is read where nothing leaks, 95 %.
        note: Remark on it.
        digits: Significant digits shown.
    """

    name: str
    value: float | None
    unit: str
    source: Source
    interval: tuple[float, float] | None = None
    nothing: tuple[float, float] | None = None
    note: str = ""
    digits: int = 3

    def to_json(self) -> dict[str, Any]:
        """Return it for ``results.json``."""
        return {
            "name": self.name,
            "value": self.value,
            "unit": self.unit,
            "interval95": None if self.interval is None else list(self.interval),
            "null95": None if self.nothing is None else list(self.nothing),
            "note": self.note or None,
            "source": self.source.to_json(),
        }


Cell = str | Number


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its heading.

    Attributes:
        caption: Plain text.
        header: Column titles, plain text.
        rows: Cells, each row as long as ``header``.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True)
class Drawn:
    """A drawn figure with caption and sources.

    Attributes:
        name: Stem of its file.
        figure: Drawn on a white ground.
        caption: Plain text.
        alt: Its content in words, for those who cannot see it.
        sources: Where what it shows comes from.
    """

    name: str
    figure: Figure
    caption: str
    alt: str
    sources: Sequence[Source]


@dataclass(frozen=True)
class Result:
    """A reproduced item.

    Attributes:
        tables: Published and measured values side by side.
        figures: In the order of the page.
        differences: What differs from the paper -> why, in plain words.
        facts: Conditions in a few words each: corpus, sizes, seeds.
        reading: How to read it, a paragraph each.
        warnings: What a reader must know before any number.
    """

    tables: Sequence[Table]
    figures: Sequence[Drawn]
    differences: Mapping[str, str]
    facts: Sequence[str]
    reading: Sequence[str] = ()
    warnings: Sequence[str] = field(default=())

    def numbers(self) -> Iterator[Number]:
        """Yield every number of the tables once, row by row."""
        cells = (cell for table in self.tables for row in table.rows for cell in row)
        yield from dict.fromkeys(cell for cell in cells if isinstance(cell, Number))

    def sources(self) -> list[Source]:
        """Return every source once, in the order in which the page meets them."""
        found = [number.source for number in self.numbers()]
        found += [source for drawn in self.figures for source in drawn.sources]
        return list(dict.fromkeys(found))

    def to_json(self) -> dict[str, Any]:
        """Return it for ``results.json``."""
        return {
            "facts": list(self.facts),
            "warnings": list(self.warnings),
            "reading": list(self.reading),
            "differences": dict(self.differences),
            "numbers": [number.to_json() for number in self.numbers()],
            "tables": [
                {
                    "caption": table.caption,
                    "header": list(table.header),
                    "rows": [
                        [{"number": cell.name} if isinstance(cell, Number) else cell for cell in row]
                        for row in table.rows
                    ],
                }
                for table in self.tables
            ],
            "figures": [
                {
                    "file": f"figures/{drawn.name}.png",
                    "caption": drawn.caption,
                    "sources": [source.to_json() for source in drawn.sources],
                }
                for drawn in self.figures
            ],
        }


def of_metric(name: str, entry: Mapping[str, Any], source: Source, *, digits: int = 3) -> Number:
    """Return a metric of ``voxveil evaluate``'s JSON as a number."""
    interval, nothing = (pair_of(entry.get(key)) for key in ("ci95", "null95"))
    return Number(name, entry["value"], entry["unit"], source, interval, nothing, entry["note"] or "", digits)


def pair_of(bounds: Sequence[float] | None, scale: float = 1.0) -> tuple[float, float] | None:
    """Return the bounds of a JSON file times ``scale``, None where there are none."""
    return (scale * bounds[0], scale * bounds[1]) if bounds else None
