"""Manifest and summary: deterministic, read back the same, refused by line."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.datasets.changes import compare
from voxveil.datasets.face import Row, face_text, manifest_text, parse_face, parse_manifest, summary
from voxveil.runtime.errors import InputError

IDS = st.text("abcXYZ0129-_.é", min_size=1, max_size=6)
ROWS = st.builds(
    Row,
    utterance=IDS,
    speaker=IDS,
    sex=st.sampled_from("FM"),
    subset=st.sampled_from(["", "part"]),
    milliseconds=st.integers(0, 10**7),
    sha256=st.binary(max_size=2).map(lambda data: hashlib.sha256(data).hexdigest()),
)
CORPORA = st.lists(ROWS, max_size=12, unique_by=lambda row: row.utterance)


@given(CORPORA, st.randoms())
def test_a_manifest_reads_back_and_knows_no_order(rows: list[Row], random) -> None:
    text = manifest_text(rows)
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert manifest_text(shuffled) == text
    assert list(parse_manifest(text, "m")) == sorted(rows)
    assert text.endswith("\n")


@given(CORPORA)
def test_a_summary_is_what_counting_gives(rows: list[Row]) -> None:
    face = summary("clinic", rows, public=False, storage="files", dvc_md5="x")
    female, male = 0, 0
    for speaker in {row.speaker for row in rows}:
        sex = [row.sex for row in rows if row.speaker == speaker][-1]
        female, male = female + (sex == "F"), male + (sex == "M")
    assert (face.speakers_f, face.speakers_m, face.utterances) == (female, male, len(rows))
    assert face.hours == pytest.approx(sum(row.milliseconds for row in rows) / 3.6e6, abs=1e-6)
    assert face.manifest_sha256 == hashlib.sha256(manifest_text(rows).encode()).hexdigest()
    assert parse_face(face_text(face), "f") == face


@given(CORPORA, CORPORA)
def test_changes_agree_with_a_slow_comparison(before: list[Row], after: list[Row]) -> None:
    changes = compare(before, after)
    added = [b for b in sorted(after) if all(a.utterance != b.utterance for a in before)]
    removed = [a for a in sorted(before) if all(a.utterance != b.utterance for b in after)]
    changed = [(a, b) for a in sorted(before) for b in after if a.utterance == b.utterance and a != b]
    assert (list(changes.added), list(changes.removed), list(changes.changed)) == (added, removed, changed)
    speakers = [{row.speaker for row in rows} for rows in (before, after)]
    assert set(changes.speakers_added) == speakers[1] - speakers[0]
    assert set(changes.speakers_removed) == speakers[0] - speakers[1]
    same = [
        speaker
        for speaker in speakers[0] & speakers[1]
        if [r for r in sorted(before) if r.speaker == speaker]
        == [r for r in sorted(after) if r.speaker == speaker]
    ]
    assert set(changes.speakers_changed) == (speakers[0] & speakers[1]) - set(same)
    back = compare(after, before)
    assert (back.added, back.removed) == (changes.removed, changes.added)


ROW = f"u1\tanna\tF\t\t1.000\t{'a' * 64}"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["utterance speaker"], "m:1: must be the columns"),
        ([ROW, ROW], "u1 is listed twice or out of order"),
        ([ROW.replace("F", "x")], "m:2: needs an utterance"),
        ([ROW.replace("1.000", "1")], "m:2: seconds need three decimals"),
        ([ROW.replace("aaa", "zzz")], "m:2: seconds need three decimals and sha256"),
        ([ROW + "\tmore"], "m:2: must have 6 columns"),
        (["<<<<<<< HEAD", ROW], "m:2: must have 6 columns"),
    ],
)
def test_a_wrong_manifest_is_refused_by_line(lines: list[str], message: str) -> None:
    head = [] if lines[0].startswith("utterance") else [manifest_text([]).strip()]
    with pytest.raises(InputError, match=message):
        parse_manifest("".join(f"{line}\n" for line in [*head, *lines]), "m")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "format 1"),
        ({"public": "yes"}, "public must be bool, got 'yes'"),
        ({"utterances": None}, "utterances must be int"),
        ({"more": 1}, "unknown more"),
    ],
)
def test_a_wrong_summary_is_refused(change: dict, message: str) -> None:
    content = json.loads(face_text(summary("x", [], public=True, storage="files", dvc_md5="")))
    with pytest.raises(InputError, match=message):
        parse_face(json.dumps({**content, **change}), "f")


def test_an_id_that_a_table_cannot_hold_is_refused() -> None:
    with pytest.raises(InputError, match="tab or line break"):
        manifest_text([Row("a\tb", "s", "F", "", 1, "a" * 64)])
