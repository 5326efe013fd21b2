"""Reader of a run's results from outputs of evaluate, report or ``voxveil evaluate``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voxveil.results.report.results import Summary
from voxveil.runtime.atomic import read_json
from voxveil.runtime.done import DONE, require_done
from voxveil.runtime.errors import InputError

__all__ = ["EVALUATE", "RunResults", "external_summary", "read_results", "read_summaries"]

#: Output folder of the evaluate stage.
EVALUATE = "outputs/evaluate"


@dataclass(frozen=True)
class RunResults:
    """One run's results.

    Attributes:
        label: Heading of its column.
        origin: Where they came from, for people.
        systems: ``summary.json`` of each system.
        scores: Folder with one score output per system, None where they are not at hand.
        run_id: MLflow run, empty for files.
        experiment_id: Its MLflow experiment.
    """

    label: str
    origin: str
    systems: tuple[Summary, ...]
    scores: Path | None = None
    run_id: str = ""
    experiment_id: str = ""


def read_results(text: str, path: Path) -> RunResults:
    """Return the results in a folder or JSON file, under the label ``text``.

    Raises:
        InputError: The path holds no results, or they are not readable.
    """
    if path.is_file():
        systems = read_summaries(path)
        beside = path.resolve().parent.parent / "score"
        return RunResults(text, str(path), systems, beside if beside.is_dir() else None)
    if (path / EVALUATE).is_dir():
        path = path / EVALUATE
    if (path / "results.json").is_file():
        return read_results(text, path / "results.json")
    folders = [path] if (path / "summary.json").is_file() else _folders(path)
    if not folders:
        raise InputError(
            f"{path}: no results in it (summary.json, */summary.json, results.json or {EVALUATE})"
        )
    systems = tuple(_summary(folder / "summary.json") for folder in folders)
    beside = folders[0].resolve().parent.parent / "score"
    return RunResults(text, str(path), systems, beside if beside.is_dir() else None)


def _folders(path: Path) -> list[Path]:
    return sorted(file.parent for file in path.glob("*/summary.json"))


def _summary(path: Path) -> Summary:
    if (path.parent / DONE).is_file():
        require_done(path.parent, path.parent.name)
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != 1 or not content.get("attacks"):
        raise InputError(f"{path}: not the summary of a system (evaluate stage)")
    return content


def read_summaries(path: Path) -> tuple[Summary, ...]:
    """Return the summary of each system in a JSON file of results.

    Raises:
        InputError: The file is of another form.
    """
    content = read_json(path)
    if isinstance(content, dict) and content.get("format") == 1 and content.get("systems"):
        return tuple(content["systems"])
    if isinstance(content, dict) and content.get("format") == 1 and content.get("attacks"):
        return (content,)
    if isinstance(content, dict) and {"trials", "metrics", "warnings"} <= content.keys():
        return (external_summary(content, path.stem, "not stated", "not stated"),)
    raise InputError(f"{path}: neither results.json, nor summary.json, nor the JSON of 'voxveil evaluate'")


def external_summary(content: dict[str, Any], name: str, attacker: str, scenario: str) -> Summary:
    """Return the result of ``voxveil evaluate`` as a summary without known privacy loss."""
    attack = {
        **content,
        "attacker": attacker,
        "scenario": scenario,
        **dict.fromkeys(("enrolment", "trial", "training"), "not stated"),
    }
    return {"system": name, "kind": "external", "attacks": [attack]}
