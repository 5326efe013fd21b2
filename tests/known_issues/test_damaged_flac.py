"""Damaged FLAC stopped a long job far in, with no file name.

Seen in https://github.com/bastibe/python-soundfile/issues/388,
https://github.com/JorisCos/LibriMix/issues/24 and https://github.com/lhotse-speech/lhotse/issues/1468.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import soundfile

from made_corpora import vowel
from made_speech import made_bundles
from voxveil.audio.files import read_recording
from voxveil.cli.main import main
from voxveil.corpus.librispeech import read_librispeech
from voxveil.runtime.errors import InputError
from voxveil.stages.prepare import Bad, Prepared, prepared


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Four recordings of one speaker, the third cut at half its bytes."""
    place = tmp_path / "corpus/part/20/7"
    place.mkdir(parents=True)
    for number in range(4):
        soundfile.write(place / f"20-7-000{number}.flac", vowel(16_000, 100.0 + 9 * number), 16_000)
    (tmp_path / "corpus/SPEAKERS.TXT").write_text("20 | F | part | 1 | Somebody\n")
    cut = place / "20-7-0002.flac"
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
    return tmp_path / "corpus"


def test_the_reader_raises(corpus: Path) -> None:
    with pytest.raises(InputError, match=r"20-7-0002\.flac: refused"):
        read_recording(corpus / "part/20/7/20-7-0002.flac")


@pytest.mark.parametrize("workers", [1, 2])
def test_prepare_reads_the_three_others_and_names_it(corpus: Path, workers: int) -> None:
    source = read_librispeech(corpus)
    results = list(prepared(source, source.clips, workers))
    assert [type(result) for result in results] == [Prepared, Prepared, Bad, Prepared]
    assert isinstance(results[2], Bad)
    assert results[2].utterance == "20-7-0002"
    assert "20-7-0002.flac: refused" in results[2].reason


def test_anonymize_finishes_three_and_reports_one(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VOXVEIL_LEDGER", str(tmp_path / "ledger"))
    made_bundles(tmp_path)
    shutil.move(corpus / "SPEAKERS.TXT", tmp_path)
    words = [str(corpus), str(tmp_path / "out"), "--model", str(tmp_path / "bundles/original")]
    assert main(["anonymize", *words]) == 2
    said = capsys.readouterr().err
    assert "20-7-0002.flac: refused" in said
    assert "1 of 4 recordings cannot be used" in said
    assert not (tmp_path / "out").exists()
    assert main(["anonymize", *words, "--on-bad-audio", "skip"]) == 0
    assert (
        ": 3 recordings passed through UNPROTECTED, 0 kept from an earlier run, 1 skipped"
        in capsys.readouterr().out
    )
    assert len(list((tmp_path / "out").rglob("*.flac"))) == 3
