"""Damaged splits were read or unpacked as if whole, or ended in a traceback that named nothing."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from voxveil.audio.files import encode_flac
from voxveil.audio.frames import frame_count
from voxveil.cli.main import main
from voxveil.corpus.split import Split, SplitWriter, Utterance, _read_ctm
from voxveil.runtime.errors import IncompleteInputError
from voxveil.runtime.shards import array_bytes

SAMPLES = 4000
FRAMES = frame_count(SAMPLES)


def flac(seed: int, samples: int = SAMPLES) -> bytes:
    return encode_flac(np.random.default_rng(seed).normal(0, 0.1, samples), "u")[0]


@pytest.fixture
def split(tmp_path: Path) -> Path:
    folder = tmp_path / "split"
    f0 = np.full(FRAMES, 120, dtype=np.float32)
    with SplitWriter(folder) as writer:
        for number in range(3):
            # U+2028 ends a line for str.splitlines, not in JSON.
            utterance = Utterance(f"7-1-{number}", "7", "F", SAMPLES, "SOME\u2028WORDS")
            writer.add(utterance, flac(number), f0=f0)
    return folder


def replace_member(shard: Path, name: str, data: bytes) -> None:
    with tarfile.open(shard) as tar:
        members = [(m.name, tar.extractfile(m).read()) for m in tar]  # type: ignore[union-attr]
    with tarfile.open(shard, "w") as tar:
        for member, content in members:
            info = tarfile.TarInfo(member)
            content = data if member == name else content
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def test_a_whole_split_unpacks(split: Path, tmp_path: Path) -> None:
    assert main(["corpus", "unpack", str(split), str(tmp_path / "out")]) == 0
    assert np.all(Split(split).f0("7-1-2") == 120)
    assert Split(split)["7-1-0"].text == "SOME\u2028WORDS"


def edit_row(split: Path, **values: object) -> None:
    lines = (split / "manifest.jsonl").read_text().split("\n")
    lines[1] = json.dumps({**json.loads(lines[1]), **values})
    (split / "manifest.jsonl").write_text("\n".join(lines))


def edit_table(name: str, old: str, new: str) -> Callable[[Path], None]:
    def edit(split: Path) -> None:
        text = (split / name).read_text()
        assert old in text
        (split / name).write_text(text.replace(old, new))

    return edit


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda s: replace_member(s / "audio-000.tar", "7-1-1.flac", flac(9)),
            "utterance 7-1-1: its audio has",
        ),
        (lambda s: edit_row(s, samples=3999), "utterance 7-1-1: 4000 samples, its manifest says 3999"),
        (edit_table("wav.scp", "7-1-1 ", "7-1-9 "), "wav.scp:2: utterance 7-1-9 is not in manifest.jsonl"),
        (edit_table("utt2spk", "7-1-1 7\n", ""), "utt2spk: utterance 7-1-1 is not there (1 missing)"),
        (edit_table("utt2spk", "7-1-1 7\n", "7-1-1 8\n"), "utt2spk:2: utterance 7-1-1 is of 8"),
        (edit_table("utt2dur", "7-1-1 ", "7-1-0 "), "utt2dur:2: utterance 7-1-0 is there twice"),
        (lambda s: (s / "utt2dur").unlink(), "utt2dur: no such file"),
        (lambda s: (s / "manifest.jsonl").write_text(""), "manifest.jsonl: lists no utterances"),
    ],
)
def test_unpack_refuses_what_contradicts_the_manifest(
    split: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], None],
    words: str,
) -> None:
    damage(split)
    assert main(["corpus", "unpack", str(split), str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert words in error and error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"samples": ' + "9" * 5001 + "}",
        '{"utterance": "a", "speaker": 5, "sex": "F", "text": "", "sha256": "", "samples": 1}',
        '{"utterance": "a", "speaker": "b", "sex": "F", "text": "", "sha256": "", "samples": true}',
        '{"utterance": "a/b", "speaker": "b", "sex": "F", "text": "", "sha256": "", "samples": 1}',
    ],
)
def test_a_broken_manifest_line_is_named(split: Path, line: str) -> None:
    lines = (split / "manifest.jsonl").read_text().split("\n")
    lines[1] = line
    (split / "manifest.jsonl").write_text("\n".join(lines))
    with pytest.raises(IncompleteInputError, match=r"manifest\.jsonl:2: ") as caught:
        Split(split)
    assert len(str(caught.value)) < 400


def test_an_utterance_twice_in_the_manifest_is_named(split: Path) -> None:
    text = (split / "manifest.jsonl").read_text()
    (split / "manifest.jsonl").write_text(text + text.split("\n")[0] + "\n")
    with pytest.raises(IncompleteInputError, match=r"manifest\.jsonl:4: utterance 7-1-0 is there twice"):
        Split(split)


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([{}] * FRAMES, dtype=object), allow_pickle=True)
    return buffer.getvalue()


def values(changed: float, dtype: str = "float32") -> bytes:
    f0 = np.full(FRAMES, 120, dtype=dtype)
    f0[3] = changed
    return array_bytes(f0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is not a readable array"),
        (b"garbage", "is not a readable array"),
        (b"PK\x03\x04 garbage", "is not a readable array"),
        (values(120)[:-4], "is not a readable array"),
        (values(120).replace(b"{'descr'", b"(((((((("), "is not a readable array"),
        (pickled(), "holds pickled objects"),
        (array_bytes(np.zeros(FRAMES, dtype=complex)), "must be a 1-D array of floats"),
        (array_bytes(np.zeros((FRAMES, 1))), "must be a 1-D array of floats"),
        (values(np.nan), "of frame 3 is nan"),
        (values(np.inf), "of frame 3 is inf"),
        (values(1e300, "float64"), "of frame 3 is inf"),
        (values(-1.0), "of frame 3 is -1.0"),
    ],
)
def test_a_damaged_f0_names_its_utterance(split: Path, data: bytes, words: str) -> None:
    replace_member(split / "f0-000.tar", "7-1-1.npy", data)
    whole = Split(split)
    whole.f0("7-1-0")
    with pytest.raises(IncompleteInputError, match="utterance 7-1-1: F0 ") as caught:
        whole.f0("7-1-1")
    assert words in str(caught.value) and "allow_pickle" not in str(caught.value)


def endless() -> bytes:
    """A FLAC whose header announces 2^36 - 1 samples."""
    data = bytearray(flac(1))
    data[21] |= 0x0F
    data[22:26] = b"\xff\xff\xff\xff"
    return bytes(data)


@pytest.mark.parametrize("data", [b"", b"garbage" * 100, flac(1)[:60], flac(1)[:-500], endless()])
def test_damaged_audio_names_its_utterance(split: Path, data: bytes) -> None:
    replace_member(split / "audio-000.tar", "7-1-1.flac", data)
    with pytest.raises(IncompleteInputError, match="utterance 7-1-1: "):
        Split(split).audio("7-1-1")


@pytest.mark.parametrize("line", ["a 1 0.0 x SIL", "a 1 0.0 0.1", "a 1 0.0 0.1 SIL more"])
def test_a_broken_phone_line_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "phones.ctm").write_text(f"a 1 0.0 0.1 SIL\n{line}\n")
    with pytest.raises(IncompleteInputError, match=r"phones\.ctm:2: must be"):
        _read_ctm(tmp_path / "phones.ctm")
