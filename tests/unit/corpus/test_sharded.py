"""Audio in tar shards, as given, is read by the rules of plain files."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import soundfile

from made_corpora import write_corpus, write_params
from voxveil.corpus.opening import open_folder
from voxveil.datasets.packing import pack_corpus
from voxveil.runtime.errors import IncompleteInputError, InputError
from voxveil.stages.run import run_stage


def silent(_: int) -> None:
    """Report to nobody."""


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    folder = tmp_path / "plain"
    folder.mkdir()
    noise = np.random.default_rng(0).normal(0, 0.1, (4800, 2))
    soundfile.write(folder / "a.wav", noise, 48_000)
    soundfile.write(folder / "b.flac", noise[:1600, 0], 16_000)
    soundfile.write(folder / "c.wav", np.zeros(1600), 16_000)
    (folder / "wav.scp").write_text("u1 a.wav\nu2.x b.flac\nu3 c.wav\n")
    (folder / "utt2spk").write_text("u1 anna\nu2.x ben\nu3 anna\n")
    (folder / "spk2gender").write_text("anna f\nben m\n")
    (folder / "utt2subset").write_text("u1 train\nu3 test\n")
    return folder


def packed(plain: Path) -> Path:
    source, out = open_folder(plain), plain.parent / "packed"
    out.mkdir()
    pack_corpus(source, out, source.clips, silent)
    return out


def test_the_same_is_read(plain: Path) -> None:
    before, after = open_folder(plain), open_folder(packed(plain))
    assert [(c.id, c.speaker, c.sex, c.subset) for c in after.clips] == [
        ("u1", "anna", "F", "train"),
        ("u2.x", "ben", "M", ""),
        ("u3", "anna", "F", "test"),
    ]
    # Workers get the source by pickle.
    after = pickle.loads(pickle.dumps(after))  # noqa: S301
    for old, new in zip(before.clips[:2], after.clips[:2], strict=True):
        assert after.read(new).flags == before.read(old).flags
        assert (after.read(new).audio == before.read(old).audio).all()
    assert after.read(after.clips[0]).flags == ("downmixed", "resampled")
    with pytest.raises(InputError, match=r"packed/audio-000.tar/u3.wav: refused, .*silence"):
        after.read(after.clips[2])


def test_what_is_not_in_the_shards_is_named(plain: Path) -> None:
    folder = packed(plain)
    (folder / "wav.scp").write_text("u1 audio-000.tar/u1.wav\nu9 audio-000.tar/u9.wav\n")
    (folder / "utt2spk").write_text("u1 anna\nu9 ben\n")
    with pytest.raises(InputError, match="wav.scp:2: utterance u9 is not in the shards"):
        open_folder(folder)
    (folder / "audio-000.tar").write_bytes(b"no tar" * 200)
    with pytest.raises(IncompleteInputError, match="not a readable tar shard"):
        open_folder(folder)


def test_prepare_makes_the_same_of_both(tmp_path: Path) -> None:
    plain = write_corpus(tmp_path / "plain")
    made = {}
    for name, folder in (("plain", plain), ("packed", packed(plain))):
        params = write_params(tmp_path / "params.yaml", source=str(folder), workers=2)
        outputs = {side: tmp_path / "out" / name / side for side in ("public", "private")}
        run_stage("prepare", params, {}, outputs)
        made[name] = {
            path.relative_to(tmp_path / "out" / name).as_posix(): path.read_bytes()
            for path in (tmp_path / "out" / name).rglob("*")
            if path.is_file() and path.name not in ("_DONE.json", "corpus.json")
        }
    packed_files, plain_files = made["packed"], made["plain"]
    assert len(plain_files) > 20
    assert packed_files == plain_files
