"""Recordings that were passed over, and places that failed too late, without a word: each is one test."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import soundfile

from made_speech import made_bundles, speak
from voxveil.cli.main import main


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bundles")
    return made_bundles(folder) / "original"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    (tmp_path / "in").mkdir()
    soundfile.write(tmp_path / "in/a.wav", speak(120.0, 4_000)[0], 16_000)
    return tmp_path


def run(model: Path, *words: str) -> int:
    return main(["anonymize", *words, "--model", str(model), "--threads", "1"])


def require_nothing_charged(work: Path) -> None:
    assert not (work / "ledger").exists()
    assert not (work / "out").exists()


def dangling(folder: Path) -> str:
    (folder / "gone.wav").symlink_to(folder / "absent.wav")
    return "in/gone.wav: refused, a link to a file that is not there"


def fifo(folder: Path) -> str:
    os.mkfifo(folder / "pipe.flac")
    return "in/pipe.flac: refused, not a regular file"


def linked_folder(folder: Path) -> str:
    other = folder.parent / "elsewhere"
    other.mkdir()
    (other / "b.wav").write_bytes((folder / "a.wav").read_bytes())
    (folder / "more").symlink_to(other)
    return "in/more: refused, a link to a folder"


def unread_format(folder: Path) -> str:
    (folder / "talk.M4A").write_bytes(b"\0\0\0\x18ftypM4A ")
    return "in/talk.M4A: refused, .m4a is not read; convert it"


def latin_1_file(folder: Path) -> str:
    (Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff.wav"))).write_bytes((folder / "a.wav").read_bytes())
    return r"in/bad\xff.wav: refused, its path is not UTF-8"


def latin_1_folder(folder: Path) -> str:
    below = Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9"))
    below.mkdir()
    (below / "b.wav").write_bytes((folder / "a.wav").read_bytes())
    return r"in/caf\xe9/b.wav: refused, its path is not UTF-8"


@pytest.mark.parametrize("hide", [dangling, fifo, linked_folder, unread_format, latin_1_file, latin_1_folder])
def test_what_cannot_be_used_is_named_and_counted(work: Path, model: Path, capsys, hide) -> None:  # type: ignore[no-untyped-def]
    """They were left out with exit status 0, or ended in a traceback."""
    reason = hide(work / "in")
    assert run(model, "in", "out") == 2
    said = capsys.readouterr().err
    assert reason in said
    assert "1 of 2 recordings cannot be used; nothing was released" in said
    require_nothing_charged(work)
    assert run(model, "in", "out", "--on-bad-audio", "skip") == 0
    said = capsys.readouterr()
    assert reason in said.err
    assert "1 skipped" in said.out
    assert [path.name for path in (work / "out").rglob("*.flac")] == ["a.flac"]


def test_other_files_are_counted_in_one_line(work: Path, model: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    for name in ("notes.txt", "facts.json"):
        (work / "in" / name).write_text("{}")
    assert run(model, "in", "out") == 0
    assert "2 other files are left alone" in capsys.readouterr().err


def test_an_output_folder_inside_the_input_is_no_input(work: Path, model: Path) -> None:
    assert run(model, "in", "in/out") == 0
    assert run(model, "in", "in/out") == 0
    assert [path.name for path in (work / "in/out").rglob("*.flac")] == ["a.flac"]


def test_all_refused_is_an_error_that_says_so(work: Path, model: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    (work / "in/a.wav").write_bytes(b"")
    assert run(model, "in", "out", "--on-bad-audio", "skip") == 2
    assert "error: all 1 recordings were refused; nothing was released" in capsys.readouterr().err
    require_nothing_charged(work)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
@pytest.mark.parametrize("utf8", ["0", "1"])
def test_names_in_any_locale(work: Path, model: Path, root: Path, locale: str, utf8: str) -> None:
    """A name outside the terminal's encoding was a UnicodeEncodeError."""
    latin_1_file(work / "in")
    name = os.fsencode(work / "in") + "/hé.wav".encode()
    (Path(os.fsdecode(name))).write_bytes((work / "in/a.wav").read_bytes())
    environment = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": utf8, "VOXVEIL_TRACKING": "off"}
    # In a C locale Python itself does not start where a .pth file names a path outside ASCII, as that of an
    # editable installation in such a path does; -S reads no .pth file.
    # Python 3.12 loads no compiled module from a path outside ASCII there, so links lead to it.
    for link, target in (("source", root / "src"), ("packages", sysconfig.get_path("purelib"))):
        (work / link).symlink_to(target)
    environment["PYTHONPATH"] = os.pathsep.join([str(work / "source"), str(work / "packages")])
    command = [sys.executable, "-S", "-m", "voxveil.cli.main"]
    options = ["in", "out", "--model", str(model), "--threads", "1", "--on-bad-audio", "skip"]
    done = subprocess.run(
        [*command, "anonymize", *options], cwd=work, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert rb"in/bad\xff.wav: refused" in done.stderr
    assert sorted(os.listdir(os.fsencode(work / "out"))) == [
        b"a.flac",
        "hé.flac".encode(),
        b"ledger.json",
    ]
    assert '"hé.wav"' in (work / "out/ledger.json").read_text(encoding="utf-8")
    done = subprocess.run(
        [*command, "corpus", "check", "in"], cwd=work, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert rb"in/bad\xff.wav: refused, its path is not UTF-8" in done.stdout
    assert b"3 files: 2 usable" in done.stdout
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("place", ["file/out", "in/a.wav/out/deep"])
def test_an_output_folder_that_cannot_be_made_costs_nothing(
    work: Path,
    model: Path,
    capsys,  # type: ignore[no-untyped-def]
    place: str,
) -> None:
    """It was found after the loss was charged."""
    (work / "file").write_text("in the way")
    assert run(model, "in", place) == 2
    assert f"{place}: ledger.json cannot be written there (Not a directory)" in capsys.readouterr().err
    require_nothing_charged(work)


def test_an_output_folder_that_is_read_only_costs_nothing(
    work: Path,
    model: Path,
    capsys,  # type: ignore[no-untyped-def]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = Path.write_bytes

    def refuses(path: Path, data: bytes) -> int:
        if path.parent.name == "out":  # permissions do not stop the superuser, whom tests may run as
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", refuses)
    assert run(model, "in", "out") == 2
    assert "out: ledger.json cannot be written there (Permission denied)" in capsys.readouterr().err
    require_nothing_charged(work)


def test_an_output_whose_name_is_too_long_costs_nothing(work: Path, model: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    name = "n" * 250
    (work / "in/a.wav").rename(work / "in" / f"{name}.wav")
    assert run(model, "in", "out") == 2
    assert f"out: {name}.flac cannot be written there (File name too long)" in capsys.readouterr().err
    require_nothing_charged(work)


def test_a_full_disk_names_the_file(
    work: Path,
    model: Path,
    capsys,  # type: ignore[no-untyped-def]
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sync = os.fsync

    def full(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith(".partial") and (work / "out").exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    assert run(model, "in", "out") == 1
    assert "error: out/ledger.json: No space left on device" in capsys.readouterr().err
    assert list((work / "out").iterdir()) == []


def test_a_register_without_a_name_is_refused(work: Path, model: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    """It was the current folder."""
    assert run(model, "in", "out", "--register", "") == 3
    assert "the register's location is empty" in capsys.readouterr().err
    require_nothing_charged(work)
    assert sorted(path.name for path in work.iterdir()) == ["in"]


def test_an_output_folder_around_the_input_is_refused(work: Path, model: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    """It said that there were no recordings."""
    assert run(model, "in", ".") == 2
    assert "the output folder holds the input folder in" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["out.wav", "out.MP3", "out.m4a"])
def test_an_output_named_as_another_format_is_refused(work: Path, model: Path, capsys, name: str) -> None:  # type: ignore[no-untyped-def]
    """A folder of that name was made."""
    assert run(model, "in/a.wav", name) == 2
    assert f"{name}: outputs are FLAC" in capsys.readouterr().err
    assert not (work / name).exists()
