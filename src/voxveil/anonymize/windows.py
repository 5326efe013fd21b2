"""A long recording anonymized window by window."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxveil.audio.frames import HOP, frame_count
from voxveil.audio.streamed import SlidingAudio
from voxveil.privacy import Loss, SystemNoise
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.anonymize.anonymizer import Anonymizer
    from voxveil.features.speaker.targets import Source

__all__ = ["speak_windows"]

Array = NDArray[np.float32]

#: Frames each side that F0 tracking sees beside a window (its energy is relative to their mean too).
_PITCH_CONTEXT = 100
#: Frames each side that the McAdams transformation sees: two of its windows.
_SIGNAL_CONTEXT = 4


def speak_windows(
    anonymizer: Anonymizer,
    blocks: Iterable[Array],
    samples: int,
    rng: np.random.Generator,
    losses: dict[str, Loss],
    name: str,
    source: Callable[[Array], Source],
) -> Iterator[Array]:
    """Yield the pieces of :meth:`voxveil.anonymize.anonymizer.Anonymizer.anonymize_windows`."""
    bundle, frames = anonymizer.bundle, frame_count(samples)
    spans = bundle.rule.spans(frames)
    audio = SlidingAudio(_checked(blocks, name))
    models = anonymizer.parts()
    if models is None:
        losses.update(bundle.rule.losses(frames))
        yield from _processed(audio, spans, samples, anonymizer.processing(rng))
        return
    from voxveil.features.pitch.yaapt import track_f0
    from voxveil.synthesis.windows import WindowedSpeech

    system, synthesizer = models
    # Frames of a vector may not be cut at the start of what is read.
    context = max(_PITCH_CONTEXT, system.content.context)
    context += -context % bundle.rule.every
    speech: WindowedSpeech | None = None
    noise = SystemNoise()
    charged: list[Loss] = []
    for start, stop in spans:
        first, last = max(0, start - context), min(frames, stop + context)
        end = samples if last == frames else HOP * (last - 1)
        heard = audio.take(HOP * first, end)
        content, pitch = system.release_window(
            heard, track_f0(heard), slice(start - first, stop - first), noise
        )
        charged.append(pitch.loss)
        losses["content"] = content.loss
        if speech is None:
            # One voice for the recording; a rule that looks at the source's hears its first window.
            target = anonymizer.target(rng, source(heard))
            speech = WindowedSpeech(synthesizer, target, samples)
        yield speech.push(content, pitch)
    losses["pitch"] = bundle.rule.all_windows(charged)
    losses.update(bundle.rule.target_loss())
    if speech is not None:
        yield speech.finish()


def _checked(blocks: Iterable[Array], name: str) -> Iterator[Array]:
    for block in blocks:
        if not np.isfinite(block).all():
            raise InputError(f"{name}: refused, it holds samples that are NaN or infinite")
        yield block


def _processed(
    audio: SlidingAudio,
    spans: list[tuple[int, int]],
    samples: int,
    transform: Callable[[Array, Array | None], Array],
) -> Iterator[Array]:
    for start, stop in spans:
        first = HOP * max(0, start - _SIGNAL_CONTEXT)
        end = min(samples, HOP * stop) if (start, stop) != spans[-1] else samples
        heard = audio.take(first, min(samples, end + HOP * _SIGNAL_CONTEXT))
        yield transform(heard, None)[HOP * start - first : end - first]
