"""One record of a release whose inputs several pods announced: every entry once, totals as they were."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.privacy import Ledger, Release, read_ledger, write_ledger
from voxveil.privacy.gathered import gather_releases
from voxveil.privacy.ledger import registered
from voxveil.privacy.record import parse_release
from voxveil.privacy.register import FolderRegister
from voxveil.privacy.totals import speaker_totals, utterance_totals
from voxveil.runtime.atomic import dump_json
from voxveil.runtime.errors import InputError, PrivacyError

from .ledger_entries import make_entry

ENTRIES = {
    name: make_entry(name, vectors=n, speaker=name[0]) for name, n in (("a1", 9), ("a2", 50), ("b1", 7))
}
ORDER = ["b1", "a1", "a2"]


def announce(register: FolderRegister, *names: str, system: str = "anon_dp") -> Release:
    ledger = Ledger.open(purpose="evaluation", system=system, register=register)
    return ledger.announce([ENTRIES[name] for name in names])


@pytest.fixture
def parts(register: FolderRegister) -> list[Release]:
    return [announce(register, "a1", "b1"), announce(register, "a2")]


def test_every_entry_once_in_the_order_of_the_inputs(parts: list[Release], tmp_path: Path) -> None:
    gathered = gather_releases(parts, ORDER)
    assert [entry.input for entry in gathered.entries] == ORDER
    assert gathered.parts == tuple(sorted(part.id for part in parts))
    assert (gathered.system, gathered.purpose) == ("anon_dp", "evaluation")
    assert gathered.epsilon == 101.0
    write_ledger(tmp_path, gathered)
    assert read_ledger(tmp_path / "ledger.json").to_json() == gathered.to_json()
    # Whatever order they are given in, it is the same record.
    assert gather_releases(parts[::-1], ORDER) == gathered


def test_totals_are_those_of_one_release(parts: list[Release], tmp_path: Path) -> None:
    whole = announce(FolderRegister(tmp_path / "other"), *ORDER)
    gathered = gather_releases(parts, ORDER)
    for totals in (utterance_totals, speaker_totals):
        assert totals([gathered]) == totals(parts) == totals([whole])


def test_a_share_done_again_is_charged_again(register: FolderRegister, parts: list[Release]) -> None:
    """A pod that was killed and started again announces its own inputs anew."""
    again = announce(register, "a2")
    gathered = gather_releases([parts[0], again], ORDER)
    assert [entry.earlier for entry in gathered.entries] == [0, 0, 1]
    totals = {total.inputs[0]: total.releases for total in utterance_totals(registered(register))}
    assert totals == {"a1": 1, "a2": 2, "b1": 1}


def test_what_does_not_fit_together_is_refused(register: FolderRegister, parts: list[Release]) -> None:
    one, two = parts
    for releases, order, why in (
        ([one], ["a1", "b1"], "1 releases to gather: must be at least 2"),
        ([one, one], ORDER, "each another one"),
        ([one, two], [*ORDER, "a1"], "an input is to be gathered twice"),
        ([one, two], [*ORDER, "c1"], "input c1 is in none of the releases to gather"),
        ([one, two], ORDER[:2], "input a2 was announced, but nothing of it is there"),
        ([one, announce(register, "b1", "a2")], ORDER, "input b1 is in two of the releases"),
        (
            [one, announce(register, "a2", system="anon")],
            ORDER,
            "not of one run: system is 'anon_dp' and 'anon'",
        ),
        ([one, dataclasses.replace(two, version="0.1")], ORDER, "not of one run: version is"),
        ([one, dataclasses.replace(two, purpose="release")], ORDER, "not of one run: purpose is"),
    ):
        with pytest.raises(PrivacyError, match=why):
            gather_releases(releases, order)


@pytest.mark.parametrize(
    "change", [["0" * 32], "x", ["0" * 32, "0" * 32], ["1" * 32, "0" * 32], ["a", "b"], [1, 2]]
)
def test_false_parts_are_refused(parts: list[Release], change: object) -> None:
    record = gather_releases(parts, ORDER).to_json()
    with pytest.raises(InputError, match="parts must be different release ids, sorted"):
        parse_release(dump_json({**record, "parts": change}).encode(), "ledger.json")


def test_an_id_of_its_own_is_refused(parts: list[Release]) -> None:
    record = gather_releases(parts, ORDER).to_json()
    with pytest.raises(InputError, match="release is not the id that follows from its parts"):
        parse_release(dump_json({**record, "release": "0" * 32}).encode(), "ledger.json")


def test_the_register_takes_no_gathered_record(register: FolderRegister, parts: list[Release]) -> None:
    """Its parts are charged there: totals with both would be twice what was released."""
    gathered = gather_releases(parts, ORDER)
    register.create(gathered.id, dump_json(gathered.to_json()).encode())
    with pytest.raises(PrivacyError, match="was gathered from releases that are charged themselves"):
        registered(register)


def verify(register: FolderRegister, folder: Path) -> int:
    return main(["ledger", "verify", "--register", register.location, str(folder)])


def test_verify_holds_a_gathered_ledger_against_its_parts(
    register: FolderRegister, parts: list[Release], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gathered = gather_releases(parts, ORDER)
    write_ledger(tmp_path / "out", gathered)
    assert verify(register, tmp_path / "out") == 0
    assert "1 ledger files agree" in capsys.readouterr().out
    write_ledger(tmp_path / "later", dataclasses.replace(gathered, time="2030-01-01T00:00:00Z"))
    assert verify(register, tmp_path / "later") == 3
    assert "ledger.json: differs from its parts in the register" in capsys.readouterr().err
    write_ledger(tmp_path / "less", dataclasses.replace(gathered, entries=gathered.entries[:2]))
    assert verify(register, tmp_path / "less") == 3
    assert "input a2 was announced, but nothing of it is there" in capsys.readouterr().err
    (tmp_path / f"register/{gathered.parts[0]}.json").unlink()
    assert verify(register, tmp_path / "out") == 3
    assert f"its part {gathered.parts[0]} is not in the register" in capsys.readouterr().err


def test_a_record_without_parts_is_what_it_was(parts: list[Release]) -> None:
    assert "parts" not in json.loads(dump_json(parts[0].to_json()))
