"""Anybody's anonymized speech in each layout that ``voxveil attack`` reads, made of voices.

The "anonymizer" plays speech at another speed: it changes pitch and formants, and hides little.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import soundfile
import soxr

from made_voices import voice

TRAIN, TESTED = range(40, 46), range(60, 64)
SECONDS = 0.9


@lru_cache(maxsize=256)
def speech(speaker: int, index: int, shift: float) -> np.ndarray:
    """Return the audio of an utterance, played ``shift`` times as fast; 1 is the original."""
    audio = voice(speaker, index, int(16_000 * SECONDS) + 160 * index)
    return audio if shift == 1 else soxr.resample(audio, 16_000 * shift, 16_000)


def utterances(speakers: range, indices: range) -> list[tuple[str, int, int]]:
    """Return (id, speaker, index) of each."""
    return [(f"{s}-{i}-0", s, i) for s in speakers for i in indices]


def write_kaldi(
    folder: Path, items: list[tuple[str, int, int]], shift: float, *, paths_from: Path | None = None
) -> Path:
    """Write a Kaldi folder; paths in wav.scp are relative to ``paths_from``, else to the folder."""
    (folder / "wav").mkdir(parents=True)
    scp = []
    for name, speaker, index in items:
        path = folder / "wav" / f"{name}.wav"
        soundfile.write(path, speech(speaker, index, shift), 16_000, subtype="PCM_16")
        scp.append(f"{name} {path.relative_to(paths_from or folder)}\n")
    speakers = sorted({speaker for _, speaker, _ in items})
    (folder / "wav.scp").write_text("".join(scp))
    (folder / "utt2spk").write_text("".join(f"{name} {speaker}\n" for name, speaker, _ in items))
    (folder / "spk2gender").write_text("".join(f"{s} {'fm'[s % 2]}\n" for s in speakers))
    return folder


def trial_lines(tested: list[tuple[str, int, int]], *, mixed: bool) -> list[str]:
    """Return the trials of the utterances against every speaker, of one sex unless ``mixed``."""
    return [
        f"{model} {name} {'target' if model == speaker else 'nontarget'}\n"
        for model in TESTED
        for name, speaker, _ in tested
        if mixed or model % 2 == speaker % 2
    ]


def write_external(folder: Path, shift: float = 1.2) -> Path:
    """Write the plain layout with originals: train/, test/, trials/, original/."""
    enrolled, tested = utterances(TESTED, range(2)), utterances(TESTED, range(2, 5))
    training = utterances(TRAIN, range(4))
    for state, of in (("", shift), ("original", 1.0)):
        write_kaldi(folder / state / "train", training, of)
        write_kaldi(folder / state / "test", [*enrolled, *tested], of)
    (folder / "trials").mkdir()
    models = {s: [name for name, speaker, _ in enrolled if speaker == s] for s in TESTED}
    (folder / "trials/enrol.scp").write_text("".join(f"{s} {' '.join(m)}\n" for s, m in models.items()))
    (folder / "trials/trials.txt").write_text("".join(trial_lines(tested, mixed=False)))
    return folder


def write_challenge(
    folder: Path,
    *,
    year: int,
    suffix: str = "_mine",
    name: str = "libri_dev",
    train: str = "train-clean-360",
    originals: bool = True,
) -> Path:
    """Write the layout of VoicePrivacy 2024 (trials by sex) or 2026 (mixed as well), paths from the root."""
    data = folder / "data"
    enrolled, tested = utterances(TESTED, range(2)), utterances(TESTED, range(2, 5))
    for ending, shift in (("", 1.0), (suffix, 1.2)):
        if ending == "" and not originals:
            continue
        write_kaldi(data / f"{train}{ending}", utterances(TRAIN, range(4)), shift, paths_from=folder)
        place = write_kaldi(data / f"{name}_enrolls{ending}", enrolled, shift, paths_from=folder)
        if ending == "" or not originals:
            (place / "enrolls").write_text("".join(f"{each}\n" for each, _, _ in enrolled))
        parts = {"f": 0, "m": 1} if year < 2026 else {"f": 0, "m": 1, "mixed": None}
        for part, sex in parts.items():
            chosen = [row for row in tested if sex is None or row[1] % 2 == sex]
            place = write_kaldi(data / f"{name}_trials_{part}{ending}", chosen, shift, paths_from=folder)
            if ending == "" or not originals:
                (place / "trials").write_text("".join(trial_lines(chosen, mixed=sex is None)))
    return folder
