"""Small splits of made-up voices: harmonic tones through two resonances, one set a speaker."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import encode_flac
from voxveil.audio.frames import SAMPLE_RATE, frame_count
from voxveil.corpus.split import Split, SplitWriter, Utterance
from voxveil.runtime.seeding import stream


def voice(speaker: int, utterance: int, samples: int) -> NDArray[np.float32]:
    """Return (samples,) of a speaker; utterances differ in tempo, pitch by 3 % and noise."""
    own, draw = stream(1, "voice", speaker), stream(1, "utterance", speaker, utterance)
    pitch = own.uniform(90, 240)
    formants = own.uniform((300, 1000), (900, 2600))
    time = np.arange(samples) / SAMPLE_RATE
    bend = 1 + 0.03 * np.sin(2 * np.pi * draw.uniform(1, 3) * time + draw.uniform(0, 6))
    phase = 2 * np.pi * np.cumsum(pitch * bend) / SAMPLE_RATE
    audio = np.zeros(samples)
    for harmonic in range(1, int(3500 / pitch)):
        level = sum(1 / (1 + ((harmonic * pitch - f) / 120) ** 2) for f in formants) + 0.02
        audio += level * np.sin(harmonic * phase)
    syllables = 0.55 + 0.45 * np.sin(2 * np.pi * draw.uniform(3, 5) * time)
    audio = audio * syllables / max(np.abs(audio).max(initial=0.0), 1e-9)
    return (0.5 * audio + draw.normal(0, 0.003, samples)).astype(np.float32)


def write_voices(
    folder: Path,
    speakers: range,
    utterances: int,
    *,
    seconds: float = 1.2,
    prefix: str = "s",
    text: str = "",
) -> Split:
    """Write a split with audio and F0 (a constant, voiced but for the first 5 frames).

    Transcripts are ``text`` with the speaker's name and the number of the utterance; none where it is empty.
    """
    with SplitWriter(folder) as writer:
        for number in speakers:
            for index in range(utterances):
                samples = int(SAMPLE_RATE * seconds) + 80 * index
                flac, _ = encode_flac(voice(number, index, samples), "made")
                f0 = np.full(frame_count(samples), 100.0 + number, np.float32)
                f0[:5] = 0
                name = f"{prefix}{number:02d}"
                words = f"{text} {name} {index}" if text else ""
                item = Utterance(f"{name}-{index}", name, "FM"[number % 2], samples, words)
                writer.add(item, flac, f0=f0)
    return Split(folder)
