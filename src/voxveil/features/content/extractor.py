"""The content extractor: private audio to released bottleneck vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from voxveil.audio.frames import HOP
from voxveil.audio.mel import WINDOW, log_mel
from voxveil.features.content.model import ContentModel, ContentSize
from voxveil.privacy import ContentMechanism, NoiseSource, Released, described_content, norm1
from voxveil.runtime.atomic import read_description
from voxveil.runtime.errors import InputError
from voxveil.training.checkpoint import load_weights
from voxveil.training.loop import device

__all__ = ["SHARPNESS", "ContentExtractor", "pooled", "spread"]

Array = NDArray[np.float32]

#: Factor on the scores before their softmax: near one-hot vectors carry the most through Laplace noise.
SHARPNESS = 3.0


class ContentExtractor:
    """Releases the content of an utterance, a bottleneck vector every 10 ms.

    Every released vector has L1 norm 1, that of the identity variant too, so the variants are
    comparable.

    Args:
        mechanism: What makes a private value a released one.
        model: The trained acoustic model.
        phones: The phones, in order.
        class_phones: Index of the phone that each class of the model belongs to.
        every: Frames per released vector; each of them then gets that vector.
        sharp: What the mechanism sees are shares of the phones (a softmax), not signed entries.
    """

    def __init__(
        self,
        mechanism: ContentMechanism,
        model: ContentModel,
        phones: tuple[str, ...],
        class_phones: Sequence[int],
        every: int = 1,
        sharp: bool = False,
    ) -> None:
        classes = np.asarray(class_phones)
        if classes.shape != (model.size.classes,) or not set(classes.tolist()) <= set(range(len(phones))):
            raise InputError(
                f"content extractor: phones of {classes.shape} classes for a model of {model.size.classes}"
            )
        self.mechanism = mechanism
        self.phones = phones
        self.every = every
        self.sharp = sharp
        self._sums = np.zeros((len(classes), len(phones)), np.float32)
        self._sums[np.arange(len(classes)), classes] = 1.0
        self._model = model
        self._device = next(model.parameters()).device

    @staticmethod
    def load(folder: Path, prefix: str = "") -> ContentExtractor:
        """Load the output of the stage train_content, onto the GPU if available.

        Args:
            folder: Holds ``<prefix>model.json`` and ``<prefix>model.safetensors``.
            prefix: Of the file names, e.g. ``content-`` in a bundle.

        Raises:
            InputError: A file is missing or not a content model of format 1.
        """
        path = Path(folder) / f"{prefix}model.json"
        content = read_description(path, "content model", "content")
        try:
            mechanism = described_content(content)
            size = ContentSize.from_json(content["size"], str(path))
            phones, class_phones = tuple(content["phones"]), content["class_phones"]
            every, sharp = int(content["every"]), content["mechanism"] == "sharp_laplace"
        except KeyError as error:
            raise InputError(f"{path}: {error.args[0]} is missing") from None
        model = ContentModel(size)
        load_weights(model, Path(folder) / f"{prefix}model.safetensors")
        return ContentExtractor(mechanism, model.to(device()).eval(), phones, class_phones, every, sharp)

    @property
    def size(self) -> int:
        """M, the size of a released vector."""
        return self._model.size.bottleneck

    @property
    def loss(self) -> dict[str, Any]:
        """The loss of one released vector as JSON."""
        return self.mechanism.loss_for((1, self.size)).to_json()

    @property
    def context(self) -> int:
        """Frames each side beyond which nothing reaches a vector: network and analysis window."""
        return self._model.reach + WINDOW // (2 * HOP) + 1

    def release(self, audio: NDArray[Any], noise: NoiseSource, span: slice = slice(None)) -> Released[Array]:
        """Release the content of one utterance, or of one window of a long one.

        Args:
            audio: (n,) in [-1, 1], 16 kHz.
            noise: Where the noise comes from: the system's CSPRNG for a private utterance.
            span: Frames that are released, of K; the others are context only. It starts at the first
                frame of a vector.

        Returns:
            (K, M) float32, K = n // 160 + 1 or the frames of the span, each row of L1 norm 1, with its loss
            per vector. Of K frames ceil(K / every) vectors are released; each stands for ``every`` frames.
        """
        # The mechanism sees the vectors as they are, so that it can refuse NaN; norm1 is idempotent.
        private = self._bottleneck(audio)[span]
        frames = len(private)
        released = self.mechanism.release(self._vectors(private), noise)
        return released.map(lambda value: norm1(spread(value, self.every)[:frames]).astype(np.float32))

    def before_noise(self, audio: NDArray[Any]) -> NDArray[np.float64]:
        """Return the (ceil(K / every), M) vectors that a release would perturb.

        For public speech only, so that a synthesizer can be trained through fresh noise at every
        step: nothing here is released or accounted for, and a synthesizer does not accept it.
        """
        # Codes are the largest of signed scores, which norm1 keeps.
        return norm1(self._vectors(self._bottleneck(audio)))

    def _vectors(self, bottleneck: NDArray[np.float64]) -> NDArray[np.float64]:
        vectors = pooled(bottleneck, self.every)
        if not self.sharp:
            return vectors
        shares = np.exp(SHARPNESS * (vectors - vectors.max(axis=1, keepdims=True)))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))

    def log_posteriors(self, content: NDArray[Any]) -> Array:
        """Return phone log-posteriors (natural logarithm) of released vectors.

        The posterior of a phone is the sum over its classes.

        Args:
            content: (K, M) as released.

        Returns:
            (K, P) float32; columns as :attr:`phones`.
        """
        value = np.asarray(content)
        if value.ndim != 2 or value.shape[1] != self.size or not len(value):
            raise InputError(f"content must have shape (K, {self.size}) with K >= 1, got {value.shape}")
        with torch.no_grad():
            frames = torch.from_numpy(value).to(self._device, torch.float32)[None]
            result = self._model.classify(frames, torch.ones(1, len(value), device=self._device))[0]
        posteriors: Array = np.log(np.exp(result.cpu().numpy()) @ self._sums + np.float32(1e-30))
        return posteriors

    def _bottleneck(self, audio: NDArray[Any]) -> NDArray[np.float64]:
        value = np.asarray(audio)
        if value.ndim != 1 or not value.size:
            raise InputError(f"audio must be one channel of at least one sample, got shape {value.shape}")
        if not np.isfinite(value).all():
            raise InputError("audio has NaN or infinite samples; nothing was released")
        with torch.no_grad():
            mel = log_mel(torch.from_numpy(value).to(self._device, torch.float32)[None])
            encoded = self._model.encode(mel, torch.ones(mel.shape[:2], device=self._device))[0]
        vectors: NDArray[np.float64] = encoded.cpu().double().numpy()
        return vectors


def pooled(vectors: NDArray[np.float64], every: int) -> NDArray[np.float64]:
    """Return the mean of each group of ``every`` rows of (K, M); the last group may be smaller."""
    if every == 1:
        return vectors
    starts = np.arange(0, len(vectors), every)
    counts = np.diff([*starts, len(vectors)])
    return np.asarray(np.add.reduceat(vectors, starts, axis=0) / counts[:, None])


def spread(vectors: NDArray[Any], every: int) -> NDArray[Any]:
    """Repeat each row ``every`` times: the inverse of :func:`pooled`, up to ``every - 1`` rows longer."""
    return vectors if every == 1 else np.repeat(vectors, every, axis=0)
