"""What releasing an utterance costs: epsilon1 + K epsilon2 for K released content vectors.

With Gaussian content it is a rho, epsilon1^2 / 2 + K rho2, and no epsilon.
A long recording is released in windows: every content vector once, pitch once per window, so epsilon1
is charged for each of them.
A system of recognized words releases other streams, each once per utterance, whatever its length.

Losses do not depend on the data, so they are known, and announced, before any noise is drawn.
This module imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from voxveil.config.features import PitchVariant
from voxveil.privacy import (
    ContentMechanism,
    Identity,
    LaplaceCube,
    Loss,
    PitchMechanism,
    compose,
    described_content,
    pitch_mechanism,
    utterance_loss,
)
from voxveil.privacy.invariants import GIVEN_WORDS, words_of
from voxveil.privacy.loss import SEEDED_NOTE, add_up
from voxveil.runtime.atomic import read_json
from voxveil.runtime.errors import InputError, PrivacyError

__all__ = ["LossRule", "StreamMechanism", "utterance_total"]

#: Streams of a system with extractors, in the order in which totals name their mechanisms.
_EXTRACTED = ("pitch", "content", "target")


class StreamMechanism(Protocol):
    """What releases a stream once per utterance, at a loss that depends on neither its value nor its size."""

    def loss_for(self, shape: tuple[int, ...], *, secret: bool = True) -> Loss:
        """Return the loss per utterance."""
        ...


@dataclass(frozen=True)
class LossRule:
    """What releasing an utterance costs, as a function of its frame count alone.

    Attributes:
        pitch: Mechanism of the pitch stream.
        content: Mechanism of the content stream.
        channels: Channels C of the pitch noise layer; 0 for the identity.
        every: Frames per released content vector.
        window: Frames of a window at most; 0 = every recording is one window.
        target: What the choice of the target voice tells of the source; empty = nothing.
        streams: Where not empty, what is released in place of pitch and content: mechanisms by stream, such
            as ``words``, each once per utterance.
    """

    pitch: PitchMechanism
    content: ContentMechanism
    channels: int = 0
    every: int = 1
    window: int = 0
    target: str = ""
    streams: Mapping[str, StreamMechanism] = field(default_factory=dict)

    @staticmethod
    def nothing_promised() -> LossRule:
        """Return the rule of the original system: both streams pass through, epsilon is infinite."""
        return LossRule(Identity("utterance"), Identity("vector"))

    @staticmethod
    def of_streams(streams: Mapping[str, StreamMechanism]) -> LossRule:
        """Return the rule of a system that releases streams of its own, each once per utterance.

        Args:
            streams: Mechanism by stream, at least one, e.g.
                ``{"words": RecognizedWords(digest), "contour": LaplaceBall(1.0, invariants=frozenset())}``.

        Raises:
            PrivacyError: No stream, or one of a name with a meaning of its own.
        """
        if not streams or set(streams) & set(_EXTRACTED):
            raise PrivacyError(
                f"streams must be at least one, and none of {', '.join(_EXTRACTED)}, got {sorted(streams)}"
            )
        return replace(LossRule.nothing_promised(), streams=dict(streams))

    @staticmethod
    def read(pitch: Path, content: Path) -> LossRule:
        """Read the rule from the ``model.json`` of a pitch and of a content model.

        Raises:
            InputError: A file is missing or does not name its mechanism.
        """
        pitch_json, content_json = _description(pitch), _description(content)
        first = pitch_mechanism(PitchVariant(pitch_json["mechanism"], pitch_json["epsilon"]))
        second = described_content(content_json)
        channels = pitch_json.get("channels", 0) if isinstance(first, LaplaceCube) else 0
        if isinstance(first, LaplaceCube) and (not isinstance(channels, int) or channels < 1):
            raise InputError(f"{Path(pitch) / 'model.json'}: channels must be at least 1, got {channels!r}")
        every = content_json.get("every", 1)
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InputError(f"{Path(content) / 'model.json'}: every must be at least 1, got {every!r}")
        return LossRule(first, second, channels, every)

    @property
    def formula(self) -> str:
        """The loss of an utterance in words."""
        if self.streams:
            losses = self.losses(1).values()
            given = words_of(invariant for loss in losses for invariant in loss.invariants)
            total = " + ".join(f"epsilon({name})" for name in self.streams)
            return f"epsilon = {total}{f', {GIVEN_WORDS}' if given else ''}"
        if self.losses(1)["content"].measure == "zcdp":
            return "zCDP rho = epsilon(pitch)^2 / 2 + K rho(content), no pure epsilon"
        return "epsilon = epsilon(pitch) + K epsilon(content)"

    def vectors(self, frames: int) -> int:
        """Return how many content vectors an utterance of ``frames`` frames releases."""
        return 1 if self.streams else -(-frames // self.every)

    def spans(self, frames: int) -> list[tuple[int, int]]:
        """Return first and last frame (exclusive) of each window: about equal, vectors never cut."""
        count = -(-frames // self.window) if self.window and not self.streams else 1
        bounds = [index * frames // count // self.every * self.every for index in range(count)]
        return list(zip(bounds, [*bounds[1:], frames], strict=True))

    def window_loss(self, frames: int, *, secret: bool = True) -> Loss:
        """Return the loss of releasing the pitch of one window of ``frames`` frames."""
        return self.pitch.loss_for((self.channels, frames), secret=secret)

    def all_windows(self, parts: Sequence[Loss]) -> Loss:
        """Return what the pitch of a recording costs, of the loss of each of its windows."""
        first = parts[0]
        if len(parts) == 1 or first.unbounded:
            return first
        windows = f"{len(parts)} windows of at most {self.window} frames, epsilon {first.epsilon:g} each"
        return replace(
            first,
            epsilon=add_up(part.epsilon for part in parts),
            sensitivity=max(part.sensitivity or 0.0 for part in parts),
            invariants=frozenset().union(*(part.invariants for part in parts)),
            note=first.note if first.note == SEEDED_NOTE else "; ".join(filter(None, (first.note, windows))),
        )

    def losses(self, frames: int, *, secret: bool = True) -> dict[str, Loss]:
        """Return the loss of each stream, ``pitch`` per utterance and ``content`` per vector.

        A rule of :attr:`streams` returns those instead, each per utterance.

        Args:
            frames: Frame count K of the utterance, at least 1.
            secret: The noise comes from the operating system (private speech).
        """
        if frames < 1:
            raise PrivacyError(f"an utterance has at least one frame, got {frames}")
        if self.streams:
            own = {name: found.loss_for((), secret=secret) for name, found in self.streams.items()}
            return {**own, **self.target_loss()}
        return {
            "pitch": self.all_windows(
                [self.window_loss(stop - start, secret=secret) for start, stop in self.spans(frames)]
            ),
            "content": self.content.loss_for((self.vectors(frames), 1), secret=secret),
            **self.target_loss(),
        }

    def target_loss(self) -> dict[str, Loss]:
        """Return the infinite loss of stream ``target`` where the voice depends on the source."""
        if not self.target:
            return {}
        return {"target": replace(Identity("utterance").loss_for(()), note=f"the target tells {self.target}")}

    def to_json(self) -> dict[str, Any]:
        """Return both losses as JSON; the pitch sensitivity is a formula in the frame count K."""
        losses = {name: loss.to_json() for name, loss in self.losses(1).items()}
        if self.streams:
            return losses
        if self.channels:
            losses["pitch"]["sensitivity"] = f"{self.channels} K"
        if self.every > 1:
            losses["content"]["frames_per_vector"] = self.every
        return losses


def utterance_total(losses: Mapping[str, Loss], vectors: int) -> Loss:
    """Return the loss of a whole utterance of ``vectors`` content vectors, streams composed by type."""
    known = [name for name in _EXTRACTED if name in losses]
    streams = (*known, *sorted(set(losses) - set(known)))
    return compose(*(utterance_loss(losses[name], vectors) for name in streams))


def _description(folder: Path) -> dict[str, Any]:
    path = Path(folder) / "model.json"
    content = read_json(path)
    for name in ("mechanism", "epsilon"):
        if not isinstance(content, dict) or name not in content:
            raise InputError(f"{path}: {name} is missing; is this an extractor?")
    return dict(content)
