"""Pitch codecs: encoding of F0 to the perturbed representation, and decoding back to F0.

A codec maps the unit-scaled F0 of one utterance (K,) to the array a mechanism wants, and a perturbed
array back. Its constants come from public speech; the way back is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from voxveil.features.pitch.scale import UNIT_MIN

if TYPE_CHECKING:
    from voxveil.features.pitch.model import PitchAutoencoder

__all__ = ["AutoencoderCodec", "ContourCodec", "DirectCodec", "PitchCodec"]

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
