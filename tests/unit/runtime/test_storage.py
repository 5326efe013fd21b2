"""Whole or nothing: atomic writes, finished outputs, shards."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voxveil.runtime.atomic import dump_json, read_json, whole_directory, write_text
from voxveil.runtime.done import DONE, finish, require_done
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.runtime.shards import MAX_ITEMS, ShardReader, ShardWriter, array_bytes, bytes_array


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_a_failed_block_leaves_the_old_output(tmp_path: Path) -> None:
    with whole_directory(tmp_path / "out") as folder:
        (folder / "a").write_text("old")
    with pytest.raises(ValueError, match="stop"), whole_directory(tmp_path / "out") as folder:
        (folder / "a").write_text("new")
        raise ValueError("stop")
    assert (tmp_path / "out/a").read_text() == "old"
    assert tree(tmp_path) == ["out", "out/a"]


def test_a_replaced_output_holds_nothing_of_the_old(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with whole_directory(tmp_path / "out") as folder:
            (folder / name).write_text(name)
    assert tree(tmp_path) == ["out", "out/b"]


def test_remains_of_a_killed_run_are_removed(tmp_path: Path) -> None:
    code = (
        "import os, signal\nfrom pathlib import Path\nfrom voxveil.runtime.atomic import whole_directory\n"
        f"with whole_directory(Path({str(tmp_path / 'out')!r})) as folder:\n"
        "    (folder / 'half').write_text('x'); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert not (tmp_path / "out").exists()
    with whole_directory(tmp_path / "out") as folder:
        (folder / "full").write_text("y")
    assert tree(tmp_path) == ["out", "out/full"]


def test_a_run_killed_between_the_two_renames_leaves_nothing_behind(tmp_path: Path) -> None:
    code = (
        "import os, signal\nfrom pathlib import Path\nfrom voxveil.runtime.atomic import whole_directory\n"
        f"out = Path({str(tmp_path / 'out')!r})\n"
        "for name in 'ab':\n"
        "    with whole_directory(out) as folder:\n"
        "        (folder / name).write_text(name)\n"
        "        if name == 'b':\n"
        "            replace = Path.replace\n"
        "            def once(self, target):\n"
        "                replace(self, target); os.kill(os.getpid(), signal.SIGKILL)\n"
        "            Path.replace = once\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert not (tmp_path / "out").exists()
    with whole_directory(tmp_path / "out") as folder:
        (folder / "c").write_text("c")
    assert tree(tmp_path) == ["out", "out/c"]


def test_two_writers_of_one_output_do_not_mix(tmp_path: Path) -> None:
    with (
        whole_directory(tmp_path / "out"),
        pytest.raises(InputError, match="another process"),
        whole_directory(tmp_path / "out"),
    ):
        pass


def test_json_is_valid_or_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_json({"a": float("nan")})
    write_text(tmp_path / "x.json", "{")
    with pytest.raises(InputError, match="x.json: not valid JSON"):
        read_json(tmp_path / "x.json")
    with pytest.raises(InputError, match="no such file"):
        read_json(tmp_path / "y.json")


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/a.txt").write_text("a")
    (folder / "b.txt").write_text("b")
    finish(folder, "prepare", None)
    return folder


def test_a_finished_output_is_accepted(finished: Path) -> None:
    done = require_done(finished, "public")
    assert set(done.files) == {"deep/a.txt", "b.txt"}
    assert require_done(finished, "public", digest=done.digest) == done


@pytest.mark.parametrize("fault", ["gone", "changed", "unfinished", "absent", "digest", "record", "edited"])
def test_anything_less_is_refused_by_name(finished: Path, fault: str) -> None:
    digest = None
    if fault == "gone":
        (finished / "b.txt").unlink()
    elif fault == "changed":
        (finished / "b.txt").write_text("c")
    elif fault == "unfinished":
        (finished / DONE).unlink()
    elif fault == "absent":
        finished = finished / "nowhere"
    elif fault == "digest":
        digest = "0" * 64
    elif fault == "record":
        (finished / DONE).write_text("{}")
    elif fault == "edited":
        record = json.loads((finished / DONE).read_text())
        del record["files"]["b.txt"]
        (finished / DONE).write_text(json.dumps(record))
    with pytest.raises(IncompleteInputError, match="input public") as error:
        require_done(finished, "public", digest=digest)
    assert "\n" not in str(error.value)


def test_digest_depends_on_content_only(finished: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / "deep").mkdir(parents=True)
    (other / "b.txt").write_text("b")
    (other / "deep/a.txt").write_text("a")
    assert finish(other, "anything", "x").digest == require_done(finished, "public").digest


@given(
    st.lists(st.text("abc.-_0", min_size=1, max_size=8), unique=True, max_size=8), st.binary(max_size=2000)
)
def test_shards_give_back_what_was_put_in(
    tmp_path_factory: pytest.TempPathFactory, items: list, data: bytes
) -> None:
    items = [item for item in items if item not in {".", ".."}]
    folder = tmp_path_factory.mktemp("shards")
    with ShardWriter(folder, "x", "bin") as writer:
        for index, item in enumerate(items):
            writer.add(item, data[index:])
    reader = ShardReader(folder, "x")
    assert list(reader.items()) == items
    assert [reader.read(item) for item in items] == [data[index:] for index in range(len(items))]


def test_shards_are_few_and_reproducible(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with ShardWriter(tmp_path / name, "f0", "npy") as writer:
            for index in range(MAX_ITEMS + 3):
                address = writer.add(f"u{index}", array_bytes(np.arange(3)))
        assert address == f"f0-001.tar/u{MAX_ITEMS + 2}.npy"
    assert tree(tmp_path / "a") == ["f0-000.tar", "f0-001.tar"]
    for name in tree(tmp_path / "a"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_twenty_thousand_features_are_few_files(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "f0", "npy") as writer:
        for index in range(20_000):
            writer.add(f"u{index}", b"x")
    assert len(tree(tmp_path)) == 10


def test_an_absent_item_is_named(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "f0", "npy") as writer:
        writer.add("here", b"x")
    reader = ShardReader(tmp_path, "f0")
    with pytest.raises(IncompleteInputError, match="utterance gone"):
        reader.require(["here", "gone"])
    with pytest.raises(IncompleteInputError, match="utterance gone"):
        reader.read("gone")


def test_item_names_cannot_leave_the_shard(tmp_path: Path) -> None:
    with ShardWriter(tmp_path, "x", "bin") as writer:
        for name in ("../up", "a/b", "", ".."):
            with pytest.raises(InputError, match="plain name"):
                writer.add(name, b"")


def test_object_arrays_are_refused() -> None:
    with pytest.raises(ValueError, match="allow_pickle"):
        array_bytes(np.array([object()]))
    with pytest.raises(ValueError, match="allow_pickle|magic"):
        bytes_array(b"not an array")
