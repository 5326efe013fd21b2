"""Consent withdrawn: everything that holds a speaker is found, their speech goes, the others' stays."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from made_datasets import (
    commit,
    digests,
    make_speaker_outputs,
    shell,
    speech,
    write_kaldi,
    write_libri,
)
from voxveil.cli.main import main
from voxveil.corpus.opening import open_folder
from voxveil.datasets import forgetting
from voxveil.privacy import Entry, LaplaceCube
from voxveil.privacy.ledger import Ledger


def data(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(["data", *arguments])
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return status, out, err


def add(capsys: pytest.CaptureFixture[str], name: str, folder: Path, *more: str) -> None:
    assert data(capsys, "add", name, str(folder), *more)[0] == 0


def stored(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_everything_that_holds_a_speaker_is_listed(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(capsys, "clinic", write_libri(tmp_path / "one", {"20": "F", "21": "M"}), "--private")
    one = commit(project, "one")
    shell(project, "git", "switch", "-qc", "side")
    add(capsys, "clinic", write_libri(tmp_path / "two", {"20": "F", "21": "M", "22": "F"}))
    two = commit(project, "two")
    shell(project, "git", "switch", "-q", "main")
    shell(project, "dvc", "checkout", "--force")
    add(capsys, "clinic", write_libri(tmp_path / "three", {"21": "M"}))
    three = commit(project, "three")
    make_speaker_outputs(project)
    (project / "dvc.yaml").write_text("stages: {}\n")
    loss = LaplaceCube(3.0).loss_for((16, 10))
    for speaker, item in (("20", "x"), (None, "20-7-0001"), ("21", "y")):
        entries = [Entry(item, "a" * 64, 10, {"pitch": loss}, speaker)]
        Ledger.open(purpose="release", system="anon").announce(entries)
    before = digests(project)
    status, out, err = data(capsys, "forget", "20")
    assert status == 0, err
    assert one[:12] in out and two[:12] in out and three[:12] not in out
    assert "now in: no dataset" in out
    assert "outputs: 2" in out
    assert "outputs/prepare/public (prepare): pool/" in out and "extractor" not in out
    assert "outputs/score/anon/ecapa (score): rank.npz" in out and "original" not in out
    assert "releases in the register: 2" in out
    assert "no MLflow store here" in out
    assert "dvc gc --workspace --all-branches --all-tags --cloud --force" in out
    assert "what stays:" in out
    assert digests(project) == before
    # Asked to delete, it refuses while a branch holds them.
    status, out, err = data(capsys, "forget", "20", "--gc")
    assert status == 2 and "branch side holds the speaker" in out + err
    assert "held" not in err and digests(project) == before
    status, out, _ = data(capsys, "forget", "99")
    assert status == 0 and "dataset versions: none" in out and "what stays" not in out
    assert "nothing was changed" in data(capsys, "forget", "99", "--yes")[2]


def test_a_speaker_leaves_and_their_audio_is_deleted(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_libri(tmp_path / "one", {"20": "F", "21": "M", "200": "F"})
    (corpus / "notes.txt").write_text("20-7-0001 coughs\n21-7-0000 is fine\n")
    add(capsys, "clinic", corpus, "--private")
    commit(project, "one")
    shell(project, "git", "tag", "v1")
    shell(project, "dvc", "push")
    theirs = {path.read_bytes() for path in (corpus / "part/20").rglob("*.flac")}
    others = {path.read_bytes() for path in (corpus / "part/200").rglob("*.flac")}
    status, out, err = data(capsys, "forget", "20", "--yes")
    assert status == 0, err
    assert "2 speakers (1 F, 1 M), 4 utterances" in out and "private" in out
    folder = project / "data/clinic"
    assert {clip.speaker for clip in open_folder(folder).clips} == {"21", "200"}
    assert "20 |" not in (folder / "SPEAKERS.TXT").read_text().splitlines()[1]
    assert (folder / "SPEAKERS.TXT").read_text().startswith("; comment\n")
    # A chapter is no reader: 200 is the chapter that 20 read, and also somebody's id.
    assert (folder / "CHAPTERS.TXT").read_text() == "210 | 21 | 1 | part\n2000 | 200 | 1 | part\n"
    assert (folder / "notes.txt").read_text() == "21-7-0000 is fine\n"
    assert not theirs & stored(folder) and others <= stored(folder)
    assert "\t20\t" not in (project / "data/clinic.manifest.tsv").read_text()
    commit(project, "without 20")
    shell(project, "dvc", "push")
    assert theirs <= stored(tmp_path / "store")
    status, out, err = data(capsys, "forget", "20", "--gc")
    assert status == 2 and "tag v1 holds the speaker: git tag -d v1" in err
    assert theirs <= stored(tmp_path / "store")
    shell(project, "git", "tag", "-d", "v1")
    status, out, err = data(capsys, "forget", "20", "--gc")
    assert status == 0, err
    assert "Git: 1 revisions name them" in out
    for place in (tmp_path / "store", project / ".dvc/cache", folder):
        assert not theirs & stored(place)
        assert others <= stored(place)
    # The others' version is whole: a clone gets it.
    shutil.rmtree(project / ".dvc/cache")
    assert data(capsys, "get", "clinic", "--rev", "main", "--out", str(tmp_path / "got"))[0] == 0


@pytest.mark.parametrize("shards", [(), ("--shards",)])
def test_a_kaldi_corpus_forgets(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], shards: tuple[str, ...]
) -> None:
    corpus = write_kaldi(tmp_path / "in", {"a-1": "anna", "b-1": "bea", "b-2": "bea"})
    (corpus / "spk2utt").write_text("anna a-1\nbea b-1 b-2\n")
    add(capsys, "clinic", corpus, *shards)
    commit(project, "one")
    theirs = {(corpus / f"audio/{name}.wav").read_bytes() for name in ("b-1", "b-2")}
    assert data(capsys, "forget", "bea", "--yes")[0] == 0
    folder = project / "data/clinic"
    assert [clip.id for clip in open_folder(folder).clips] == ["a-1"]
    assert not any(audio[44:] in content for audio in theirs for content in stored(folder))
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"wav.scp", "utt2spk"} <= {path.name for path in files}
    for path in files:
        assert "b-1" not in path.name and b"b-1" not in path.read_bytes()
    assert json.loads((project / "data/clinic.json").read_text())["storage"] == (
        "shards" if shards else "files"
    )
    # Nobody is left after the last.
    commit(project, "two")
    before = digests(project / "data")
    status, _, err = data(capsys, "forget", "anna", "--yes")
    assert status == 2 and "its only speaker" in err
    assert digests(project / "data") == before


def test_a_number_is_a_speaker_only_where_speakers_stand(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # LibriTTS; 20 is a speaker, a chapter of 21, and how a transcript of 21 begins.
    corpus = tmp_path / "in"
    for speaker in ("20", "21"):
        place = corpus / "part" / speaker / "20"
        name = f"{speaker}_20_000001_000000"
        speech(place / f"{name}.wav", int(speaker))
        (place / f"{name}.normalized.txt").write_text("20 years ago\n")
    (corpus / "SPEAKERS.txt").write_text("20 | F | part | 1 | A\n21 | M | part | 1 | B\n")
    (corpus / "speakers.tsv").write_text("READER\tGENDER\n20\tF\n21\tM\n")
    (corpus / "BOOKS.txt").write_text("20 | A book\n")
    add(capsys, "clinic", corpus)
    commit(project, "one")
    status, _, err = data(capsys, "forget", "20", "--yes")
    assert status == 0, err
    left = {
        name: (project / "data/clinic" / name).read_text()
        for name in digests(project / "data/clinic")
        if not name.endswith("wav")
    }
    assert left == {
        "part/21/20/21_20_000001_000000.normalized.txt": "20 years ago\n",
        "SPEAKERS.txt": "21 | M | part | 1 | B\n",
        "speakers.tsv": "READER\tGENDER\n21\tM\n",
        "BOOKS.txt": "20 | A book\n",
    }


def test_a_trace_that_stays_stops_everything(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(capsys, "clinic", write_libri(tmp_path / "in", {"20": "F", "21": "M"}))
    add(capsys, "other", write_libri(tmp_path / "again", {"20": "F", "21": "M"}, salt=1))
    commit(project, "one")
    before = digests(project)
    monkeypatch.setattr(forgetting, "_about", lambda *_: False)
    monkeypatch.setattr(forgetting, "names_speaker", lambda *_: True)
    status, _, err = data(capsys, "forget", "20", "--yes")
    assert status == 2 and "would still name them" in err and "nothing was changed" in err
    monkeypatch.undo()
    monkeypatch.chdir(project)
    unlocked = {name: digest for name, digest in digests(project).items() if "/tmp/" not in name}
    assert unlocked == {name: digest for name, digest in before.items() if "/tmp/" not in name}
    # An id may be another person's elsewhere.
    assert data(capsys, "forget", "20", "--yes", "--dataset", "other")[0] == 0
    assert (project / "data/clinic/part/20").exists() and not (project / "data/other/part/20").exists()


def test_data_that_is_not_here_is_asked_for(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(capsys, "clinic", write_libri(tmp_path / "in", {"20": "F", "21": "M"}))
    commit(project, "one")
    shutil.rmtree(project / "data/clinic")
    status, _, err = data(capsys, "forget", "20", "--yes")
    assert status == 2 and "dvc pull data/clinic.dvc" in err


def test_data_only_a_remote_branch_has_is_not_deleted(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    add(capsys, "clinic", write_libri(tmp_path / "in", {"20": "F", "21": "M"}))
    commit(project, "one")
    add(capsys, "clinic", write_libri(tmp_path / "b", {"21": "M"}))
    commit(project, "two")
    shell(project, "git", "branch", "colleague")
    clone = tmp_path / "clone"
    shell(tmp_path, "git", "clone", "-q", str(project), str(clone))
    monkeypatch.chdir(clone)
    shell(project, "git", "switch", "-q", "colleague")
    (project / "note").write_text("x")
    commit(project, "three")
    shell(clone, "git", "fetch", "-q")
    status, _, err = data(capsys, "forget", "20", "--gc")
    assert status == 2 and "git branch colleague origin/colleague" in err
