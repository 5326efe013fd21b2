"""Projects with Git and DVC, and small corpora to register in them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

from voxveil.audio.files import encode_flac
from voxveil.cli.main import main
from voxveil.corpus.split import SplitWriter, Utterance
from voxveil.runtime.atomic import write_json
from voxveil.runtime.done import finish

NAMES = ("AUTHOR", "COMMITTER")


def shell(where: Path, *command: str) -> str:
    """Run a program in ``where`` and return what it prints; a failure shows what it said."""
    names = {f"GIT_{who}_{what}": "tester@localhost" for who in NAMES for what in ("NAME", "EMAIL")}
    environment = {"DVC_NO_ANALYTICS": "1", "GIT_CONFIG_GLOBAL": os.devnull, **os.environ, **names}
    if command[0] == "dvc":
        command = (sys.executable, "-m", "dvc", *command[1:])
    result = subprocess.run(command, cwd=where, capture_output=True, text=True, env=environment, check=False)
    assert result.returncode == 0, f"{' '.join(command)}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def make_project(folder: Path, store: str = "") -> Path:
    """Make a Git and DVC repository, its default remote ``store`` if one is given."""
    folder.mkdir(parents=True)
    shell(folder, "git", "init", "-q", "-b", "main")
    shell(folder, "dvc", "init", "-q")
    if store:
        (folder / ".dvc/config").write_text(
            f"[core]\n    remote = team\n['remote \"team\"']\n    url = {store}\n"
        )
    shell(folder, "git", "add", "-A")
    shell(folder, "git", "commit", "-qm", "project")
    return folder


def commit(project: Path, message: str) -> str:
    """Commit everything and return the commit."""
    shell(project, "git", "add", "-A")
    shell(project, "git", "commit", "-qm", message)
    return shell(project, "git", "rev-parse", "HEAD").strip()


def speech(path: Path, seed: int, samples: int = 1600, rate: int = 16_000) -> None:
    """Write noise that no other seed gives."""
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.random.default_rng(seed).normal(0, 0.1, samples), rate, subtype="PCM_16")


def write_libri(folder: Path, speakers: dict[str, str], each: int = 2, salt: int = 0) -> Path:
    """Write a LibriSpeech folder with these speakers (id: sex), subset ``part``, chapter 7."""
    for speaker in speakers:
        place = folder / "part" / speaker / "7"
        for number in range(each):
            speech(place / f"{speaker}-7-{number:04d}.flac", int(speaker) * 100 + number + salt * 100_000)
        lines = [f"{speaker}-7-{number:04d} SOME WORDS\n" for number in range(each)]
        (place / f"{speaker}-7.trans.txt").write_text("".join(lines))
    rows = [f"{speaker} | {sex} | part | 1 | Some|body\n" for speaker, sex in speakers.items()]
    (folder / "SPEAKERS.TXT").write_text("; comment\n" + "".join(rows))
    chapters = [f"{speaker}0 | {speaker} | 1 | part\n" for speaker in speakers]
    (folder / "CHAPTERS.TXT").write_text("".join(chapters))
    return folder


def write_kaldi(folder: Path, utterances: dict[str, str], *, absolute: bool = False) -> Path:
    """Write a Kaldi folder with these utterances (id: speaker), every speaker female."""
    for index, utterance in enumerate(utterances):
        speech(folder / "audio" / f"{utterance}.wav", index, rate=8000)
    base = f"{folder}/" if absolute else ""
    tables = {
        "wav.scp": [f"{each} {base}audio/{each}.wav" for each in utterances],
        "utt2spk": [f"{each} {speaker}" for each, speaker in utterances.items()],
        "spk2gender": [f"{speaker} f" for speaker in sorted(set(utterances.values()))],
        "text": [f"{each} hello" for each in utterances],
    }
    for name, lines in tables.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    return folder


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file, by relative path."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def run_data(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Run ``voxveil data`` and return status, output and errors."""
    capsys.readouterr()
    status = main(["data", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def data_error(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line of a command that fails."""
    status, out, err = run_data(capsys, *arguments)
    lines = [line for line in err.splitlines() if line.startswith("voxveil: error: ")]
    assert status in (1, 2) and len(lines) == 1, (out, err)
    assert "Traceback" not in err
    return lines[0]


def make_speaker_outputs(project: Path) -> None:
    """Write a prepared split with speaker 20, scores of theirs, and an output of somebody else."""
    public = project / "outputs/prepare/public"
    audio = np.random.default_rng(0).normal(0, 0.1, 1600)
    for name, speaker in (("pool", "20"), ("extractor", "21")):
        with SplitWriter(public / name) as writer:
            item = f"{speaker}-7-0000"
            writer.add(Utterance(item, speaker, "F", 1600), encode_flac(audio, item)[0])
    write_json(public / "corpus.json", {"revision": "c0ffee" * 8})
    finish(public, "prepare", None)
    score = project / "outputs/score/anon/ecapa"
    score.mkdir(parents=True)
    np.savez(score / "rank.npz", input_labels=np.array(["20-7-0001"]), scores=np.zeros((1, 1)))
    finish(score, "score", "anon")
    other = project / "outputs/score/original/ecapa"
    other.mkdir(parents=True)
    # A number that looks like the id is no trace of the speaker, nor is a longer id.
    (other / "scores.txt").write_text("x 120-7-0000 20\n")
    write_json(other / "metrics.json", {"count": 20})
    finish(other, "score", "original")
