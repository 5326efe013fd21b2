"""Damaged records of a register ended in tracebacks that did not name the record."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from voxveil.cli.main import main
from voxveil.privacy import Entry, LaplaceCube, Ledger, Release
from voxveil.privacy.loss import add_up
from voxveil.privacy.register import FolderRegister
from voxveil.privacy.totals import speaker_totals, utterance_totals
from voxveil.runtime.atomic import dump_json


def announce(folder: Path, epsilon: float = 1.0) -> Release:
    ledger = Ledger.open(purpose="release", system="anon", register=FolderRegister(folder))
    loss = LaplaceCube(epsilon).loss_for((16, 100))
    return ledger.announce([Entry("a", hashlib.sha256(b"a").hexdigest(), 100, {"pitch": loss}, "61")])


def entry_with(**values: Any) -> Callable[[dict[str, Any]], str]:
    def damage(record: dict[str, Any]) -> str:
        record["entries"][0].update(values)
        return dump_json(record)

    return damage


def loss_with(name: str, text: str) -> Callable[[dict[str, Any]], str]:
    def damage(record: dict[str, Any]) -> str:
        record["entries"][0]["losses"]["pitch"][name] = "HERE"
        return dump_json(record).replace('"HERE"', text)

    return damage


@pytest.mark.parametrize("action", ["verify", "total"])
@pytest.mark.parametrize(
    "damage",
    [
        entry_with(speaker=5),
        entry_with(speaker=["61"]),
        entry_with(input=5),
        entry_with(earlier="1"),
        entry_with(vectors=10**400),
        entry_with(sha256="0" * 5000),
        loss_with("epsilon", "9" * 5001),
        loss_with("epsilon", "9" * 400),
        loss_with("epsilon", "-" + "9" * 4000),
        loss_with("epsilon", "NaN"),
        loss_with("mechanism", "5"),
        loss_with("note", "null"),
        lambda record: "[" * 100_000,
        lambda record: dump_json({**record, "system": 5}),
        lambda record: dump_json({**record, "time": "x" * 5000}),
        lambda record: dump_json({**record, "entries": [5]}),
    ],
)
def test_a_damaged_record_is_one_line_that_names_it(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    action: str,
    damage: Callable[[dict[str, Any]], str],
) -> None:
    release = announce(tmp_path / "register")
    (tmp_path / "register" / f"{release.id}.json").write_text(damage(release.to_json()))
    assert main(["ledger", action, "--register", str(tmp_path / "register")]) == 3
    error = capsys.readouterr().err
    assert f"register: {release.id}" in error.replace(str(tmp_path), "").replace("/register", "register")
    assert error.count("\n") == 1 and len(error) < 1000


def test_epsilons_too_large_to_add_are_no_bound(tmp_path: Path) -> None:
    releases = [announce(tmp_path / "register", 1e308) for _ in range(3)]
    assert math.isinf(utterance_totals(releases)[0].epsilon)
    assert math.isinf(speaker_totals(releases)[0].epsilon)
    assert add_up([0.1] * 10) == 1.0
