"""voxveil ledger: show, total, verify."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.privacy import LaplaceBall, Ledger, RecognizedWords, Release, write_ledger
from voxveil.privacy.loss_rule import LossRule
from voxveil.privacy.register import FolderRegister

from .ledger_entries import make_entry


@pytest.fixture
def releases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Release]:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "register"))
    register = FolderRegister(tmp_path / "register")
    made = []
    for purpose, system in (("evaluation", "anon_dp"), ("release", "anon_dp"), ("release", "anon")):
        ledger = Ledger.open(purpose=purpose, system=system, register=register)  # type: ignore[arg-type]
        content = None if system == "anon" else 2.0
        made.append(ledger.announce([make_entry("a", content=content), make_entry("b", speaker="62")]))
    return made


def test_show_lists_every_release(releases: list[Release], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ledger", "show"]) == 0
    text = capsys.readouterr().out
    assert all(release.id in text for release in releases)
    assert "unbounded" in text
    assert main(["ledger", "show", "--purpose", "evaluation", "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["releases"]
    assert shown["release"] == releases[0].id and shown["epsilon_max"] == 201.0


def test_total_of_a_speaker_and_of_an_utterance(
    releases: list[Release], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ledger", "total", "--speaker", "62", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [item["speaker"] for item in content["speakers"]] == ["62"]
    assert content["epsilon_speaker_max"] == 3 * 201.0
    assert main(["ledger", "total", "--utterance", "a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon_utterance_max"] == "inf"
    assert main(["ledger", "total", "--utterance", "a", "--system", "anon_dp"]) == 0
    assert "largest utterance total 402 nat" in capsys.readouterr().out


@pytest.mark.parametrize("option", [["--speaker", "99"], ["--utterance", "zz"]])
def test_what_is_not_in_the_register_is_an_error(
    releases: list[Release], capsys: pytest.CaptureFixture[str], option: list[str]
) -> None:
    assert main(["ledger", "total", *option]) == 2
    assert option[1] in capsys.readouterr().err


def test_verify_holds_ledger_files_against_the_register(
    releases: list[Release], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "released"
    folder.mkdir()
    for release in releases:
        write_ledger(folder, release)
    assert main(["ledger", "verify", str(folder)]) == 0
    assert "3 ledger files agree" in capsys.readouterr().out
    (tmp_path / "register" / f"{releases[1].id}.json").unlink()
    assert main(["ledger", "verify", str(folder)]) == 3
    assert f"release {releases[1].id} is not in the register" in capsys.readouterr().err


def test_verify_finds_a_damaged_record(
    releases: list[Release], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "register" / f"{releases[0].id}.json").write_text("{")
    assert main(["ledger", "verify"]) == 3
    assert releases[0].id in capsys.readouterr().err


def test_an_empty_register_is_said_to_be_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "none"))
    assert main(["ledger", "total"]) == 0
    assert "no register yet, nothing has been released" in capsys.readouterr().out
    assert main(["ledger", "verify"]) == 2
    assert "does not exist yet" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("action", ["show", "total", "verify"])
def test_a_register_that_is_not_there_is_said_to_be_absent(
    releases: list[Release], tmp_path: Path, capsys: pytest.CaptureFixture[str], action: str
) -> None:
    assert main(["ledger", action, "--register", str(tmp_path / "absent")]) == 2
    streams = capsys.readouterr()
    assert f"register {tmp_path / 'absent'}: does not exist" in streams.err and not streams.out


def test_show_gives_the_epsilon_at_a_delta(
    releases: list[Release], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed")
    assert main(["ledger", "show", "--system", "anon_dp", "--delta", "1e-6", "--json"]) == 0
    for shown in json.loads(capsys.readouterr().out)["releases"]:
        assert 0 < shown["epsilon_delta"] < shown["epsilon_max"] == 201.0


def words_release(register: FolderRegister, digest: str, name: str = "a", speaker: str = "61") -> Release:
    rule = LossRule.of_streams(
        {"words": RecognizedWords(digest), "contour": LaplaceBall(3.0, invariants=frozenset())}
    )
    entry = replace(make_entry(name, speaker=speaker), losses=rule.losses(1), vectors=1)
    return Ledger.open(purpose="release", system="words", register=register).announce([entry])


def test_a_total_with_recognized_words_is_none(
    releases: list[Release], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    register = FolderRegister(tmp_path / "register")
    one, two = "recognized_words@" + "1" * 16, "recognized_words@" + "2" * 16
    words_release(register, "1" * 16)
    words_release(register, "2" * 16)
    words_release(register, "2" * 16, "c", "63")
    options = ["--purpose", "release", "--json"]
    assert main(["ledger", "total", "--system", "words", *options]) == 0
    content = json.loads(capsys.readouterr().out)
    a, c = content["utterances"]
    assert (a["epsilon"], a["epsilon_given"], a["invariants"]) == ("none", 6.0, [one, two])
    assert (c["epsilon"], c["epsilon_given"], c["invariants"]) == ("none", 3.0, [two])
    assert [item["worst"] for item in content["speakers"]] == ["none", "none"]
    assert (content["epsilon_utterance_max"], content["epsilon_utterance_max_given"]) == ("none", 6.0)
    assert (
        content["condition"] == "given the recognized words, errors included" and content["conditional"] == 2
    )

    # Beside releases with noise and without condition: none of them is left out, and nothing is a number.
    assert main(["ledger", "total", *options]) == 0
    by_name = {item["inputs"][0]: item for item in json.loads(capsys.readouterr().out)["utterances"]}
    assert (by_name["a"]["releases"], by_name["a"]["epsilon"], by_name["a"]["epsilon_given"]) == (
        4,
        "none",
        "inf",
    )
    assert (by_name["b"]["epsilon"], by_name["b"]["epsilon_given"]) == (402.0, 402.0)
    assert by_name["b"]["invariants"] == ["length"]

    assert main(["ledger", "total", "--purpose", "release"]) == 0
    text = capsys.readouterr().out
    table = text[text.index("\nutterance  ") + 1 :].splitlines()
    columns = [f"epsilon given {name}" for name in (two, f"{one} and {two}")]
    assert re.split("  +", table[0])[-3:] == ["epsilon", *columns]
    cells = {row.split()[0]: row.split()[-3:] for row in table[1:4]}
    assert cells["a"] == ["none", "none", "unbounded"]
    assert cells["b"] == ["402", "402", "402"]
    assert cells["c"] == ["none", "3", "3"]
    assert "largest utterance total none" in text
    assert "2 utterances were released given the recognized words, errors included" in text


def test_show_says_what_a_release_is_given(
    releases: list[Release], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = words_release(FolderRegister(tmp_path / "register"), "1" * 16)
    assert main(["ledger", "show", "--json"]) == 0
    rows = {row["release"]: row for row in json.loads(capsys.readouterr().out)["releases"]}
    row, other = rows[made.id], rows[releases[0].id]
    assert (row["epsilon_max"], row["epsilon_max_given"]) == ("none", 3.0)
    assert row["given"] == ["recognized_words@" + "1" * 16]
    assert (other["epsilon_max"], other["epsilon_max_given"], other["given"]) == (201.0, 201.0, [])
    assert main(["ledger", "show"]) == 0
    text = capsys.readouterr().out
    assert "epsilon_max_given" in text and "recognized_words@" + "1" * 16 in text
    assert main(["ledger", "show", "--system", "anon_dp"]) == 0
    assert "given" not in capsys.readouterr().out
