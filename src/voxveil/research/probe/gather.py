"""The table of all probes of an experiment, with the published values.

Each ``probe.json`` is checked against its schema when it is read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    if any(probe["kind"] == "pitch" for probe in probes):
        lines += [
            "",
            "Pitch: epsilon per utterance",
            *align_columns(pitch_rows(probes), rule=True, indent="  "),
        ]
    if any(probe["kind"] == "content" for probe in probes):
        lines += [
            "",
            "Content: epsilon per released vector; utterance = median of the held-out utterances",
            *align_columns(content_rows(probes), rule=True, indent="  "),
        ]
    return [*lines, "", *NOTES]


def pitch_rows(probes: Sequence[Probe]) -> list[list[str]]:
    """Return the table of the pitch mechanisms, its header first."""
    rows = [["mechanism", "epsilon", "draws", "correlation", "floor", "P_ASI %", "limit %", "published %"]]
    for (mechanism, _), variants in series(probes, "pitch").items():
        for draws in variants:
            epsilon = _epsilon(draws[0])
            floor = mean_of(draws, "correlation_floor", "value")
            rows.append(
                [
                    mechanism,
                    epsilon,
                    str(len(draws)),
                    _with_interval(
                        mean_of(draws, "correlation", "value"), draws[0]["correlation"]["ci95"], 3
                    ),
                    "-" if math.isnan(floor) else f"{floor:.3f}",
                    *_asi_cells(draws),
                    _published("pitch", mechanism, epsilon),
                ]
            )
    return rows


def content_rows(probes: Sequence[Probe]) -> list[list[str]]:
    """Return the table of the content mechanisms, its header first."""
    rows = [
        [
            "mechanism",
            "every",
            "epsilon",
            "utterance",
            "draws",
            "frames right %",
            "with phone LM %",
            "WER %",
            "P_ASI %",
            "limit %",
            "published %",
        ]
    ]
    some = any(concentrated(probe["loss"]) for probe in probes)
    rows[0] += ["zCDP rho", "utterance, epsilon at delta"] if some else []
    for (mechanism, rate), variants in series(probes, "content").items():
        for draws in variants:
            epsilon = _epsilon(draws[0])
            accuracy = draws[0]["frame_accuracy"]["all"]
            rows.append(
                [
                    mechanism,
                    rate,
                    epsilon,
                    epsilon
                    if concentrated(draws[0]["loss"])
                    else _number(mean_of(draws, "epsilon_utterance", "median")),
                    str(len(draws)),
                    _with_interval(mean_of(draws, "frame_accuracy", "all", "value"), accuracy["ci95"], 1),
                    _plain(mean_of(draws, "frame_accuracy_phone_lm", "all", "value")),
                    _plain(mean_of(draws, "wer", "value")),
                    *_asi_cells(draws),
                    _published("content", mechanism, epsilon),
                    *(_concentrated(draws[0]) if some else []),
                ]
            )
    return rows


def _asi_cells(draws: Sequence[Probe]) -> list[str]:
    first = draws[0]["asi"]
    error = 100.0 * (1.0 - mean_of(draws, "asi", "accuracy"))
    interval = [100.0 * bound for bound in first["p_asi_ci95"]]
    return [_with_interval(error, interval, 1), f"{100.0 * (1.0 - mean_of(draws, 'asi', 'limit')):.1f}"]


def _published(kind: str, mechanism: str, epsilon: str) -> str:
    if mechanism not in ("identity", "laplace"):
        return "-"
    return PUBLISHED[kind].get("inf" if epsilon == "∞" else epsilon, "-")


def _order(probe: Probe) -> tuple[Any, ...]:
    size = probe["loss"].get("rho") or epsilon_value(probe["loss"]["epsilon"])
    return (probe["kind"], probe["mechanism"] != "identity", probe["mechanism"], _rate(probe), size,
            probe["variant"], probe["draw"])  # fmt: skip


def _rate(probe: Probe) -> str:
    return f"{10 * probe['every']} ms" if "every" in probe else ""


def _concentrated(probe: Probe) -> list[str]:
    """Return the columns that only Gaussian noise fills: an epsilon at a delta is no pure one."""
    if not concentrated(probe["loss"]):
        return ["-", "-"]
    found = probe["epsilon_delta_utterance"]["median"]
    return [f"{probe['loss']['rho']:g}", f"{found:,.1f} at {probe['delta']:g}"]


def _epsilon(probe: Probe) -> str:
    epsilon = probe["loss"]["epsilon"]
    if concentrated(probe["loss"]):
        return "none"
    return "∞" if epsilon == "inf" else f"{epsilon:g}"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:,.0f}"


def _plain(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.1f}"


def _with_interval(value: float, interval: Sequence[float] | None, digits: int) -> str:
    if interval is None:
        return f"{value:.{digits}f}"
    return f"{value:.{digits}f} [{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"


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
