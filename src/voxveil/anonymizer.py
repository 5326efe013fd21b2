"""One utterance in, anonymized speech out.

Two doors. :meth:`Anonymizer.anonymize_private` draws its noise from the operating system and
takes no seed for it; :meth:`Anonymizer.anonymize_public` serves the attacker's training set of
public speech with seeded noise of its own, which protects nobody.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import frame_count
from voxveil.audio.loudness import to_loudness
from voxveil.bundle import Bundle, read_bundle
from voxveil.errors import InputError
from voxveil.loss_rule import utterance_total
from voxveil.privacy import Loss, NoiseSource, PublicNoise, SystemNoise
from voxveil.seeding import stream
from voxveil.speaker.pool import Pool
from voxveil.speaker.targets import select_target
from voxveil.systems import System

if TYPE_CHECKING:
    from voxveil.synthesis.synthesizer import Synthesizer

__all__ = ["LOUDNESS", "Anonymized", "Anonymizer"]

Array = NDArray[np.float32]

#: Loudness of every output in LUFS unless told.
LOUDNESS = -23.0


@dataclass(frozen=True)
class Anonymized:
    """Anonymized speech and what it cost.

    Attributes:
        audio: (n,) float32, as many samples as the input; may pass full scale
            (:func:`voxveil.audio.io.encode_flac` clips and counts).
        losses: Loss of each stream.
        vectors: Number of released content vectors K.
    """

    audio: Array
    losses: Mapping[str, Loss]
    vectors: int

    @property
    def utterance(self) -> Loss:
        """The loss of the whole utterance."""
        return utterance_total(self.losses, self.vectors)


class Anonymizer:
    """A loaded bundle; several threads may use one.

    Args:
        bundle: Its checked description.
        loudness: Loudness of every output in LUFS, whatever the input's.
    """

    def __init__(self, bundle: Bundle, *, loudness: float = LOUDNESS) -> None:
        self.bundle = bundle
        self._loudness = loudness
        self._system: System | None = None
        self._synthesizer: Synthesizer | None = None
        self._pool: Pool | None = None
        if not bundle.original:
            from voxveil.synthesis.synthesizer import Synthesizer

            self._system = System.load(bundle.part("pitch"), bundle.part("content"))
            self._pool = Pool.load(bundle.folder / "pool.npz")
            self._synthesizer = Synthesizer.load(
                bundle.part("synthesis"), bundle.part("vocoder"), pitch_conversion=bundle.pitch_conversion
            )

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
    ) -> Anonymized:
        """Anonymize private speech; its noise always comes from the operating system's CSPRNG.

        Args:
            audio: (n,) at 16 kHz, n >= 1, finite.
            rng: Chooses the target voice, which is independent of the utterance and not secret;
                by default one seeded from the operating system for this call alone.
            f0: (K,) F0 in Hz, 0 where unvoiced; tracked here unless given.
            name: What to call the utterance in an error.

        Raises:
            InputError: No samples, another shape, NaN or infinity; nothing was released.
        """
        chooser = np.random.default_rng(secrets.randbits(256)) if rng is None else rng
        return self._anonymize(audio, chooser, SystemNoise(), f0, name)

    def anonymize_public(
        self, audio: Array, seed: int, utterance: str, *, f0: Array | None = None
    ) -> Anonymized:
        """Anonymize public speech with seeded noise, as an attacker would to train on it.

        Args:
            audio: (n,) at 16 kHz, n >= 1, finite.
            seed: The run's seed.
            utterance: Its id; keys target and noise.
            f0: (K,) F0 in Hz, 0 where unvoiced; tracked here unless given.
        """
        system = self.bundle.system
        noise = PublicNoise(seed, "anonymize", system, "public", utterance)
        return self._anonymize(audio, self.target_stream(seed, utterance), noise, f0, utterance)

    def target_stream(self, seed: int, utterance: str) -> np.random.Generator:
        """Return the generator that chooses an utterance's target in stages."""
        return stream(seed, "anonymize", self.bundle.system, "target", utterance)

    def _anonymize(
        self, audio: Array, rng: np.random.Generator, noise: NoiseSource, f0: Array | None, name: str
    ) -> Anonymized:
        if audio.ndim != 1 or len(audio) == 0:
            raise InputError(f"{name}: audio must be (samples,) with at least 1, got shape {audio.shape}")
        if not np.isfinite(audio).all():
            raise InputError(f"{name}: refused, it holds samples that are NaN or infinite")
        audio = np.ascontiguousarray(audio, dtype=np.float32)
        if self._system is None or self._synthesizer is None or self._pool is None:
            return Anonymized(audio, self.losses(len(audio)), self.vectors(len(audio)))
        if f0 is None:
            from voxveil.pitch.yaapt import track_f0

            f0 = track_f0(audio)
        target = select_target(self._pool, rng, self.bundle.target_members)
        features = self._system.release_features(audio, f0, noise)
        spoken = self._synthesizer.synthesize(features.content, features.pitch, target, len(audio))
        return Anonymized(to_loudness(spoken, self._loudness), features.losses, features.vectors)
