"""Small corpora of vowels in LibriSpeech layout, made for tests of prepare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from voxveil.config.compose import params_text
from voxveil.config.load import parse_params

SIZES = {
    "extractor_speakers": 2,
    "pool_speakers": 4,
    "attacker_speakers": 2,
    "private_speakers": 4,
    "utterances": 3,
    "enrolment_utterances": 1,
    "workers": 1,
}


def vowel(samples: int, hertz: float = 120.0) -> np.ndarray:
    """Return ``samples`` at 16 kHz of a voice of ``hertz``."""
    time = np.arange(samples) / 16_000
    return sum(0.1 / k * np.cos(2 * np.pi * k * hertz * time + k * k) for k in range(1, 20))


def write_corpus(folder: Path, speakers: int = 12, each: int = 3, samples: int = 6000) -> Path:
    """Write speakers 20, 21, ... of both sexes; return the folder."""
    rows = []
    for index in range(speakers):
        speaker = str(20 + index)
        place = folder / "part" / speaker / "7"
        place.mkdir(parents=True)
        for number in range(each):
            soundfile.write(
                place / f"{speaker}-7-{number:04d}.flac", vowel(samples, 90.0 + 9 * index), 16_000
            )
        rows.append(f"{speaker} | {'FM'[index % 2]} | part | 1 | Somebody\n")
    (folder / "SPEAKERS.TXT").write_text("".join(rows))
    return folder


def write_params(path: Path, **prepare: Any) -> Path:
    """Write a complete params file with these values of section ``prepare``."""
    plain: dict[str, Any] = {"plain": {}}
    content = {"prepare": {**SIZES, **prepare}, "pitch_variants": plain, "content_variants": plain}
    path.write_text(params_text(parse_params(content)))
    return path
