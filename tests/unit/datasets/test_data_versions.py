"""Versions of a dataset in a project with a local remote: add, list, diff, get."""

from __future__ import annotations

import hashlib
import json
import shutil
import tarfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from made_datasets import (
    commit,
    data_error,
    digests,
    run_data,
    shell,
    speech,
    write_libri,
)
from voxveil.cli.main import main
from voxveil.corpus.opening import open_folder


def table(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_two_versions_are_listed_compared_and_fetched(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M"})
    status, out, _ = run_data(capsys, "add", "clinic", str(corpus), "--private")
    assert status == 0
    assert "2 speakers (1 F, 1 M), 4 utterances" in out and "private" in out
    assert "git add data/clinic.dvc data/clinic.manifest.tsv data/clinic.json data/.gitignore" in out
    assert digests(project / "data/clinic") == digests(corpus)
    assert "clinic: the version in the work tree is not committed" in run_data(capsys, "list")[1]
    first_face = (project / "data/clinic.manifest.tsv").read_bytes()
    one = commit(project, "one")
    shell(project, "dvc", "push")
    # The same corpus again changes no byte that Git sees.
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    assert shell(project, "git", "status", "--porcelain") == ""
    # A speaker more, one utterance less, one of other audio.
    write_libri(corpus, {"20": "F", "21": "M", "22": "F"})
    (corpus / "part/20/7/20-7-0001.flac").unlink()
    (corpus / "part/20/7/20-7.trans.txt").write_text("20-7-0000 SOME WORDS\n")
    speech(corpus / "part/21/7/21-7-0000.flac", 999)
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    assert json.loads((project / "data/clinic.json").read_text())["public"] is False
    two = commit(project, "two")
    shell(project, "dvc", "push")

    status, out, _ = run_data(capsys, "list")
    rows = table(out)
    assert status == 0 and [row[1] for row in rows[1:]] == [two[:12], one[:12]]
    assert rows[1][3:7] == ["3", "(2", "F,", "1"] and rows[1][-1] == "private"
    assert len(table(run_data(capsys, "list", "--rev", one)[1])) == 2
    assert "dataset ghost: has no version in the Git history" in data_error(capsys, "list", "ghost")

    status, out, _ = run_data(capsys, "diff", "clinic", one, "HEAD", "--json")
    changes = json.loads(out)
    assert changes["speakers"] == {"added": ["22"], "removed": [], "changed": ["20", "21"]}
    assert changes["utterances"] == {
        "added": ["22-7-0000", "22-7-0001"],
        "removed": ["20-7-0001"],
        "changed": ["21-7-0000"],
    }
    assert changes["hours"] == {"added": 0.000056, "removed": 0.000028, "changed": 0.000028}
    assert "speakers added: 22" in run_data(capsys, "diff", "clinic", one, "HEAD")[1]
    assert "no difference" in run_data(capsys, "diff", "clinic", one, one)[1]
    assert "holds no dataset 'ghost'; it has: clinic" in data_error(capsys, "diff", "ghost", one, "HEAD")
    assert "no such git revision" in data_error(capsys, "diff", "clinic", "v9", "HEAD")

    # The older version, by its path, with nothing but the remote.
    shutil.rmtree(project / ".dvc/cache")
    shutil.rmtree(project / "data/clinic")
    out_folder = tmp_path / "got"
    status, out, err = run_data(capsys, "get", "clinic", "--rev", one, "--out", str(out_folder))
    assert status == 0 and "4 utterances" in out, err
    assert digests(out_folder)["part/21/7/21-7-0000.flac"] in first_face.decode()
    assert "20-7-0001" in {clip.id for clip in open_folder(out_folder).clips}
    assert "exists and is not an empty folder" in data_error(
        capsys, "get", "clinic", "--rev", one, "--out", str(out_folder)
    )


def test_a_missing_object_is_named_and_nothing_is_written(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M"})
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "one")
    shell(project, "dvc", "push")
    shutil.rmtree(project / ".dvc/cache")
    lost = "part/21/7/21-7-0001.flac"
    stored = {path.read_bytes(): path for path in (tmp_path / "store").rglob("*") if path.is_file()}
    stored[(corpus / lost).read_bytes()].unlink()
    object_id = (lambda path: path.parent.name + path.name)(stored[(corpus / lost).read_bytes()])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    line = data_error(capsys, "get", "clinic", "--rev", "main", "--out", "got/it", "--repo", str(project))
    assert f"data/clinic/{lost}" in line and object_id in line
    assert not (elsewhere / "got/it").exists()
    assert [path for path in elsewhere.rglob("*") if path.is_file()] == []
    # The list of files itself.
    next((tmp_path / "store").rglob("*.dir")).unlink()
    # A path DVC has not seen: it remembers the list of files of a commit.
    other = tmp_path / "other"
    shutil.copytree(project, other)
    line = data_error(capsys, "get", "clinic", "--rev", "main", "--out", "got", "--repo", str(other))
    assert "lacks data/clinic: " in line and ".dir" in line
    assert "no dataset 'ghost'" in data_error(
        capsys, "get", "ghost", "--rev", "main", "--out", "got", "--repo", str(project)
    )
    assert "v9" in data_error(capsys, "get", "clinic", "--rev", "v9", "--out", "got", "--repo", str(project))
    assert "nowhere" in data_error(
        capsys, "get", "clinic", "--rev", "v9", "--out", "got", "--repo", "nowhere"
    )
    assert not [path for path in elsewhere.rglob("*") if path.is_file()]


def test_a_folder_of_another_version_does_not_pass_for_this_one(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_libri(tmp_path / "in", {"20": "F", "21": "M"})
    assert run_data(capsys, "add", "clinic", str(corpus))[0] == 0
    commit(project, "one")
    # Somebody gives DVC other data by hand and forgets the manifest.
    shutil.rmtree(project / "data/clinic/part/21")
    shell(project, "dvc", "add", "data/clinic")
    commit(project, "by hand")
    status, out, _ = run_data(capsys, "list")
    assert status == 1 and "clinic.dvc are of different versions" in out.splitlines()[1]
    assert "do not match its manifest" in data_error(capsys, "get", "clinic", "--rev", "main", "--out", "got")
    assert not (project / "got").exists()


@pytest.mark.parametrize("name", ["../x", "a/b", ".hidden", "x.dvc", "", "a b", "-x"])
def test_a_name_that_is_no_file_name_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert "dataset name" in data_error(capsys, "add", "--", name, "nowhere")


def test_a_subset_by_its_address_is_checked(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = write_libri(tmp_path / "LibriSpeech", {"20": "F", "21": "M"})
    served = tmp_path / "served"
    served.mkdir()
    with tarfile.open(served / "part.tar.gz", "w:gz") as tar:
        tar.add(corpus, "LibriSpeech")
    md5 = hashlib.md5((served / "part.tar.gz").read_bytes(), usedforsecurity=False).hexdigest()

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/part.tar.gz"
    try:
        line = data_error(capsys, "add", "part", "--url", url, "--md5", "0" * 32)
        assert f"MD5 is {md5}" in line
        gone = url.replace("part", "gone")
        line = data_error(capsys, "add", "part", "--url", gone, "--md5", md5)
        assert f"{gone}: cannot be fetched" in line and "does not exist" in line
        assert [path.name for path in (project / "data").iterdir() if not path.name.startswith(".")] == []
        status, out, _ = run_data(capsys, "add", "part", "--url", url, "--md5", md5.upper())
    finally:
        server.shutdown()
    assert status == 0 and "data/part.tar.gz.dvc" in out
    assert digests(project / "data/part") == digests(corpus)
    pointer = (project / "data/part.tar.gz.dvc").read_text()
    assert url in pointer and md5 in pointer and "push: false" in pointer
    commit(project, "part")
    shell(project, "dvc", "push")
    # The remote takes the recordings, and not the archive, which has an address of its own.
    pushed = {path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()}
    recordings = {path.read_bytes() for path in corpus.rglob("*.flac")}
    assert recordings and recordings <= pushed
    assert (served / "part.tar.gz").read_bytes() not in pushed


def test_help_shows_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("init", "add", "list", "diff", "get", "forget"):
        with pytest.raises(SystemExit):
            main(["data", action, "--help"])
        assert "examples:\n  " in capsys.readouterr().out
