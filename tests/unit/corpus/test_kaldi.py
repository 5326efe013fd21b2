"""Kaldi-style folders; a command in wav.scp is refused and never run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxveil.corpus.kaldi import read_kaldi
from voxveil.corpus.opening import open_folder
from voxveil.runtime.errors import InputError


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for name in ("a", "b b"):
        soundfile.write(tmp_path / f"{name}.wav", np.random.default_rng(0).normal(0, 0.1, 3200), 16_000)
    (tmp_path / "wav.scp").write_text(f"u1 a.wav\nu2 {tmp_path / 'b b.wav'}\n")
    (tmp_path / "utt2spk").write_text("u1 anna\nu2 ben\n")
    (tmp_path / "spk2gender").write_text("anna f\nben M\n")
    (tmp_path / "text").write_text("u1 hello there\nu2\n")
    return tmp_path


def test_reads_files_speakers_sexes_and_texts(corpus: Path) -> None:
    source = open_folder(corpus)
    assert [(c.id, c.speaker, c.sex, c.text) for c in source.clips] == [
        ("u1", "anna", "F", "HELLO THERE"),
        ("u2", "ben", "M", ""),
    ]
    assert [len(source.read(clip).audio) for clip in source.clips] == [3200, 3200]


@pytest.mark.parametrize(
    ("table", "content", "message"),
    [
        ("utt2spk", "u1 anna\n", "wav.scp:2: utterance u2 is not in"),
        ("utt2spk", "u1 anna\nu2 ben\nu3 ben\n", "utt2spk:3: utterance u3 is not in wav.scp"),
        ("spk2gender", "anna f\n", "speaker ben is not in"),
        ("spk2gender", "anna f\nben x\n", "spk2gender:2: must be f or m, got 'x'"),
        ("wav.scp", "u1 a.wav\nu1 a.wav\n", "wav.scp:2: u1 is there twice"),
        ("wav.scp", "u1\n", "wav.scp:1: must be 'ID VALUE'"),
        ("wav.scp", "u1 audio-000.tar/u1.flac\nu2 a.wav\n", "wav.scp:1: utterance u1 is not in the shards"),
        ("segments", "u1 rec 0 1\n", "segments table are not supported"),
    ],
)
def test_wrong_tables_are_refused_by_line(corpus: Path, table: str, content: str, message: str) -> None:
    (corpus / table).write_text(content)
    with pytest.raises(InputError, match=message):
        read_kaldi(corpus)


def test_a_missing_table_is_named(corpus: Path) -> None:
    (corpus / "spk2gender").unlink()
    with pytest.raises(InputError, match="spk2gender: no such file"):
        read_kaldi(corpus)
