"""The table of all probes of an experiment, with the published values.

Each ``probe.json`` is checked against its schema when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from voxveil.results.report.shape import EPSILON, FLAG, NUMBER, PAIR, SOME, TEXT, Maybe, check_shape
from voxveil.results.wording import concentrated, epsilon_value
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import require_done
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.runtime.terminal import align_columns

__all__ = [
    "NOTES",
    "PUBLISHED",
    "Probe",
    "check_probe",
    "content_rows",
    "experiment_lines",
    "mean_of",
    "pitch_rows",
    "read_probes",
    "series",
]

Probe = dict[str, Any]

#: P_ASI in % by epsilon, "inf" without noise ("Differentially private speaker anonymization", Shamsabadi et
#: al. 2023, figure 5 and its text).
PUBLISHED: dict[str, dict[str, str]] = {
    "pitch": {"inf": "62", "1": "above 94"},
    "content": {"inf": "3.2", "100": "60", "10": "80", "1": "above 86"},
}


_CONTENT = "Content: epsilon per released vector; utterance = median of the held-out utterances"
NOTES = (
    "P_ASI is the error of naming the speaker (mean over draws; intervals over speakers, of draw 1), by an",
    "x-vector network or by statistics with a shrunk covariance, whichever names more. Its limit is the",
    "least error of any attacker, proven: 1 - 1/S - sqrt(I/2), I the bound of an utterance.",
    "Published: from the paper's figure 5 and text, at full size with its own extractors.",
)


def read_probes(folder: Path) -> list[Probe]:
    """Read every finished probe under a folder, sorted by kind, mechanism, epsilon and draw.

    Raises:
        IncompleteInputError: There is none.
        InputError: A probe is not of format 1 or lacks what is shown, or two measured different corpora.
    """
    found: list[Probe] = []
    for path in sorted(Path(folder).rglob("probe.json")):
        require_done(path.parent, f"probe {path.parent}")
        probe = read_json(path)
        if not isinstance(probe, dict) or probe.get("format") != 1:
            raise InputError(f"{path}: not a probe of format 1")
        if found and probe.get("corpus") != found[0]["corpus"]:
            raise InputError(f"{path}: measured another corpus than the first probe; they are not comparable")
        check_probe(path, probe)
        found.append(probe)
    if not found:
        raise IncompleteInputError(f"{folder}: no finished probe (probe.json) in it")
    return sorted(found, key=_order)


def series(probes: Sequence[Probe], kind: str) -> dict[tuple[str, str], list[list[Probe]]]:
    """Group the probes of a kind: (mechanism, rate) -> variants by rising epsilon -> draws."""
    groups: dict[tuple[str, str], dict[str, list[Probe]]] = {}
    for probe in probes:
        if probe["kind"] == kind:
            key = (probe["mechanism"], _rate(probe))
            groups.setdefault(key, {}).setdefault(probe["variant"], []).append(probe)
    return {key: list(variants.values()) for key, variants in groups.items()}


def mean_of(draws: Sequence[Probe], *path: str) -> float:
    """Return the mean over draws of a nested figure, NaN where a draw has none."""
    values = []
    for probe in draws:
        value: Any = probe
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        values.append(math.inf if value == "inf" else math.nan if value is None else float(value))
    return sum(values) / len(values)


def experiment_lines(probes: Sequence[Probe]) -> list[str]:
    """Return the table of an experiment as lines of text."""
    corpus = probes[0]["corpus"]
    lines = [
        f"Corpus: {corpus['name']}{' (synthetic speech)' if corpus['synthetic'] else ''}, public speakers.",
    ]
    for kind, caption, rows in (
        ("pitch", "Pitch: epsilon per utterance", pitch_rows),
        ("content", _CONTENT, content_rows),
    ):
        if any(probe["kind"] == kind for probe in probes):
            lines += ["", caption, *align_columns(rows(probes), rule=True, indent="  ")]
    return [*lines, "", *NOTES]


def pitch_rows(probes: Sequence[Probe]) -> list[list[str]]:
    """Return the table of the pitch mechanisms, its header first."""
    rows = []
    for (mechanism, _), variants in series(probes, "pitch").items():
        for draws in variants:
            correlation = mean_of(draws, "correlation", "value")
            floor = mean_of(draws, "correlation_floor", "value")
            rows.append(
                {
                    "mechanism": mechanism,
                    "epsilon": _epsilon(draws[0]),
                    "draws": str(len(draws)),
                    "correlation": _with_interval(correlation, draws[0]["correlation"]["ci95"], 3),
                    "floor": _plain(floor, 3),
                    **_asi_cells("pitch", mechanism, draws),
                }
            )
    return _with_header(rows)


def content_rows(probes: Sequence[Probe]) -> list[list[str]]:
    """Return the table of the content mechanisms, its header first."""
    rows = []
    some = any(concentrated(probe["loss"]) for probe in probes)
    for (mechanism, rate), variants in series(probes, "content").items():
        for draws in variants:
            first, epsilon = draws[0], _epsilon(draws[0])
            utterance = _number(mean_of(draws, "epsilon_utterance", "median"))
            accuracy = mean_of(draws, "frame_accuracy", "all", "value")
            rows.append(
                {
                    "mechanism": mechanism,
                    "every": rate,
                    "epsilon": epsilon,
                    "utterance": epsilon if concentrated(first["loss"]) else utterance,
                    "draws": str(len(draws)),
                    "frames right %": _with_interval(accuracy, first["frame_accuracy"]["all"]["ci95"], 1),
                    "with phone LM %": _plain(mean_of(draws, "frame_accuracy_phone_lm", "all", "value"), 1),
                    "WER %": _plain(mean_of(draws, "wer", "value"), 1),
                    **_asi_cells("content", mechanism, draws),
                    **(_concentrated(first) if some else {}),
                }
            )
    return _with_header(rows)


def _with_header(rows: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """Return the cells of at least one row below the names of their columns."""
    return [list(rows[0]), *(list(row.values()) for row in rows)]


def _asi_cells(kind: str, mechanism: str, draws: Sequence[Probe]) -> dict[str, str]:
    """Return the columns of speaker identification."""
    error = 100.0 * (1.0 - mean_of(draws, "asi", "accuracy"))
    interval = [100.0 * bound for bound in draws[0]["asi"]["p_asi_ci95"]]
    published = PUBLISHED[kind] if mechanism in ("identity", "laplace") else {}
    return {
        "P_ASI %": _with_interval(error, interval, 1),
        "limit %": f"{100.0 * (1.0 - mean_of(draws, 'asi', 'limit')):.1f}",
        "published %": published.get(_epsilon(draws[0]).replace("∞", "inf"), "-"),
    }


def _order(probe: Probe) -> tuple[Any, ...]:
    size = probe["loss"].get("rho") or epsilon_value(probe["loss"]["epsilon"])
    return (probe["kind"], probe["mechanism"] != "identity", probe["mechanism"], _rate(probe), size,
            probe["variant"], probe["draw"])  # fmt: skip


def _rate(probe: Probe) -> str:
    return f"{10 * probe['every']} ms" if "every" in probe else ""


def _concentrated(probe: Probe) -> dict[str, str]:
    """Return the columns that only Gaussian noise fills: an epsilon at a delta is no pure one."""
    rho = utterance = "-"
    if concentrated(probe["loss"]):
        rho = f"{probe['loss']['rho']:g}"
        utterance = f"{probe['epsilon_delta_utterance']['median']:,.1f} at {probe['delta']:g}"
    return {"zCDP rho": rho, "utterance, epsilon at delta": utterance}


def _epsilon(probe: Probe) -> str:
    epsilon = probe["loss"]["epsilon"]
    if concentrated(probe["loss"]):
        return "none"
    return "∞" if epsilon == "inf" else f"{epsilon:g}"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:,.0f}"


def _plain(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _with_interval(value: float, interval: Sequence[float] | None, digits: int) -> str:
    bounds = "" if interval is None else f" [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"
    return f"{value:.{digits}f}{bounds}"


_MEASURED = {"value": Maybe(NUMBER), "ci95?": Maybe(PAIR)}
_COMMON = {
    "variant": TEXT,
    "mechanism": TEXT,
    "draw": SOME,
    "corpus": {"name": TEXT, "synthetic": FLAG},
    "loss": {"epsilon": EPSILON, "measure?": TEXT, "rho?": Maybe(NUMBER)},
    "epsilon_utterance": {"median": EPSILON},
    "asi": {"accuracy": NUMBER, "p_asi": NUMBER, "p_asi_ci95": PAIR, "chance": NUMBER, "limit": NUMBER},
}
_OF_KIND: dict[str, dict[str, Any]] = {
    "pitch": {
        "correlation": _MEASURED,
        "correlation_floor?": _MEASURED,
        "tracks": [{"utterance": TEXT, "true": [NUMBER], "released": [NUMBER]}],
    },
    "content": {
        "every": SOME,
        "phones": SOME,
        "phone_frames": NUMBER,
        "frame_chance": NUMBER,
        "vectors": {"median": NUMBER},
        "frame_accuracy": {"all": _MEASURED},
        "frame_accuracy_phone_lm?": {"all": _MEASURED},
        "wer?": _MEASURED,
        "delta?": NUMBER,
        "epsilon_delta_utterance?": {"median": NUMBER},
    },
}


def check_probe(path: Path, content: dict[str, Any]) -> None:
    """Raise an error if a probe lacks a required field.

    Raises:
        IncompleteInputError: Naming the file, the place, what is there and what must be.
    """
    kind = content.get("kind")
    if not isinstance(kind, str) or kind not in _OF_KIND:
        raise IncompleteInputError(f"{path}: kind must be pitch or content, got {kind!r}; run it again")
    check_shape(path, content, {**_COMMON, **_OF_KIND[kind]}, stage="probe")
