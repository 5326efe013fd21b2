"""The embedded corpus of synthetic speakers, which needs no download.

Its speech is espeak-ng's, with a little noise. Results on it show that the software works,
not how well people are protected; every report says that it is synthetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.files import expected_samples
from voxveil.audio.frames import SAMPLE_RATE
from voxveil.corpus.espeak import speak
from voxveil.corpus.phones import phones_from_espeak
from voxveil.corpus.sentences import PRIVATE_SENTENCES, PUBLIC_SENTENCES
from voxveil.corpus.source import Clip, Reading
from voxveil.corpus.voices import deliver, make_voice
from voxveil.runtime.errors import MissingExtraError, ParamsError
from voxveil.runtime.seeding import stream

__all__ = ["PRIVATE_SUBSET", "PUBLIC_SUBSET", "EmbeddedSource"]

PUBLIC_SUBSET = "public"
PRIVATE_SUBSET = "private"

_FIRST_SPEAKER = 101


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
