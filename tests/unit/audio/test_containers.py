"""Which files are read: one list for every command, and no container is read to where it was cut."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxveil.audio.containers import CONTAINERS, OTHER_AUDIO, SUFFIXES, cut_short, not_read
from voxveil.audio.files import read_recording
from voxveil.cli.main import main
from voxveil.runtime.errors import InputError

#: Suffix, container, encoding.
READ = [
    ("flac", "FLAC", "PCM_16"),
    ("wav", "WAV", "PCM_16"),
    ("wav", "WAV", "IMA_ADPCM"),
    ("wav", "WAVEX", "PCM_24"),
    ("wav", "RF64", "PCM_16"),
    ("aiff", "AIFF", "PCM_16"),
    ("aif", "AIFF", "FLOAT"),
    ("ogg", "OGG", "VORBIS"),
    ("opus", "OGG", "OPUS"),
    ("mp3", "MP3", "MPEG_LAYER_III"),
    ("sph", "NIST", "PCM_16"),
    ("sph", "NIST", "ULAW"),
    ("w64", "W64", "PCM_16"),
    ("caf", "CAF", "PCM_16"),
]


def write(path: Path, container: str, encoding: str) -> Path:
    audio = np.random.default_rng(0).normal(0, 0.1, 48_000)
    soundfile.write(path, audio, 16_000, format=container, subtype=encoding)
    return path


def test_every_suffix_is_tried() -> None:
    assert {f".{suffix}" for suffix, _, _ in READ} == set(SUFFIXES)
    assert not set(SUFFIXES) & set(OTHER_AUDIO)


@pytest.mark.parametrize(("suffix", "container", "encoding"), READ)
def test_a_whole_file_is_read_and_a_cut_one_refused(
    tmp_path: Path, suffix: str, container: str, encoding: str
) -> None:
    path = write(tmp_path / f"a.{suffix}", container, encoding)
    recording = read_recording(path)
    assert 48_000 <= len(recording.audio) < 49_000  # ADPCM fills its last block
    assert container in CONTAINERS[path.suffix]
    assert recording.flags == ()
    data = path.read_bytes()
    for share in (0.3, 0.6, 0.9):
        path.write_bytes(data[: int(len(data) * share)])
        with pytest.raises(InputError, match=f"a.{suffix}: refused, (cut short|not readable)"):
            read_recording(path)


def test_an_ogg_without_its_last_page_is_refused(tmp_path: Path) -> None:
    """Cut between two pages, each page is whole."""
    path = write(tmp_path / "a.opus", "OGG", "OPUS")
    data = path.read_bytes()
    path.write_bytes(data[: data.rindex(b"OggS")])
    assert cut_short(path) == "its last page is not there"
    with pytest.raises(InputError, match=r"a\.opus: refused, cut short"):
        read_recording(path)


@pytest.mark.parametrize("size", [0, 0xFFFFFFFF])
def test_a_wav_written_to_a_pipe_is_whole(tmp_path: Path, size: int) -> None:
    path = write(tmp_path / "a.wav", "WAV", "PCM_16")
    data = path.read_bytes()
    path.write_bytes(data[:4] + size.to_bytes(4, "little") + data[8:])
    assert cut_short(path) == ""
    assert len(read_recording(path).audio) == 48_000


@pytest.mark.parametrize(
    "data", [b"", b"R", b"RIFF", b"OggS", b"NIST_1A\n", b"NIST_1A\n   1024\n", b"FORM" * 3]
)
def test_a_stump_of_a_header_is_no_crash(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.wav"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"a\.wav: refused"):
        read_recording(path)


def test_another_container_is_refused_under_any_name(tmp_path: Path) -> None:
    path = write(tmp_path / "a.wav", "AU", "PCM_16")
    with pytest.raises(InputError, match=r"a\.wav: refused, AU is not read; convert it to one of \.flac"):
        read_recording(path)


@pytest.mark.parametrize("suffix", [*SUFFIXES, *OTHER_AUDIO, ".txt"])
def test_check_lists_and_refuses_what_anonymize_does(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    suffix: str,
) -> None:
    """corpus check passed .sph, .w64 and .caf, and did not see .m4a; anonymize refused all of them."""
    from voxveil.anonymize.inputs import list_folder

    (tmp_path / "in").mkdir()
    write(tmp_path / "in/good.wav", "WAV", "PCM_16")
    path = write(tmp_path / f"in/a{suffix}", "WAV", "PCM_16")
    found = list_folder(tmp_path / "in", tmp_path / "out", ".flac")
    status = main(["corpus", "check", str(tmp_path / "in")])
    lines = capsys.readouterr().out.splitlines()
    assert status == (1 if found.refused else 0)
    assert lines[:-1] == [refused.reason for refused in found.refused]
    assert lines[-1].startswith(f"{2 - found.others} files: {len(found.recordings)} usable")
    assert bool(not_read(path)) == bool(found.refused) == (suffix in OTHER_AUDIO)
