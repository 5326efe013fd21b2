"""The embedded corpus of synthetic speakers, which needs no download.

Its speech is espeak-ng's, with a little noise. Results on it show that the software works,
not how well people are protected; every report says that it is synthetic.

The speakers are espeak-ng voice variants drawn from a seed. A speaker differs from another in pitch and its
range, in the length of the vocal tract (all formants), in frequency, height and width of each formant, in the
long-term spectrum, roughness, stress and tempo. The speaker's utterances differ among themselves in tempo,
pitch, level, and slightly in the formants: same-speaker trials are not trivial. espeak-ng's breath noise is
left out: it differs from one process to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import expected_samples
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.corpus.espeak import speak
from voxveil.corpus.phones import phones_from_espeak
from voxveil.corpus.sentences import PRIVATE_SENTENCES, PUBLIC_SENTENCES
from voxveil.corpus.source import Clip, Reading
from voxveil.runtime.errors import MissingExtraError, ParamsError
from voxveil.runtime.seeding import stream

__all__ = ["PRIVATE_SUBSET", "PUBLIC_SUBSET", "Delivery", "EmbeddedSource", "Voice", "deliver", "make_voice"]

PUBLIC_SUBSET = "public"
PRIVATE_SUBSET = "private"

_FIRST_SPEAKER = 101
#: Base pitch in Hz and vocal-tract factor, by sex: lowest and highest value.
_PITCH = {"M": (68.0, 138.0), "F": (138.0, 235.0)}
_TRACT = {"M": (0.84, 1.08), "F": (1.0, 1.26)}
_HIGHEST_PITCH = 340.0
_FORMANTS = 6
_COLOUR_TAPS = 3


@dataclass(frozen=True)
class EmbeddedSource:
    """Synthetic speakers drawn from a seed; every second one is a woman.

    Attributes:
        seed: The run's seed; equal seeds give equal bytes.
        public_speakers: Speakers of subset ``public``.
        private_speakers: Speakers of subset ``private``, who say other sentences.
        utterances: Utterances per speaker.
    """

    seed: int
    public_speakers: int
    private_speakers: int
    utterances: int
    name: str = "embedded"
    synthetic: bool = True

    @cached_property
    def clips(self) -> tuple[Clip, ...]:
        """All clips, sorted by id."""
        smallest = min(len(PUBLIC_SENTENCES), len(PRIVATE_SENTENCES))
        if self.utterances > smallest:
            raise ParamsError(
                f"prepare.utterances: must be at most {smallest} (the embedded corpus has no more sentences),"
                f" got {self.utterances}"
            )
        clips: list[Clip] = []
        for index in range(self.public_speakers + self.private_speakers):
            private = index >= self.public_speakers
            speaker = str(_FIRST_SPEAKER + index)
            sentences = PRIVATE_SENTENCES if private else PUBLIC_SENTENCES
            chosen = stream(self.seed, "sentences", speaker).permutation(len(sentences))[: self.utterances]
            clips += [
                Clip(
                    f"{speaker}-{1000 + index}-{number:04d}",
                    speaker,
                    "FM"[index % 2],
                    sentences[sentence].upper(),
                    PRIVATE_SUBSET if private else PUBLIC_SUBSET,
                )
                for number, sentence in enumerate(chosen)
            ]
        return tuple(sorted(clips, key=lambda clip: clip.id))

    def read(self, clip: Clip) -> Reading:
        """Speak a clip."""
        manner = deliver(make_voice(self.seed, clip.speaker, clip.sex), self.seed, clip.id)
        # Capitals would be spelt out; espeak-ng gets the sentence as it was written.
        speech = speak(
            clip.text.capitalize() + ".", manner.voice.variant(), rate=manner.rate, pitch=manner.pitch
        )
        audio = _resample(speech.samples, speech.rate)
        audio = np.convolve(audio, manner.voice.colour)[: len(audio)]
        audio *= manner.peak / np.abs(audio).max()
        audio += stream(self.seed, "room", clip.id).normal(0.0, manner.noise, len(audio))
        phones = phones_from_espeak(speech.events, len(audio) / SAMPLE_RATE, clip.id)
        return Reading(audio.astype(np.float32), (), phones)


def _resample(samples: NDArray[np.int16], rate: int) -> NDArray[np.float64]:
    try:
        import soxr
    except ImportError:
        raise MissingExtraError("soxr", "data") from None
    wanted = expected_samples(len(samples), rate)
    audio: NDArray[np.float64] = soxr.resample(samples / 32768.0, rate, SAMPLE_RATE, quality="HQ")[:wanted]
    return np.pad(audio, (0, wanted - len(audio)))


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
