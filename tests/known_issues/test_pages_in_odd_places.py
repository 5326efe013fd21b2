"""``reproduce`` replaced the folder its caller stood in, and took options in silence that it did not use.

A page written through a link took the link's place, and the next one was refused for what was left of it.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from voxveil.cli.main import main
from voxveil.runtime.atomic import whole_directory

pytest.importorskip("matplotlib", reason="needs the plots extra")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert main(["reproduce", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.mark.parametrize("out", ["", ".", "..", "../standing"])
def test_the_folder_one_is_in_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], out: str
) -> None:
    (tmp_path / "standing").mkdir()
    monkeypatch.chdir(tmp_path / "standing")
    assert "is the folder you are in, or above it" in refused(capsys, "wcd-table2", "--out", out)
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("there", [True, False])
def test_a_page_goes_to_where_a_link_points(tmp_path: Path, there: bool) -> None:
    target, link = tmp_path / "disk/page", tmp_path / "link"
    link.symlink_to(target)
    if there:
        target.mkdir(parents=True)
    for _ in range(2):
        assert main(["reproduce", "wcd-table2", "--out", str(link)]) == 0
    assert link.is_symlink() and (target / "index.html").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "link"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_replaced_by_a_whole_folder(tmp_path: Path, there: bool) -> None:
    """What it points to may be a cache: it stays as it is."""
    target, link = tmp_path / "cache", tmp_path / "out"
    if there:
        target.mkdir()
        (target / "old").touch()
    link.symlink_to(target)
    for name in ("first", "second"):
        with whole_directory(link) as folder:
            (folder / name).touch()
    assert not link.is_symlink() and [path.name for path in link.iterdir()] == ["second"]
    assert target.exists() == there and (not there or (target / "old").is_file())
    assert sorted(path.name for path in tmp_path.iterdir()) == (["cache", "out"] if there else ["out"])


@pytest.mark.parametrize(
    ("name", "option", "others"),
    [
        ("wcd-table2", "--scores", "wcd-table3, wcd-fig3, srd-fig4, srd-table"),
        ("dp-fig7", "--scores", "wcd-table3, wcd-fig3, srd-fig4, srd-table"),
        ("wcd-table3", "--system", "wcd-fig3"),
        ("wcd-table3", "--features", "dp-fig3, dp-fig5, dp-fig6"),
    ],
)
def test_an_option_that_is_not_used_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, option: str, others: str
) -> None:
    error = refused(capsys, name, "--out", str(tmp_path / "out"), option, "some")
    assert error == f"voxveil: error: reproduce {name}: takes no {option}; it is for {others}\n"


@pytest.mark.parametrize(
    "name", [b"$x^{2}$", rb"$\frac$", b"a\nb", b"\xff\xfe", "\u540d".encode(), b"<b>", b"two  spaces"]
)
def test_a_name_that_no_figure_can_show_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: bytes
) -> None:
    """Mathematics was set in the place of the name, or ended in a traceback."""
    given = tmp_path / "given"
    os.makedirs(os.fsencode(given) + b"/" + name)
    words = ["wcd-table3", "--project", str(tmp_path), "--out", str(tmp_path / "out"), "--scores", str(given)]
    assert f"folder {os.fsdecode(name)!r} is to name a system" in refused(capsys, *words)


def test_a_system_that_is_a_link_to_nothing_is_not_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "given/A").mkdir(parents=True)
    (tmp_path / "given/B").symlink_to("nowhere")
    words = ["--out", str(tmp_path / "out"), "--scores", str(tmp_path / "given")]
    assert "'B' is a link to nothing" in refused(capsys, "wcd-table3", "--project", str(tmp_path), *words)
