"""The pitch extractor, private F0 in and a Released sequence on the unit scale out, with its pitch codecs.

A codec maps the unit-scaled F0 of one utterance (K,) to the array a mechanism wants, and a perturbed
array back. Its constants come from public speech; the way back is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.config.features import PitchVariant
from voxveil.features.pitch.scale import UNIT_MIN, hz_to_unit, require_f0
from voxveil.privacy import (
    Identity,
    LaplaceBall,
    LaplaceCube,
    NoiseSource,
    PitchMechanism,
    Released,
    pitch_mechanism,
)
from voxveil.runtime.atomic import read_description
from voxveil.runtime.errors import InputError

if TYPE_CHECKING:
    from voxveil.features.pitch.model import PitchAutoencoder

__all__ = ["AutoencoderCodec", "ContourCodec", "DirectCodec", "PitchCodec", "PitchExtractor", "describe"]

Array = NDArray[np.float64]


class PitchCodec(Protocol):
    """Encoder and decoder of the perturbed representation."""

    channels: int

    def encode(self, unit: NDArray[Any]) -> Array:
        """Encode F0 (K,) on the unit scale for the mechanism."""
        ...

    def decode(self, noisy: Array, frames: int) -> Array:
        """Return (K,) on the unit scale, not clipped, from the released values."""
        ...

    def neutral(self, frames: int) -> Array:
        """Return a constant input without information, for measuring noise alone."""
        ...


class AutoencoderCodec:
    """The trained encoder and decoder of the paper, and a public affine map onto the unit scale.

    Args:
        model: The autoencoder.
        slope: From the decoder's output to the unit scale.
        offset: Its constant.
    """

    def __init__(self, model: PitchAutoencoder, slope: float = 1.0, offset: float = 0.0) -> None:
        self.model, self.slope, self.offset = model, slope, offset
        self.channels = model.channels

    def encode(self, unit: NDArray[Any]) -> Array:
        """Return h in [0, 1]^(C x K)."""
        from voxveil.features.pitch.model import encode_one

        return encode_one(self.model, unit)

    def decode(self, noisy: Array, frames: int) -> Array:
        """Return (K,)."""
        from voxveil.features.pitch.model import decode_one

        return self.slope * decode_one(self.model, noisy) + self.offset

    def neutral(self, frames: int) -> Array:
        """Return the middle of the cube."""
        return np.full((self.channels, frames), 0.5)


class DirectCodec:
    """No code: the clipped F0 itself, one channel of [0, 1]; the baseline of the paper."""

    channels = 1

    def encode(self, unit: NDArray[Any]) -> Array:
        """Return (1, K)."""
        return np.asarray(unit, np.float64)[None]

    def decode(self, noisy: Array, frames: int) -> Array:
        """Return (K,)."""
        first: Array = noisy[0]
        return first

    def neutral(self, frames: int) -> Array:
        """Return the middle of the scale."""
        return np.full((1, frames), 0.5)


class ContourCodec:
    """A few low-order cosine coefficients of the log-F0 contour and of voicing.

    The contour runs through unvoiced frames by linear interpolation, is centred at a constant and lies in
    [-1, 1], voicing is 1 or -1; each is transformed by an orthonormal DCT-II and divided by sqrt(K), so that
    a coefficient does not grow with the length. What is left of each coefficient after noise of known
    scale is its best linear estimate from public means and variances.

    Args:
        contour: Coefficients of the contour.
        voicing: Coefficients of voicing.
        means: (contour + voicing,) public means.
        variances: The same of public variances.
        scale: Scale b of the Laplace noise that will be added; its variance is 2 b^2.
    """

    channels = 0
    #: Public constants: where the contour is centred, its half range, and the size of a coefficient.
    CENTRE, RANGE, GAIN = 0.6, 0.4, 0.5

    def __init__(
        self, contour: int, voicing: int, means: Sequence[float], variances: Sequence[float], scale: float
    ) -> None:
        self.contour, self.voicing = contour, voicing
        self.means, self.variances = np.asarray(means, np.float64), np.asarray(variances, np.float64)
        self._kept = self.variances / (self.variances + 2.0 * (scale / self.GAIN) ** 2)

    @staticmethod
    def coefficients(unit: NDArray[Any], contour: int, voicing: int) -> Array:
        """Return (contour + voicing,) of F0 (K,) on the unit scale; orders beyond K are 0."""
        voiced = np.asarray(unit) > 0
        frames = np.arange(len(unit))
        if voiced.any():
            run = np.interp(frames, frames[voiced], np.asarray(unit, np.float64)[voiced])
        else:
            run = np.full(len(unit), ContourCodec.CENTRE)
        parts = ((run - ContourCodec.CENTRE) / ContourCodec.RANGE, np.where(voiced, 1.0, -1.0))
        return np.concatenate(
            [_low_orders(part, count) for part, count in zip(parts, (contour, voicing), strict=True)]
        )

    def encode(self, unit: NDArray[Any]) -> Array:
        """Return the coefficients around their public means, times a constant."""
        return (self.coefficients(unit, self.contour, self.voicing) - self.means) * self.GAIN

    def decode(self, noisy: Array, frames: int) -> Array:
        """Return (K,): 0 where the released voicing is below 0."""
        found = self.means + noisy / self.GAIN * self._kept
        run = self.CENTRE + self.RANGE * _from_low_orders(found[: self.contour], frames)
        voiced = _from_low_orders(found[self.contour :], frames) > 0
        return np.where(voiced, np.clip(run, UNIT_MIN, 1.0), 0.0)

    def neutral(self, frames: int) -> Array:
        """Return no coefficient at all."""
        return np.zeros(self.contour + self.voicing)


def _low_orders(values: Array, count: int) -> Array:
    from scipy.fft import dct

    found = dct(values, norm="ortho")[:count] / np.sqrt(len(values))
    return np.asarray(np.pad(found, (0, count - len(found))))


def _from_low_orders(coefficients: Array, frames: int) -> Array:
    from scipy.fft import idct

    whole = np.zeros(frames)
    used = min(frames, len(coefficients))
    whole[:used] = coefficients[:used] * np.sqrt(frames)
    return np.asarray(idct(whole, norm="ortho"))


class PitchExtractor:
    """Releases the F0 of one utterance.

    The identity variant releases the unit-scaled F0 itself and needs no codec. Otherwise what the
    codec makes of it goes through the mechanism, and decoding is post-processing of what was released.

    Args:
        mechanism: What makes a private value a released one.
        codec: To and from what is perturbed; ``None`` for the identity.
    """

    def __init__(self, mechanism: PitchMechanism, codec: PitchCodec | None = None) -> None:
        fits = {
            Identity: codec is None,
            LaplaceCube: codec is not None and codec.channels > 0,
            LaplaceBall: codec is not None and codec.channels == 0,
        }
        if not fits[type(mechanism)]:
            raise InputError(f"pitch extractor: mechanism {mechanism.name} does not go with this model")
        self.mechanism = mechanism
        self._codec = codec

    @staticmethod
    def load(folder: Path, prefix: str = "") -> PitchExtractor:
        """Load the output of the stage train_pitch.

        Args:
            folder: Holds ``<prefix>model.json`` and ``<prefix>model.safetensors``.
            prefix: Of the file names, e.g. ``pitch-`` in a bundle.

        Raises:
            InputError: A file is missing or not a pitch model of format 1.
        """
        path = Path(folder) / f"{prefix}model.json"
        content = read_description(path, "pitch model", "pitch")
        try:
            mechanism = pitch_mechanism(PitchVariant(content["mechanism"], content["epsilon"]))
            if isinstance(mechanism, Identity):
                return PitchExtractor(mechanism)
            codec = _codec(Path(folder), prefix, content, mechanism)
        except KeyError as error:
            raise InputError(f"{path}: {error.args[0]} is missing") from None
        return PitchExtractor(mechanism, codec)

    @property
    def loss(self) -> dict[str, Any]:
        """The loss of one release as JSON; where its sensitivity grows with the frames K, a formula."""
        return describe(self.mechanism, self._codec.channels if self._codec is not None else 0)

    def release(self, f0_hz: NDArray[Any], noise: NoiseSource) -> Released[NDArray[np.float32]]:
        """Release one utterance's F0 sequence.

        Args:
            f0_hz: (K,) Hz, 0 where unvoiced, K >= 1.
            noise: Where the noise comes from: the system's CSPRNG for a private utterance.

        Returns:
            (K,) float32 on the unit scale, clipped to [0, 1], with its loss.
        """
        unit = hz_to_unit(require_f0(f0_hz))
        if self._codec is None:
            released: Released[NDArray[np.float32]] = self.mechanism.release(unit, noise)
            return released
        frames = len(unit)
        return self.mechanism.release(self._codec.encode(unit), noise).map(
            lambda noisy: self._decoded(noisy, frames)
        )

    def noise_only(self, frames: int, noise: NoiseSource) -> NDArray[np.float32]:
        """Decode noise alone, the floor of any measurement.

        Args:
            frames: K.
            noise: Public noise.
        """
        if self._codec is None:
            raise InputError("pitch extractor: the identity variant has no noise")
        return self._decoded(self.mechanism.perturb(self._codec.neutral(frames), noise), frames)

    def _decoded(self, noisy: Array, frames: int) -> NDArray[np.float32]:
        if self._codec is None:
            raise InputError("pitch extractor: the identity variant has no decoder")
        unit: NDArray[np.float32] = np.clip(self._codec.decode(noisy, frames), 0.0, 1.0).astype(np.float32)
        return unit


def _codec(folder: Path, prefix: str, content: dict[str, Any], mechanism: PitchMechanism) -> PitchCodec:
    if content["mechanism"] == "naive":
        return DirectCodec()
    if isinstance(mechanism, LaplaceBall):
        means, variances = content["means"], content["variances"]
        return ContourCodec(content["contour"], content["voicing"], means, variances, mechanism.scale())
    from voxveil.features.pitch.model import PitchAutoencoder
    from voxveil.training.checkpoint import load_weights

    model = PitchAutoencoder(content["channels"])
    load_weights(model, folder / f"{prefix}model.safetensors")
    return AutoencoderCodec(model.eval(), content["slope"], content["offset"])


def describe(mechanism: PitchMechanism, channels: int) -> dict[str, Any]:
    """Return the loss of a pitch mechanism as JSON, a cube's sensitivity as a formula in the frames K."""
    found = mechanism.loss_for((max(channels, 1), 1)).to_json()
    return {**found, "sensitivity": f"{channels} K"} if isinstance(mechanism, LaplaceCube) else found
