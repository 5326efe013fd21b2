"""Announced before, charged once per release, never rewritten, checked when read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from voxveil.privacy import (
    Entry,
    LaplaceSimplex,
    Ledger,
    PublicNoise,
    read_ledger,
    read_ledgers,
    write_ledger,
)
from voxveil.privacy.ledger import registered
from voxveil.privacy.record import parse_release
from voxveil.privacy.register import FolderRegister
from voxveil.privacy.totals import speaker_totals, utterance_totals
from voxveil.runtime.atomic import dump_json
from voxveil.runtime.errors import InputError, PrivacyError

MakeEntry = Callable[..., Entry]


def opened(register: FolderRegister, purpose: str = "release", system: str = "anon_dp") -> Ledger:
    return Ledger.open(purpose=purpose, system=system, register=register)  # type: ignore[arg-type]


def test_the_record_says_everything(register: FolderRegister, entry: MakeEntry) -> None:
    release = opened(register).announce([entry("a", vectors=350), entry("b", vectors=10, speaker=None)])
    content = json.loads(json.dumps(release.to_json(), allow_nan=False))
    first, second = content["entries"]
    assert content["purpose"] == "release" and content["system"] == "anon_dp"
    assert content["neighbours"] == "any two utterances with equal sample count"
    assert "sample count" in content["public_by_definition"]
    assert content["epsilon_max"] == 1.0 + 350 * 2.0
    assert first["vectors"] == 350 and first["speaker"] == "61" and "speaker" not in second
    assert (first["utterance"]["epsilon"], second["utterance"]["epsilon"]) == (701.0, 21.0)
    assert first["losses"]["pitch"] == {
        "measure": "pure",
        "epsilon": 1.0,
        "unit": "utterance",
        "sensitivity": 16.0 * 350,
        "mechanism": "laplace_cube",
        "version": "2",
        "note": "",
        "invariants": ["length"],
    }
    assert first["losses"]["content"]["unit"] == "vector" and first["losses"]["content"]["sensitivity"] == 2.0


def test_register_and_ledger_file_hold_the_same(
    register: FolderRegister, entry: MakeEntry, tmp_path: Path
) -> None:
    release = opened(register).announce([entry()])
    path = write_ledger(tmp_path, release)
    assert path.name == "ledger.json"
    assert register.read_all()[release.id] == path.read_bytes()
    assert read_ledger(path).to_json() == release.to_json()


def test_a_resumed_run_is_charged_again_and_says_so(
    register: FolderRegister, entry: MakeEntry, tmp_path: Path
) -> None:
    """The first run of three is killed after one file; the second redraws the other two."""
    first = opened(register).announce([entry(name) for name in "abc"])
    assert first.warnings == ()
    second = opened(register).announce([entry(name) for name in "bc"])
    (warning,) = second.warnings
    assert "2 of 2 inputs" in warning and "charged again" in warning
    assert [item.earlier for item in second.entries] == [1, 1]
    totals = {total.inputs: total for total in utterance_totals(registered(register))}
    assert totals["a",].epsilon == 201.0
    assert totals["b",].epsilon == totals["c",].epsilon == 402.0
    assert {write_ledger(tmp_path, r).name for r in (first, second)} == {
        "ledger.json",
        f"ledger-{second.id}.json",
    }
    assert [release.id for release in read_ledgers(tmp_path)] == [r.id for r in registered(register)]


def test_another_system_or_purpose_is_no_redraw_but_adds_up(
    register: FolderRegister, entry: MakeEntry
) -> None:
    opened(register).announce([entry("a")])
    assert opened(register, system="anon_dp_bn").announce([entry("a")]).warnings == ()
    assert opened(register, purpose="evaluation").announce([entry("a")]).warnings == ()
    releases = registered(register)
    assert utterance_totals(releases)[0].epsilon == 3 * 201.0
    assert utterance_totals(releases, purpose="evaluation")[0].epsilon == 201.0
    assert utterance_totals(releases, system="anon_dp_bn")[0].releases == 1


def test_a_release_counts_once_however_often_it_is_read(register: FolderRegister, entry: MakeEntry) -> None:
    release = opened(register).announce([entry("a")])
    copy = parse_release(dump_json(release.to_json()).encode(), "copy")
    assert utterance_totals([release, copy, release])[0].epsilon == 201.0
    assert speaker_totals([release, copy])[0].epsilon == 201.0


def test_an_utterance_is_its_audio_and_a_speaker_the_sum(register: FolderRegister, entry: MakeEntry) -> None:
    opened(register).announce(
        [
            entry("a", audio=b"one"),
            entry("b", audio=b"two", vectors=10),
            entry("c", audio=b"three", speaker="62"),
            entry("d", audio=b"four", speaker=None),
        ]
    )
    opened(register).announce([entry("renamed", audio=b"one")])
    utterances = utterance_totals(registered(register))
    assert {total.inputs: total.epsilon for total in utterances} == {
        ("a", "renamed"): 402.0,
        ("b",): 21.0,
        ("c",): 201.0,
        ("d",): 201.0,
    }
    speakers = speaker_totals(registered(register))
    assert [(t.speaker, t.utterances, t.releases, t.epsilon, t.worst) for t in speakers] == [
        ("61", 2, 3, 423.0, 402.0),
        ("62", 1, 1, 201.0, 201.0),
    ]


def test_a_release_without_noise_leaves_no_bound(register: FolderRegister, entry: MakeEntry) -> None:
    release = opened(register).announce([entry("a", content=None)])
    assert math.isinf(release.epsilon)
    assert release.to_json()["epsilon_max"] == "inf"
    assert math.isinf(speaker_totals(registered(register))[0].epsilon)


def test_halving_epsilon_moves_the_ledger(register: FolderRegister, entry: MakeEntry) -> None:
    full = opened(register).announce([entry("a", pitch=2.0, content=4.0)])
    half = opened(register).announce([entry("a", pitch=1.0, content=2.0)])
    assert half.epsilon == full.epsilon / 2


def test_seeded_noise_cannot_be_announced(register: FolderRegister, entry: MakeEntry) -> None:
    sample = entry("a")
    seeded = LaplaceSimplex(1.0).release(sample_value(), PublicNoise(1)).loss
    with pytest.raises(PrivacyError, match="protects nobody"):
        opened(register).announce([Entry("a", sample.sha256, 5, {"content": seeded})])
    assert register.names() == []


def sample_value() -> Any:
    import numpy as np

    return np.ones((5, 8))


def test_what_is_released_must_be_what_was_announced(register: FolderRegister, entry: MakeEntry) -> None:
    release = opened(register).announce([entry("a", vectors=100)])
    right = entry("a", vectors=100)
    release.require("a", right.losses, 100)
    with pytest.raises(PrivacyError, match="input b: was not announced"):
        release.require("b", right.losses, 100)
    for losses, vectors in (
        (right.losses, 101),
        (entry("a", content=4.0).losses, 100),
        (entry("a", vectors=99).losses, 100),
        ({"content": right.losses["content"]}, 100),
    ):
        with pytest.raises(PrivacyError, match="input a: released .* announced were 100"):
            release.require("a", losses, vectors)


def test_nothing_and_the_same_input_twice_are_refused(register: FolderRegister, entry: MakeEntry) -> None:
    with pytest.raises(PrivacyError, match="no inputs"):
        opened(register).announce([])
    with pytest.raises(PrivacyError, match="listed twice"):
        opened(register).announce([entry("a"), entry("a")])
    assert register.names() == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input": ""}, "name"),
        ({"sha256": "abc"}, "sha256"),
        ({"vectors": 0}, "vectors"),
        ({"vectors": True}, "vectors"),
        ({"vectors": 3.0}, "vectors"),
        ({"losses": {}}, "no losses"),
        ({"losses": {"pitch": 1.0}}, "must be a Loss"),
        ({"speaker": ""}, "speaker"),
    ],
)
def test_an_entry_that_cannot_be_accounted_for_is_refused(
    entry: MakeEntry, change: dict[str, Any], message: str
) -> None:
    good = entry()
    fields = {name: getattr(good, name) for name in ("input", "sha256", "vectors", "losses", "speaker")}
    with pytest.raises(PrivacyError, match=message):
        Entry(**{**fields, **change})


@pytest.mark.parametrize(("purpose", "system"), [("test", "anon_dp"), ("", "anon_dp"), ("release", "")])
def test_a_ledger_needs_a_purpose_and_a_system(register: FolderRegister, purpose: str, system: str) -> None:
    with pytest.raises(PrivacyError):
        opened(register, purpose, system)


def tampered(content: dict[str, Any], path: list[Any], value: Any) -> bytes:
    target: Any = content
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return dump_json(content).encode()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["format"], 3),
        (["release"], "../x"),
        (["purpose"], "test"),
        (["time"], "yesterday"),
        (["entries"], []),
        (["epsilon_max"], 0.5),
        (["entries", 0, "utterance", "epsilon"], 1.0),
        (["entries", 0, "losses", "content", "epsilon"], 1e-3),
        (["entries", 0, "losses", "content", "epsilon"], 0),
        (["entries", 0, "losses", "content", "unit"], "utterance"),
        (["entries", 0, "losses", "pitch"], {}),
        (["entries", 0, "vectors"], 1),
        (["entries", 0, "sha256"], "0"),
        (["entries", 0, "extra"], 1),
        (["neighbours"], "frames"),
    ],
)
def test_an_edited_record_is_refused_by_name(
    register: FolderRegister, entry: MakeEntry, tmp_path: Path, path: list[Any], value: Any
) -> None:
    release = opened(register).announce([entry()])
    file = tmp_path / "ledger.json"
    file.write_bytes(tampered(release.to_json(), path, value))
    with pytest.raises(InputError, match="ledger.json"):
        read_ledger(file)


def test_a_damaged_register_stops_totals_and_releases(
    register: FolderRegister, entry: MakeEntry, tmp_path: Path
) -> None:
    release = opened(register).announce([entry()])
    stored = tmp_path / "register" / f"{release.id}.json"
    whole = stored.read_bytes()
    for content in (b"", whole[:100], whole.replace(release.id.encode(), b"0" * 32), b"[]"):
        stored.write_bytes(content)
        with pytest.raises(PrivacyError, match=release.id):
            registered(register)
        with pytest.raises(PrivacyError, match=f"{release.id}.*nothing was released"):
            opened(register).announce([entry("b")])


def test_missing_ledgers_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no ledger.json"):
        read_ledgers(tmp_path)
    with pytest.raises(InputError, match="no such ledger"):
        read_ledger(tmp_path / "ledger.json")
