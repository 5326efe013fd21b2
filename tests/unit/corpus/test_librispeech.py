"""LibriSpeech and LibriTTS folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from given_files import DATA, given_folder, sources
from voxveil.corpus.librispeech import read_librispeech, read_speakers, speaker_of, write_librispeech
from voxveil.corpus.opening import clips_of, open_folder
from voxveil.corpus.source import Clip
from voxveil.runtime.errors import InputError

TABLE = (
    ";ID  |SEX| SUBSET           |MINUTES| NAME\n61 | M | test | 8.1 | A\n60   | F | test | 1 | |CBW|Simon\n"
)


def write_audio(path: Path, seconds: float = 0.2) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(0).normal(0, 0.1, int(seconds * 16_000))
    soundfile.write(path, samples, 16_000)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "SPEAKERS.TXT").write_text(TABLE)
    for speaker, chapter in (("61", "70968"), ("60", "7")):
        folder = tmp_path / "test" / speaker / chapter
        for number in range(2):
            write_audio(folder / f"{speaker}-{chapter}-{number:04d}.flac")
        (folder / f"{speaker}-{chapter}.trans.txt").write_text(
            "".join(f"{speaker}-{chapter}-{number:04d} WORDS OF {speaker}\n" for number in range(2))
        )
    return tmp_path


def test_reads_clips_with_speaker_sex_and_text(corpus: Path) -> None:
    source = open_folder(corpus)
    assert [(c.id, c.speaker, c.sex, c.subset) for c in source.clips] == [
        ("60-7-0000", "60", "F", "test"),
        ("60-7-0001", "60", "F", "test"),
        ("61-70968-0000", "61", "M", "test"),
        ("61-70968-0001", "61", "M", "test"),
    ]
    assert source.clips[0].text == "WORDS OF"
    assert len(source.read(source.clips[0]).audio) == 3200
    assert not source.synthetic


def test_libritts_names_and_texts(tmp_path: Path) -> None:
    (tmp_path / "speakers.txt").write_text(TABLE)
    path = tmp_path / "dev" / "61" / "70968" / "61_70968_000001_000000.wav"
    write_audio(path)
    path.with_name("61_70968_000001_000000.normalized.txt").write_text("It's late, isn't it?\n")
    (clip,) = read_librispeech(tmp_path).clips
    assert (clip.speaker, clip.text) == ("61", "IT'S LATE ISN'T IT")


def test_a_transcript_without_audio_is_a_bad_file(corpus: Path) -> None:
    (corpus / "test/60/7/60-7-0001.flac").unlink()
    source = read_librispeech(corpus)
    with pytest.raises(InputError, match="60-7-0001.flac: no such file"):
        source.read(source.clips[1])


def test_silence_is_refused_by_name(corpus: Path) -> None:
    soundfile.write(corpus / "test/60/7/60-7-0001.flac", np.zeros(16_000), 16_000)
    source = read_librispeech(corpus)
    with pytest.raises(InputError, match=r"60-7-0001.flac: refused, all its samples are equal"):
        source.read(source.clips[1])


def test_a_file_in_another_speakers_folder_is_refused(corpus: Path) -> None:
    write_audio(corpus / "test/60/7/61-7-0009.flac")
    with pytest.raises(InputError, match=r"61-7-0009.flac: lies in the folder of speaker 60, not of 61"):
        read_librispeech(corpus)


def test_a_speaker_outside_the_table_is_refused(corpus: Path) -> None:
    write_audio(corpus / "test/62/7/62-7-0000.flac")
    with pytest.raises(InputError, match="speaker 62 is not in"):
        read_librispeech(corpus)


def test_an_utterance_in_two_subsets_is_refused(corpus: Path) -> None:
    write_audio(corpus / "other/60/7/60-7-0000.flac")
    with pytest.raises(InputError, match="utterance 60-7-0000 is there twice"):
        read_librispeech(corpus)


def test_unknown_subsets_and_folders_are_refused(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"prepare.public_subsets: .* no subset 'train'; it has: test"):
        clips_of(read_librispeech(corpus), ("train",), "prepare.public_subsets")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="neither wav.scp"):
        open_folder(tmp_path / "empty")
    with pytest.raises(InputError, match="no such folder"):
        open_folder(tmp_path / "absent")


@pytest.mark.parametrize("line", ["61", "61 | X | test", "| F"])
def test_a_broken_speakers_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "SPEAKERS.TXT"
    path.write_text(TABLE + line + "\n")
    if line == "| F":
        assert read_speakers(path)[""] == "F"  # an id nobody has
    else:
        with pytest.raises(InputError, match=r"SPEAKERS.TXT:4: must be"):
            read_speakers(path)


@pytest.mark.parametrize("utterance", ["61", "61-7", "-7-1", "61--1"])
def test_ids_without_fields_are_refused(utterance: str) -> None:
    with pytest.raises(InputError, match="must be SPEAKER-CHAPTER-NUMBER"):
        speaker_of(utterance)


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    from voxveil.audio.files import encode_flac

    clips = [
        Clip(f"{s}-1-000{i}", s, sex, "SOME WORDS", "public")
        for s, sex in (("5", "F"), ("6", "M"))
        for i in (0, 1)
    ]
    audio = np.linspace(-0.5, 0.5, 4000)
    assert write_librispeech(tmp_path, ((clip, encode_flac(audio, clip.id)[0]) for clip in clips)) == 4
    source = read_librispeech(tmp_path)
    assert [(c.id, c.speaker, c.sex, c.text, c.subset) for c in source.clips] == [
        (c.id, c.speaker, c.sex, c.text, c.subset) for c in clips
    ]


def write_excerpt(folder: Path) -> int:
    """Write 3 subsets of speakers with ids of 2 to 4 digits, and a manifest of all; return utterances.

    Utterances are numbered with gaps, a speaker may have two chapters, and SPEAKERS.TXT names more speakers.
    """
    table, rows = [";ID  |SEX| SUBSET           |MINUTES| NAME\n", "14 | F | elsewhere | 1 | Nobody\n"], []
    for index in range(12):
        subset, sex = ("dev-true", "test-mini", "train-mini")[index % 3], "FM"[index // 3 % 2]
        speaker = str((19, 207, 1988)[index % 3] + 7 * index)
        table.append(f"{speaker:4} | {sex} | {subset} | 1.5 | Reader | of {index}\n")
        for chapter in ("84", "128104")[: 1 + index % 2]:
            place = folder / subset / speaker / chapter
            names = [f"{speaker}-{chapter}-{number:04d}" for number in (0, 3, 14)]
            for name in names:
                write_audio(place / f"{name}.flac", 0.1)
                rows.append(f"{subset}\t{speaker}\t{sex}\t{name}\t0.1\ttrue\n")
            text = "".join(f"{name} WORDS OF {name[-1]}\n" for name in names)
            (place / f"{speaker}-{chapter}.trans.txt").write_text(text)
    (folder / "SPEAKERS.TXT").write_text("".join(table))
    (folder / "manifest.tsv").write_text("".join(["subset\tspeaker\tsex\tutterance\tseconds\ttext\n", *rows]))
    return len(rows)


@pytest.mark.parametrize("origin", sources(DATA, "LibriSpeech"))
def test_an_excerpt_is_read_whole(origin: str, tmp_path: Path) -> None:
    if origin == "made":
        folder, count = tmp_path, write_excerpt(tmp_path)
    else:
        given = given_folder(DATA, "LibriSpeech")
        assert given is not None
        folder, count = given, 935
    source = read_librispeech(folder)
    rows = [line.split("\t") for line in (folder / "manifest.tsv").read_text().splitlines()[1:]]
    assert len(source.clips) == len(rows) == count >= 50
    facts = {row[3]: (row[0], row[1], row[2]) for row in rows}
    assert {c.id: (c.subset, c.speaker, c.sex) for c in source.clips} == facts
    assert all(clip.text for clip in source.clips)
