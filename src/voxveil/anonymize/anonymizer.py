"""Anonymization of one utterance, or of a long recording window by window.

There are two entry points. :meth:`Anonymizer.anonymize_private` draws its noise from the operating system and
takes no seed for it; :meth:`Anonymizer.anonymize_public` serves the attacker's training set of
public speech with seeded noise of its own, which protects nobody.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from voxveil.anonymize.bundle import Bundle, read_bundle
from voxveil.anonymize.systems import Anonymized, SpeechInput, load_system
from voxveil.audio.frames import frame_count
from voxveil.audio.loudness import to_loudness
from voxveil.audio.streamed import SlidingAudio
from voxveil.features.speaker.targets import Source
from voxveil.privacy import Loss, NoiseSource, PublicNoise, SystemNoise
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

__all__ = ["LOUDNESS", "Anonymized", "Anonymizer"]

Array = NDArray[np.float32]

#: Default loudness of every output, in LUFS.
LOUDNESS = -23.0


class Anonymizer:
    """A loaded bundle; several threads may use one.

    Args:
        bundle: Its checked description.
        loudness: Loudness of every output in LUFS, whatever the input's.
    """

    def __init__(self, bundle: Bundle, *, loudness: float = LOUDNESS) -> None:
        self.bundle = bundle
        self.system = load_system(bundle)
        self._loudness = loudness

    @classmethod
    def load(cls, folder: Path, *, loudness: float = LOUDNESS) -> Anonymizer:
        """Load and check a bundle.

        Raises:
            InputError: It is not a bundle, or was changed; the file is named.
        """
        return cls(read_bundle(folder), loudness=loudness)

    def losses(self, samples: int) -> dict[str, Loss]:
        """Return what releasing an utterance of ``samples`` samples costs, before it is released."""
        return self.bundle.rule.losses(frame_count(samples))

    def vectors(self, samples: int) -> int:
        """Return how many content vectors an utterance of ``samples`` samples releases."""
        return self.bundle.rule.vectors(frame_count(samples))

    def anonymize_private(
        self,
        audio: Array,
        rng: np.random.Generator | None = None,
        *,
        f0: Array | None = None,
        name: str = "recording",
        source: Source | None = None,
        samples: int | None = None,
    ) -> Anonymized:
        """Anonymize private speech; its noise always comes from the operating system's CSPRNG.

        Args:
            audio: (n,) at 16 kHz, n >= 1, finite.
            rng: Chooses the target voice, which is independent of the utterance and not secret;
                by default one seeded from the operating system for this call alone.
            f0: (K,) F0 in Hz, 0 where unvoiced; tracked here unless given.
            name: What to call the utterance in an error.
            source: Input of the target rule, where the rule needs it (:meth:`source_of`).
            samples: Sample count of the output, where a system of words keeps the length of recordings; by
                default that of ``audio``.

        Raises:
            InputError: No samples, another shape, NaN or infinity; nothing was released.
        """
        chooser = np.random.default_rng(secrets.randbits(256)) if rng is None else rng
        return self._anonymize(SpeechInput(audio, f0, source, name, samples), chooser, SystemNoise())

    def source_of(self, audio: Array, sex: str = "", name: str = "recording") -> Source:
        """Return the input of the target rule: the sex, and the voice where the rule needs it."""
        return self.system.source_of(audio, sex, name)

    def anonymize_public(
        self,
        audio: Array,
        seed: int,
        utterance: str,
        *,
        f0: Array | None = None,
        speaker: str = "",
        source: Source | None = None,
    ) -> Anonymized:
        """Anonymize public speech with seeded noise, as an attacker would to train on it.

        Args:
            audio: (n,) at 16 kHz, n >= 1, finite.
            seed: The run's seed.
            utterance: Its id; keys target and noise.
            f0: (K,) F0 in Hz, 0 where unvoiced; tracked here unless given.
            speaker: Who speaks.
            source: Input of the target rule, where the rule needs it.
        """
        system = self.bundle.system
        noise = PublicNoise(seed, "anonymize", system, "public", utterance)
        chooser = self.target_stream(seed, utterance, speaker)
        return self._anonymize(SpeechInput(audio, f0, source, utterance), chooser, noise)

    def anonymize_windows(
        self,
        blocks: Iterable[Array],
        samples: int,
        losses: dict[str, Loss],
        name: str = "recording",
        *,
        rng: np.random.Generator | None = None,
        source: Callable[[Array], Source] | None = None,
    ) -> Iterator[Array]:
        """Anonymize a long private recording in windows; memory does not grow with it.

        One voice throughout. Windows read overlapping input; each content vector is released once, and pitch
        once per window (:class:`voxveil.privacy.loss_rule.LossRule`).

        Args:
            blocks: (n,) float32 each, at 16 kHz, finite.
            samples: Sample count of the whole.
            losses: Takes what was charged, by stream, when the last piece has been given.
            name: What to call the recording in an error.
            rng: Chooses the target voice; see :meth:`anonymize_private`.
            source: Maps the audio of the first window to the input of the target rule.

        Yields:
            (n,) speech, :attr:`loudness` not yet applied, ``samples`` in all.
        """
        chooser = np.random.default_rng(secrets.randbits(256)) if rng is None else rng
        audio = SlidingAudio(_finite(blocks, name))
        yield from self.system.anonymize_windows(audio, samples, chooser, losses, source or self.source_of)

    @property
    def loudness(self) -> float | None:
        """Loudness of every output in LUFS; None where speech is passed through."""
        return self._loudness if self.system.sets_loudness else None

    def target_stream(self, seed: int, utterance: str, speaker: str = "") -> np.random.Generator:
        """Return the generator that chooses an utterance's target in stages, or a speaker's by that rule."""
        if self.bundle.target.level == "speaker":
            return stream(seed, "anonymize", self.bundle.system, "target of speaker", speaker)
        return stream(seed, "anonymize", self.bundle.system, "target", utterance)

    def require_disjoint(self, speakers: Iterable[str]) -> None:
        """Raise an error if a speaker's voice is in the pool of targets.

        Such a speaker could be given their own voice as target.

        Raises:
            InputError: Naming the first.
        """
        both = sorted(set(speakers) & self.system.pool_speakers)
        if both:
            raise InputError(
                f"speaker {both[0]}: is in the pool of targets of {self.bundle.system} as well as to be"
                f" anonymized ({len(both)} in all); nothing was released"
            )

    def _anonymize(self, recording: SpeechInput, rng: np.random.Generator, noise: NoiseSource) -> Anonymized:
        audio, name = recording.audio, recording.name
        if audio.ndim != 1 or len(audio) == 0:
            raise InputError(f"{name}: audio must be (samples,) with at least 1, got shape {audio.shape}")
        if not np.isfinite(audio).all():
            raise InputError(f"{name}: refused, it holds samples that are NaN or infinite")
        checked = replace(recording, audio=np.ascontiguousarray(audio, dtype=np.float32))
        speech = self.system.anonymize(checked, rng, noise)
        level = self.loudness
        return speech if level is None else replace(speech, audio=to_loudness(speech.audio, level))


def _finite(blocks: Iterable[Array], name: str) -> Iterator[Array]:
    for block in blocks:
        if not np.isfinite(block).all():
            raise InputError(f"{name}: refused, it holds samples that are NaN or infinite")
        yield block
