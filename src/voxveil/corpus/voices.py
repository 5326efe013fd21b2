"""The speakers of the embedded corpus: espeak-ng voice variants drawn from a seed.

A speaker differs from another in pitch and its range, in the length of the vocal tract
(all formants), in each formant's own place, height and width, in the long-term spectrum,
roughness, stress and tempo. The speaker's utterances differ among themselves in tempo, pitch,
level, and slightly in the formants: same-speaker trials are not trivial. espeak-ng's breath
noise is left out: it differs from one process to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from voxveil.runtime.seeding import stream

__all__ = ["Delivery", "Voice", "deliver", "make_voice"]

#: Base pitch in Hz and vocal-tract factor, by sex: lowest and highest value.
_PITCH = {"M": (68.0, 138.0), "F": (138.0, 235.0)}
_TRACT = {"M": (0.84, 1.08), "F": (1.0, 1.26)}
_HIGHEST_PITCH = 340.0
_FORMANTS = 6
_COLOUR_TAPS = 3


@dataclass(frozen=True)
class Voice:
    """A speaker.

    Attributes:
        sex: ``F`` or ``M``.
        pitch: Lowest and highest F0 of the intonation, in Hz.
        formants: Percent of espeak-ng's (frequency, height, width), for formants 0 to 5.
        colour: FIR filter behind the voice, first tap 1: the speaker's long-term spectrum.
        roughness: 0 to 7.
        flutter: Slow pitch variation, 0 to 10.
        stress: Percent by which stressed syllables are longer.
        rate: Words per minute.
    """

    sex: str
    pitch: tuple[float, float]
    formants: tuple[tuple[float, float, float], ...]
    colour: tuple[float, ...]
    roughness: int
    flutter: int
    stress: int
    rate: float

    def variant(self) -> str:
        """Return the voice as an espeak-ng variant file."""
        lines = [
            "language variant",
            "name voxveil",
            f"gender {'female' if self.sex == 'F' else 'male'}",
            f"pitch {round(self.pitch[0])} {round(self.pitch[1])}",
            f"roughness {self.roughness}",
            f"flutter {self.flutter}",
            f"stressAdd 0 0 0 0 0 0 {self.stress} {self.stress}",
        ]
        lines += [
            f"formant {index} {frequency:.1f} {height:.0f} {width:.0f}"
            for index, (frequency, height, width) in enumerate(self.formants)
        ]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Delivery:
    """Delivery of one utterance: voice variation, tempo, pitch setting, level."""

    voice: Voice
    rate: int
    pitch: int
    peak: float
    noise: float


def make_voice(seed: int, speaker: str, sex: str) -> Voice:
    """Draw the voice of a speaker.

    Args:
        seed: The run's seed.
        speaker: Speaker id.
        sex: ``F`` or ``M``.
    """
    draw = stream(seed, "voice", speaker)
    low, high = _PITCH[sex]
    base = math.exp(draw.uniform(math.log(low), math.log(high)))
    tract = draw.uniform(*_TRACT[sex])
    formants = tuple(
        (100.0 * tract * draw.uniform(0.91, 1.09), draw.uniform(60, 140), draw.uniform(70, 150))
        for _ in range(_FORMANTS)
    )
    return Voice(
        sex,
        (base, min(base * draw.uniform(1.25, 1.6), _HIGHEST_PITCH)),
        formants,
        colour=(1.0, draw.uniform(-0.7, 0.7), *draw.uniform(-0.25, 0.25, _COLOUR_TAPS).tolist()),
        roughness=int(draw.integers(0, 4)),
        flutter=int(draw.integers(1, 8)),
        stress=int(draw.integers(-10, 25)),
        rate=draw.uniform(145, 178),
    )


def deliver(voice: Voice, seed: int, utterance: str) -> Delivery:
    """Draw the delivery of one utterance."""
    draw = stream(seed, "delivery", utterance)
    formants = tuple(
        (frequency * draw.normal(1.0, 0.012), height * draw.normal(1.0, 0.04), width)
        for frequency, height, width in voice.formants
    )
    return Delivery(
        replace(voice, formants=formants),
        rate=round(voice.rate * draw.uniform(0.93, 1.07)),
        pitch=round(float(np.clip(draw.normal(50, 5), 35, 65))),
        peak=draw.uniform(0.3, 0.8),
        noise=10.0 ** (draw.uniform(-66, -56) / 20.0),
    )
