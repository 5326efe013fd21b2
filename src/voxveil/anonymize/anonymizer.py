"""One utterance in, anonymized speech out.

Two doors. :meth:`Anonymizer.anonymize_private` draws its noise from the operating system and
takes no seed for it; :meth:`Anonymizer.anonymize_public` serves the attacker's training set of
public speech with seeded noise of its own, which protects nobody.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxveil.anonymize.bundle import Bundle, read_bundle
from voxveil.audio.frames import frame_count
from voxveil.audio.loudness import to_loudness
from voxveil.features.extraction import System
from voxveil.features.speaker.pool import Pool
from voxveil.features.speaker.targets import Source, Target, select_target
from voxveil.privacy import Loss, NoiseSource, PublicNoise, SystemNoise
from voxveil.privacy.loss_rule import utterance_total
from voxveil.runtime.errors import InputError
from voxveil.runtime.seeding import stream

if TYPE_CHECKING:
    from voxveil.features.speaker.encoder import SpeakerEncoder
    from voxveil.synthesis.copying import CopySynthesis
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
            (:func:`voxveil.audio.files.encode_flac` clips and counts).
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
        self._voice: SpeakerEncoder | None = None
        self._copy: CopySynthesis | None = None
        if bundle.copied:
            from voxveil.synthesis.copying import CopySynthesis

            self._copy = CopySynthesis.load(bundle.part("vocoder"))
        if bundle.trained:
            from voxveil.synthesis.synthesizer import Synthesizer

            self._system = System.load(bundle.part("pitch"), bundle.part("content"))
            self._pool = Pool.load(bundle.folder / "pool.npz")
            if bundle.target.choice == "farthest":
                from voxveil.features.speaker.encoder import SpeakerEncoder

                self._voice = SpeakerEncoder.load(bundle.part("speaker"))
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
        source: Source | None = None,
    ) -> Anonymized:
        """Anonymize private speech; its noise always comes from the operating system's CSPRNG.

        Args:
            audio: (n,) at 16 kHz, n >= 1, finite.
            rng: Chooses the target voice, which is independent of the utterance and not secret;
                by default one seeded from the operating system for this call alone.
            f0: (K,) F0 in Hz, 0 where unvoiced; tracked here unless given.
            name: What to call the utterance in an error.
            source: What the rule of the target looks at, where it does (:meth:`source_of`).

        Raises:
            InputError: No samples, another shape, NaN or infinity; nothing was released.
        """
        chooser = np.random.default_rng(secrets.randbits(256)) if rng is None else rng
        return self._anonymize(audio, chooser, SystemNoise(), f0, name, source)

    def source_of(self, audio: Array, sex: str = "", name: str = "recording") -> Source:
        """Return what the rule of the target looks at: the sex, and the voice where it asks for it."""
        voice = None if self._voice is None else self._voice.embed(audio, name)
        return Source(sex, voice)

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
            source: What the rule of the target looks at, where it does.
        """
        system = self.bundle.system
        noise = PublicNoise(seed, "anonymize", system, "public", utterance)
        chooser = self.target_stream(seed, utterance, speaker)
        return self._anonymize(audio, chooser, noise, f0, utterance, source)

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
            source: Tells, of the first window's audio, what the rule of the target looks at.

        Yields:
            (n,) speech, :attr:`loudness` not yet applied, ``samples`` in all.
        """
        from voxveil.anonymize.windows import speak_windows

        chooser = np.random.default_rng(secrets.randbits(256)) if rng is None else rng
        yield from speak_windows(self, blocks, samples, chooser, losses, name, source or self.source_of)

    @property
    def loudness(self) -> float | None:
        """Loudness of every output in LUFS; None where speech is passed through."""
        return None if self.bundle.original else self._loudness

    def parts(self) -> tuple[System, Synthesizer] | None:
        """Return the loaded models; None for a system without."""
        if self._system is None or self._synthesizer is None:
            return None
        return self._system, self._synthesizer

    def processing(self, rng: np.random.Generator) -> Callable[[Array, Array | None], Array]:
        """Return what a system without extractors makes of (n,) audio and its (K,) F0, which may be absent.

        Args:
            rng: Draws what the processing of one recording needs.
        """
        if self.bundle.original:
            return lambda audio, f0: audio
        if self._copy is not None:
            from voxveil.features.pitch.yaapt import track_f0

            copy = self._copy
            return lambda audio, f0: copy(audio, track_f0(audio) if f0 is None else f0)
        from voxveil.audio.mcadams import mcadams

        coefficient = rng.uniform(*self.bundle.coefficients)
        return lambda audio, f0: mcadams(audio, coefficient)

    def target_stream(self, seed: int, utterance: str, speaker: str = "") -> np.random.Generator:
        """Return the generator that chooses an utterance's target in stages, or a speaker's by that rule."""
        if self.bundle.target.level == "speaker":
            return stream(seed, "anonymize", self.bundle.system, "target of speaker", speaker)
        return stream(seed, "anonymize", self.bundle.system, "target", utterance)

    def require_disjoint(self, speakers: Iterable[str]) -> None:
        """Refuse speakers who are voices of the pool: one could be anonymized into the own voice.

        Raises:
            InputError: Naming the first.
        """
        if self._pool is None:
            return
        both = sorted(set(speakers) & set(self._pool.speakers.tolist()))
        if both:
            raise InputError(
                f"speaker {both[0]}: is in the pool of targets of {self.bundle.system} as well as to be"
                f" anonymized ({len(both)} in all); nothing was released"
            )

    def target(self, rng: np.random.Generator, source: Source | None) -> Target:
        """Draw a target voice by the bundle's rule."""
        if self._pool is None:
            raise InputError(f"{self.bundle.system}: a system without models has no targets")
        members, rule = self.bundle.target_members, self.bundle.target
        return select_target(self._pool, rng, members, rule, source or Source())

    def _anonymize(
        self,
        audio: Array,
        rng: np.random.Generator,
        noise: NoiseSource,
        f0: Array | None,
        name: str,
        source: Source | None,
    ) -> Anonymized:
        if audio.ndim != 1 or len(audio) == 0:
            raise InputError(f"{name}: audio must be (samples,) with at least 1, got shape {audio.shape}")
        if not np.isfinite(audio).all():
            raise InputError(f"{name}: refused, it holds samples that are NaN or infinite")
        audio = np.ascontiguousarray(audio, dtype=np.float32)
        if self._system is None or self._synthesizer is None or self._pool is None:
            changed = self.processing(rng)(audio, f0)
            if not self.bundle.original:
                changed = to_loudness(changed, self._loudness)
            return Anonymized(changed, self.losses(len(audio)), self.vectors(len(audio)))
        if f0 is None:
            from voxveil.features.pitch.yaapt import track_f0

            f0 = track_f0(audio)
        if source is None:
            source = self.source_of(audio, name=name)
        target = self.target(rng, source)
        features = self._system.release_features(audio, f0, noise)
        spoken = self._synthesizer.synthesize(features.content, features.pitch, target, len(audio))
        losses = {**features.losses, **self.bundle.rule.target_loss()}
        return Anonymized(to_loudness(spoken, self._loudness), losses, features.vectors)
