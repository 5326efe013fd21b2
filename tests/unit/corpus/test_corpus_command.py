"""voxveil corpus check, unpack and speak."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxveil.audio.files import encode_flac
from voxveil.cli.main import main
from voxveil.config.compose import params_text
from voxveil.config.load import parse_params
from voxveil.corpus.librispeech import read_librispeech
from voxveil.corpus.opening import open_folder
from voxveil.corpus.split import Phone, SplitWriter, Utterance


@pytest.fixture
def split(tmp_path: Path) -> Path:
    folder = tmp_path / "split"
    with SplitWriter(folder) as writer:
        for number in range(3):
            audio = np.random.default_rng(number).normal(0, 0.1, 4000)
            utterance = Utterance(f"7-1-000{number}", "7", "F", 4000, "SOME WORDS")
            writer.add(utterance, encode_flac(audio, utterance.id)[0], phones=[Phone(0, 0.25, "AA")])
    return folder


def test_check_names_each_bad_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in").mkdir()
    soundfile.write(tmp_path / "in/good.wav", np.random.default_rng(0).normal(0, 0.1, 8000), 8000)
    soundfile.write(tmp_path / "in/silent.flac", np.zeros(16_000), 16_000)
    (tmp_path / "in/broken.flac").write_bytes(b"not audio")
    (tmp_path / "in/notes.txt").write_text("no audio file, and none by name")
    assert main(["corpus", "check", str(tmp_path / "in")]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "broken.flac: refused" in lines[0]
    assert "silent.flac: refused" in lines[1]
    assert lines[2] == "3 files: 1 usable (1.0 s), 2 refused, 1 band_limited, 1 resampled"


def test_check_of_good_files_succeeds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    soundfile.write(tmp_path / "a.wav", np.random.default_rng(0).normal(0, 0.1, 44_100), 44_100)
    assert main(["corpus", "check", "--verbose", str(tmp_path)]) == 0
    assert "a.wav: usable; resampled" in capsys.readouterr().out


def test_check_of_nothing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["corpus", "check", str(tmp_path)]) == 2
    assert main(["corpus", "check", str(tmp_path / "absent")]) == 2
    error = capsys.readouterr().err.splitlines()
    assert "no audio files" in error[0]
    assert "no such folder" in error[1]


def test_unpack_makes_a_plain_corpus(split: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["corpus", "unpack", str(split), str(out)]) == 0
    source = open_folder(out)
    assert [(c.id, c.speaker, c.sex, c.text) for c in source.clips] == [
        (f"7-1-000{n}", "7", "F", "SOME WORDS") for n in range(3)
    ]
    expected = np.random.default_rng(1).normal(0, 0.1, 4000)
    np.testing.assert_allclose(source.read(source.clips[1]).audio, expected, atol=1e-4)
    for table in ("utt2spk", "spk2utt", "spk2gender", "utt2dur", "text", "phones.ctm"):
        assert (out / table).read_bytes() == (split / table).read_bytes()


def test_unpack_never_overwrites_and_leaves_no_part(
    split: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("mine")
    assert main(["corpus", "unpack", str(split), str(out)]) == 2
    assert [path.name for path in out.iterdir()] == ["mine.txt"]
    (split / "audio-000.tar").unlink()
    assert main(["corpus", "unpack", str(split), str(tmp_path / "new")]) == 2
    assert not (tmp_path / "new").exists()
    assert "utterance 7-1-0000" in capsys.readouterr().err


def test_speak_writes_a_librispeech_folder(tmp_path: Path) -> None:
    pytest.importorskip("espeakng_loader", reason="needs the demo extra")
    sizes = {"extractor_speakers": 2, "pool_speakers": 4, "attacker_speakers": 2, "private_speakers": 4}
    params = tmp_path / "params.yaml"
    params.write_text(params_text(parse_params({"prepare": {**sizes, "utterances": 2}, **_VARIANTS})))
    assert main(["corpus", "speak", str(tmp_path / "out"), "--params", str(params)]) == 0
    clips = read_librispeech(tmp_path / "out").clips
    assert len(clips) == 24
    assert {clip.subset for clip in clips} == {"public", "private"}
    assert all(clip.text for clip in clips)
    assert main(["corpus", "speak", str(tmp_path / "out"), "--params", str(params)]) == 2


_VARIANTS = {"pitch_variants": {"plain": {}}, "content_variants": {"plain": {}}}
