"""Kinds of anonymization systems with a common interface, and their table.

Every kind anonymizes one utterance, or a long recording window by window. A kind is one class of this module
and one entry in :data:`KINDS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voxveil.anonymize.bundle import Bundle
from voxveil.anonymize.word_recognition import SegmentRecognizer, joined_text, open_recognizer
from voxveil.audio.frames import HOP, SAMPLE_RATE, frame_count
from voxveil.audio.streamed import SlidingAudio
from voxveil.features.extraction import System
from voxveil.features.speaker.pool import Pool
from voxveil.features.speaker.targets import Source, Target, select_target
from voxveil.pretrained.kinds import SpeechVoice, SpokenWords
from voxveil.privacy import Loss, NoiseSource, Released, SystemNoise, Words, require_released
from voxveil.privacy.loss_rule import utterance_total
from voxveil.runtime.errors import InputError

__all__ = ["KINDS", "Anonymized", "SpeechInput", "SpeechSystem", "load_system"]

Array = NDArray[np.float32]
#: Transforms (n,) audio and its (K,) F0, None where it was not tracked, to (n,) audio.
Transform = Callable[[Array, Array | None], Array]

#: Frames on each side of a window that F0 tracking reads (its energy is relative to their mean too).
_PITCH_CONTEXT = 100
#: Frames on each side of a window that the McAdams transformation reads: two of its windows.
_SIGNAL_CONTEXT = 4


@dataclass(frozen=True)
class SpeechInput:
    """One utterance to anonymize.

    Attributes:
        audio: (n,) at 16 kHz, n >= 1, finite.
        f0: (K,) in Hz, 0 where unvoiced; None to track it where the system needs it.
        source: Input of the target rule; None to derive it where the system needs it.
        name: Name of the utterance in an error.
        samples: Sample count of the output, where a system of words keeps the length; None is that of
            ``audio``.
    """

    audio: Array
    f0: Array | None
    source: Source | None
    name: str
    samples: int | None = None


@dataclass(frozen=True)
class Anonymized:
    """Anonymized speech and what it cost.

    Attributes:
        audio: (n,) float32, as many samples as the input unless the system speaks words; may pass full scale
            (:func:`voxveil.audio.files.encode_flac` clips and counts).
        losses: Loss of each stream.
        vectors: Number of released content vectors K.
        words: What a system of words spoke, with times in this audio; None elsewhere.
    """

    audio: Array
    losses: Mapping[str, Loss]
    vectors: int
    words: SpokenWords | None = None

    @property
    def utterance(self) -> Loss:
        """The loss of the whole utterance."""
        return utterance_total(self.losses, self.vectors)


class SpeechSystem(ABC):
    """A loaded system of one kind; several threads may use one.

    Args:
        bundle: Its checked description.
    """

    #: Whether outputs are set to a fixed loudness.
    sets_loudness = True

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle

    @abstractmethod
    def anonymize(self, recording: SpeechInput, rng: np.random.Generator, noise: NoiseSource) -> Anonymized:
        """Anonymize one utterance; its loudness is not yet set.

        Args:
            recording: The utterance.
            rng: Chooses the target voice, or other public settings of the system.
            noise: Source of the noise on private values.
        """

    @abstractmethod
    def anonymize_windows(
        self,
        audio: SlidingAudio,
        samples: int,
        rng: np.random.Generator,
        losses: dict[str, Loss],
        source: Callable[[Array], Source],
    ) -> Iterator[Array]:
        """Anonymize a long private recording window by window, with noise of the operating system.

        Args:
            audio: The recording, read forward once.
            samples: Sample count of the whole.
            rng: Chooses the target voice, or other public settings of the system.
            losses: Receives the loss of each stream after the last piece.
            source: Derives the input of the target rule from the audio of the first window.

        Yields:
            (n,) speech, ``samples`` in all.
        """

    def source_of(self, audio: Array, sex: str, name: str) -> Source:
        """Return the input of the target rule: the sex, and the voice where the rule needs it."""
        return Source(sex)

    @property
    def pool_speakers(self) -> frozenset[str]:
        """Speakers whose voices are in the pool of targets."""
        return frozenset()


class _Processing(SpeechSystem):
    """A system without extractors: a transformation of the signal that promises nothing."""

    @abstractmethod
    def transform(self, rng: np.random.Generator) -> Transform:
        """Return the transformation for one recording; ``rng`` draws its settings."""

    def anonymize(self, recording: SpeechInput, rng: np.random.Generator, noise: NoiseSource) -> Anonymized:
        frames, rule = frame_count(len(recording.audio)), self.bundle.rule
        audio = self.transform(rng)(recording.audio, recording.f0)
        return Anonymized(audio, rule.losses(frames), rule.vectors(frames))

    def anonymize_windows(
        self,
        audio: SlidingAudio,
        samples: int,
        rng: np.random.Generator,
        losses: dict[str, Loss],
        source: Callable[[Array], Source],
    ) -> Iterator[Array]:
        frames = frame_count(samples)
        spans, transform = self.bundle.rule.spans(frames), self.transform(rng)
        losses.update(self.bundle.rule.losses(frames))
        for start, stop in spans:
            first = HOP * max(0, start - _SIGNAL_CONTEXT)
            end = min(samples, HOP * stop) if (start, stop) != spans[-1] else samples
            window = audio.take(first, min(samples, end + HOP * _SIGNAL_CONTEXT))
            yield transform(window, None)[HOP * start - first : end - first]


class PassThrough(_Processing):
    """Kind ``original``: speech is passed through unprotected."""

    sets_loudness = False

    def transform(self, rng: np.random.Generator) -> Transform:
        """Return the identity."""
        return lambda audio, f0: audio


class McAdams(_Processing):
    """Kind ``mcadams``: the McAdams coefficient (VoicePrivacy's B2), signal processing without guarantee."""

    def transform(self, rng: np.random.Generator) -> Transform:
        """Return the transformation with a coefficient drawn for the recording."""
        from voxveil.audio.mcadams import mcadams

        coefficient = rng.uniform(*self.bundle.coefficients)
        return lambda audio, f0: mcadams(audio, coefficient)


class CopySynthesisSystem(_Processing):
    """Kind ``copy_synthesis``: speech resynthesized from its own spectrum and pitch, without guarantee."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle)
        from voxveil.synthesis.vocoders import CopySynthesis

        self._copy = CopySynthesis.load(bundle.part("vocoder"))

    def transform(self, rng: np.random.Generator) -> Transform:
        """Return the resynthesis; F0 is tracked where it is not given."""
        from voxveil.features.pitch.yaapt import track_f0

        return lambda audio, f0: self._copy(audio, track_f0(audio) if f0 is None else f0)


class SynthesizedSystem(SpeechSystem):
    """Kind ``anonymized``: released pitch and content, spoken by the synthesizer in a target voice."""

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle)
        from voxveil.synthesis.synthesizer import Synthesizer

        self.extraction = System.load(bundle.part("pitch"), bundle.part("content"))
        self._pool = Pool.load(bundle.folder / "pool.npz")
        self._encoder = None
        if bundle.target.choice == "farthest":
            from voxveil.features.speaker.encoder import SpeakerEncoder

            self._encoder = SpeakerEncoder.load(bundle.part("speaker"))
        self.synthesizer = Synthesizer.load(
            bundle.part("synthesis"), bundle.part("vocoder"), pitch_conversion=bundle.pitch_conversion
        )

    def source_of(self, audio: Array, sex: str, name: str) -> Source:
        """Return the sex, and the embedding of the voice where targets are chosen by distance."""
        return Source(sex, None if self._encoder is None else self._encoder.embed(audio, name))

    @property
    def pool_speakers(self) -> frozenset[str]:
        """Speakers whose voices are in the pool of targets."""
        return frozenset(self._pool.speakers.tolist())

    def target(self, rng: np.random.Generator, source: Source | None) -> Target:
        """Draw a target voice by the bundle's rule."""
        members, rule = self.bundle.target_members, self.bundle.target
        return select_target(self._pool, rng, members, rule, source or Source())

    def anonymize(self, recording: SpeechInput, rng: np.random.Generator, noise: NoiseSource) -> Anonymized:
        """Release pitch and content of the utterance and speak them; only Released values reach synthesis."""
        audio, f0, source = recording.audio, recording.f0, recording.source
        if f0 is None:
            from voxveil.features.pitch.yaapt import track_f0

            f0 = track_f0(audio)
        if source is None:
            source = self.source_of(audio, "", recording.name)
        target = self.target(rng, source)
        features = self.extraction.release_features(audio, f0, noise)
        speech = self.synthesizer.synthesize(features.content, features.pitch, target, len(audio))
        return Anonymized(speech, {**features.losses, **self.bundle.rule.target_loss()}, features.vectors)

    def anonymize_windows(
        self,
        audio: SlidingAudio,
        samples: int,
        rng: np.random.Generator,
        losses: dict[str, Loss],
        source: Callable[[Array], Source],
    ) -> Iterator[Array]:
        """Release each content vector once and pitch once per window; one target voice throughout."""
        from voxveil.features.pitch.yaapt import track_f0
        from voxveil.synthesis.synthesizer import WindowedSpeech

        rule, frames = self.bundle.rule, frame_count(samples)
        # A content vector may not be cut at the start of what is read.
        context = max(_PITCH_CONTEXT, self.extraction.content.context)
        context += -context % rule.every
        speech: WindowedSpeech | None = None
        noise = SystemNoise()
        charged: list[Loss] = []
        for start, stop in rule.spans(frames):
            first, last = max(0, start - context), min(frames, stop + context)
            end = samples if last == frames else HOP * (last - 1)
            window = audio.take(HOP * first, end)
            content, pitch = self.extraction.release_window(
                window, track_f0(window), slice(start - first, stop - first), noise
            )
            charged.append(pitch.loss)
            losses["content"] = content.loss
            if speech is None:
                # A target rule that looks at the source's voice reads the first window of the recording.
                speech = WindowedSpeech(self.synthesizer, self.target(rng, source(window)), samples)
            yield speech.push(content, pitch)
        losses["pitch"] = rule.all_windows(charged)
        losses.update(rule.target_loss())
        if speech is not None:
            yield speech.finish()


class WordsVoice(SpeechSystem):
    """Kind ``words_voice``: the recognized words, spoken by a ready text-to-speech voice.

    Of a recording, the words alone reach the voice, as :class:`Released` words; and the length where it is
    declared an invariant. Rate, channels and loudness of the output are constants.
    """

    def __init__(self, bundle: Bundle) -> None:
        super().__init__(bundle)
        from voxveil.pretrained.architectures import load
        from voxveil.pretrained.folder import read_model

        if bundle.words is None:
            raise InputError(f"{bundle.folder}: names no recognizer")
        self._mechanism = bundle.words.mechanism
        self.recognizer: SegmentRecognizer = open_recognizer(bundle.words)
        self._voice: SpeechVoice = load(read_model(bundle.part("voice"), "voice"))

    def anonymize(self, recording: SpeechInput, rng: np.random.Generator, noise: NoiseSource) -> Anonymized:
        """Recognize, release the words and speak them; there is neither noise nor a choice."""
        segments = self.recognizer.segments(recording.audio, recording.name)
        words = self._mechanism.release(joined_text(segments))
        length = None
        if self._mechanism.length is not None:
            length = self._mechanism.release_length(recording.samples or len(recording.audio), SAMPLE_RATE)
        spoken = self.speak(words, length)
        return Anonymized(spoken.audio, {"words": words.loss}, 1, spoken)

    def speak(self, words: Released[Words], samples: Released[int] | None = None) -> SpokenWords:
        """Speak released words, in exactly so many samples where a length is released too."""
        sequence = require_released(words, "words").value.sequence
        return self._voice.speak(
            sequence, None if samples is None else require_released(samples, "samples").value
        )

    def anonymize_windows(
        self,
        audio: SlidingAudio,
        samples: int,
        rng: np.random.Generator,
        losses: dict[str, Loss],
        source: Callable[[Array], Source],
    ) -> Iterator[Array]:
        """Refuse: when a piece of output appears would tell when its words were spoken."""
        raise InputError(
            f"{self.bundle.system}: a system of words anonymizes whole recordings; output piece by piece"
            " would tell times and pauses"
        )


#: Class of each kind of system, by the bundle's ``kind``.
KINDS: Mapping[str, type[SpeechSystem]] = {
    "original": PassThrough,
    "mcadams": McAdams,
    "copy_synthesis": CopySynthesisSystem,
    "words_voice": WordsVoice,
    "anonymized": SynthesizedSystem,
}


def load_system(bundle: Bundle) -> SpeechSystem:
    """Load the models of a bundle.

    Raises:
        InputError: The bundle is of an unknown kind.
    """
    if bundle.kind not in KINDS:
        raise InputError(f"{bundle.folder}: kind {bundle.kind!r}, must be one of {', '.join(KINDS)}")
    return KINDS[bundle.kind](bundle)
