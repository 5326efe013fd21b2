"""What has gone wrong elsewhere: many files, merges, kills, locks, trees of other users."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from made_datasets import (
    commit,
    data_error,
    digests,
    run_data,
    shell,
    write_kaldi,
    write_libri,
)
from voxveil.corpus.opening import open_folder
from voxveil.datasets import adding, packing
from voxveil.runtime import shards


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_what_is_in_no_version_is_not_overwritten(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_kaldi(tmp_path / "in", {"u1": "anna", "u2": "bea"}, absolute=True)
    (project / "data/clinic").mkdir(parents=True)
    assert "in no version" in data_error(capsys, "add", "clinic", str(corpus))
    (project / "data/clinic").rmdir()
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    # What was copied names its own files, not those it was copied from.
    shutil.rmtree(corpus)
    assert [clip.path.is_file() for clip in open_folder(project / "data/clinic").clips] == [True, True]
    notes = project / "data/clinic/text"
    content = notes.read_text()
    notes.unlink()
    notes.write_text(content.replace("u1 hello", "u1 corrected by hand"))
    other = write_kaldi(tmp_path / "other", {"u9": "zoe"})
    assert "was changed since it was added" in data_error(capsys, "add", "clinic", str(other))
    assert "corrected by hand" in notes.read_text()
    assert run_data(capsys, "add", "clinic", "data/clinic")[0] == 0
    assert "is private" not in data_error(capsys, "add", "clinic", str(tmp_path / "nowhere"))
    assert run_data(capsys, "add", "clinic", str(other), "--private")[0] == 0
    assert "is private; a public one needs another name" in data_error(
        capsys, "add", "clinic", str(other), "--public"
    )


def test_more_files_than_dvc_handles_well_become_shards(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adding, "MOST_FILES", 10)
    monkeypatch.setattr(shards, "MAX_ITEMS", 4)
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M", "22": "F"}, each=3)
    assert "shards" in run_data(capsys, "add", "clinic", str(corpus))[1]
    stored = sorted(path.name for path in (project / "data/clinic").iterdir())
    assert stored == [
        *(f"audio-00{n}.tar" for n in range(3)),
        "spk2gender",
        "text",
        "utt2spk",
        "utt2subset",
        "wav.scp",
    ]
    packed, plain = open_folder(project / "data/clinic"), open_folder(corpus)
    assert [(c.id, c.speaker, c.sex, c.text, c.subset) for c in packed.clips] == [
        (c.id, c.speaker, c.sex, c.text, c.subset) for c in plain.clips
    ]
    for clip, same in zip(packed.clips, plain.clips, strict=True):
        assert (packed.read(clip).audio == plain.read(same).audio).all()
    sharded = (project / "data/clinic.manifest.tsv").read_bytes()
    commit(project, "one")
    # Stored otherwise, the manifest is the same: bytes of the audio are kept.
    monkeypatch.setattr(adding, "MOST_FILES", packing.MOST_FILES)
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    assert (project / "data/clinic.manifest.tsv").read_bytes() == sharded
    # Given itself, a folder of shards stays what it was.
    shell(project, "git", "checkout", "-q", "--", ".")
    shell(project, "dvc", "checkout", "--force")
    before = digests(project / "data/clinic")
    assert run_data(capsys, "add", "clinic", "data/clinic")[0] == 0
    assert digests(project / "data/clinic") == before
    assert shell(project, "git", "status", "--porcelain") == ""


def test_audio_that_lies_elsewhere_needs_shards(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_kaldi(tmp_path / "in", {"u1": "anna"}, absolute=True)
    tables = tmp_path / "tables"
    tables.mkdir()
    for path in corpus.iterdir():
        if path.is_file():
            shutil.copy(path, tables)
    assert "utterance u1 lies outside" in data_error(capsys, "add", "clinic", str(tables))
    assert not (project / "data/clinic").exists()
    assert run_data(capsys, "add", "clinic", str(tables), "--shards")[0] == 0
    clip = open_folder(project / "data/clinic").clips[0]
    assert str(clip.path).endswith("audio-000.tar/u1.wav")


@pytest.mark.parametrize("spoil", ["broken", "absent", "empty"])
def test_bad_audio_is_named_and_nothing_registered(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil: str
) -> None:
    corpus = write_libri(tmp_path / "in", {"20": "F"})
    path = corpus / "part/20/7/20-7-0001.flac"
    if spoil == "absent":
        path.unlink()
    else:
        path.write_bytes(b"no audio" if spoil == "broken" else b"")
    for more in ([], ["--shards"]):
        assert str(path) in data_error(capsys, "add", "clinic", str(corpus), *more)
        assert not list((project / "data").glob("*"))


def test_marks_of_a_merge_stop_everything_that_writes(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M"})
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "one")
    shell(project, "git", "switch", "-qc", "other")
    write_libri(corpus, {"22": "F", "20": "F", "21": "M"})
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "two")
    shell(project, "git", "switch", "-q", "main")
    shell(project, "dvc", "checkout", "--force")
    corpus = write_libri(tmp_path / "theirs", {"23": "F", "20": "F", "21": "M"})
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "three")
    identity = ["-c", "user.name=tester", "-c", "user.email=tester@localhost"]
    command = ["git", *identity, "merge", "other"]
    merged = subprocess.run(command, cwd=project, capture_output=True, check=False)
    assert merged.returncode == 1
    before = digests(project / "data")
    assert "git checkout --ours" in data_error(capsys, "add", "clinic", str(corpus))
    assert "git checkout --ours" in data_error(capsys, "forget", "20", "--yes")
    assert digests(project / "data") == before
    # History reads on.
    assert [row[0] for row in table(run_data(capsys, "list")[1])] == [
        "dataset",
        "clinic",
        "clinic",
        "clinic:",
    ]
    names = ["data/clinic.dvc", "data/clinic.manifest.tsv", "data/clinic.json"]
    shell(project, "git", "checkout", "--ours", "--", *names)
    shell(project, "dvc", "checkout", "--force", "data/clinic.dvc")
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    (project / "dvc.lock").write_text("<<<<<<< HEAD\n=======\n>>>>>>> other\n")
    assert "dvc.lock: holds the marks" in data_error(capsys, "add", "clinic", str(corpus))


def test_a_killed_add_is_run_again(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M"})
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "one")
    write_libri(corpus, {"20": "F", "21": "M", "22": "F"})

    def killed(*_: object) -> str:
        raise KeyboardInterrupt

    real = adding.dvc
    monkeypatch.setattr(
        adding, "dvc", lambda root, *rest: killed() if rest[0] == "add" else real(root, *rest)
    )
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 130
    monkeypatch.setattr(adding, "dvc", real)
    assert shell(project, "git", "status", "--porcelain") == ""
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    assert json.loads((project / "data/clinic.json").read_text())["utterances"] == 6
    assert not list(project.rglob("*.partial"))
    # Killed while copying: the old version is untouched.
    commit(project, "two")
    before = digests(project / "data")
    monkeypatch.setattr(adding, "copy_corpus", killed)
    assert run_data(capsys, "add", "clinic", str(write_libri(tmp_path / "b", {"9": "F"})))[0] == 130
    assert digests(project / "data") == before


@pytest.mark.parametrize("namespace", [False, True], ids=["processes", "containers"])
def test_three_at_once_all_finish(project: Path, tmp_path: Path, namespace: bool) -> None:
    # In containers each is process 1 of its own: a lock that knows processes by number would fail.
    own = ["unshare", "--user", "--map-root-user", "--pid", "--fork"] if namespace else []
    if own and (not shutil.which("unshare") or subprocess.run([*own, "true"], check=False).returncode):
        pytest.skip("no process namespaces here")
    running = []
    for index in range(3):
        corpus = write_libri(tmp_path / f"in{index}", {f"3{index}": "F"})
        command = [*own, sys.executable, "-m", "voxveil.cli.main", "data", "add", f"set{index}", str(corpus)]
        running.append(subprocess.Popen(command, cwd=project, stderr=subprocess.PIPE, text=True))
    results = [(process.communicate()[1], process.returncode) for process in running]
    assert [status for _, status in results] == [0, 0, 0], results
    assert sorted(path.name for path in (project / "data").glob("*.dvc")) == [
        "set0.dvc",
        "set1.dvc",
        "set2.dvc",
    ]
    ignored = (project / "data/.gitignore").read_text().split()
    assert sorted(ignored) == ["/set0", "/set1", "/set2"]


def test_outside_of_git_or_dvc_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_libri(tmp_path / "in", {"20": "F"})
    monkeypatch.chdir(tmp_path)
    assert "git init && dvc init" in data_error(capsys, "add", "clinic", str(corpus))
    (tmp_path / ".dvc").mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert "not a git repository" in data_error(capsys, "add", "clinic", str(corpus))
    assert "--repo URL" in data_error(capsys, "list")


def test_twenty_thousand_utterances_are_fewer_than_a_hundred_files(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_kaldi(tmp_path / "in", {"seed": "anna"})
    audio = (corpus / "audio/seed.wav").read_bytes()[:1044]
    # A header that fits: 500 samples.
    audio = audio[:4] + (1036).to_bytes(4, "little") + audio[8:40] + (1000).to_bytes(4, "little") + audio[44:]
    (corpus / "audio/seed.wav").write_bytes(audio)
    names = [f"u{number:05d}" for number in range(20_000)]
    for name in names:
        (corpus / f"audio/{name}.wav").hardlink_to(corpus / "audio/seed.wav")
    (corpus / "wav.scp").write_text("".join(f"{name} audio/{name}.wav\n" for name in names))
    (corpus / "utt2spk").write_text("".join(f"{name} anna\n" for name in names))
    assert run_data(capsys, "add", "big", str(corpus))[0] == 0
    assert len(list((project / "data/big").iterdir())) < 100
    assert len(list((project / "data/big").glob("audio-*.tar"))) == 10
    assert len(open_folder(project / "data/big").clips) == 20_000


@pytest.mark.parametrize("action", [["list"], ["add", "clinic", "CORPUS"]])
def test_a_tree_of_another_user_is_told_how_to_trust_it(
    project: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    action: list[str],
) -> None:
    corpus = write_libri(tmp_path / "in", {"20": "F"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    line = data_error(capsys, *(word.replace("CORPUS", str(corpus)) for word in action))
    assert f"git config --global --add safe.directory {project}" in line
