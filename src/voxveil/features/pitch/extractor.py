"""The pitch extractor: private F0 in, a Released sequence on the unit scale out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voxveil.config.features import PitchVariant
from voxveil.features.pitch.codecs import AutoencoderCodec, ContourCodec, DirectCodec, PitchCodec
from voxveil.features.pitch.scale import hz_to_unit, require_f0
from voxveil.privacy import (
    Identity,
    LaplaceBall,
    LaplaceCube,
    NoiseSource,
    PitchMechanism,
    Released,
    pitch_mechanism,
)
from voxveil.runtime.errors import InputError

__all__ = ["PitchExtractor", "describe"]

Array = NDArray[np.float32]


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
        from voxveil.training.checkpoint import read_description

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

    def release(self, f0_hz: NDArray[Any], noise: NoiseSource) -> Released[Array]:
        """Release one utterance's F0 sequence.

        Args:
            f0_hz: (K,) Hz, 0 where unvoiced, K >= 1.
            noise: Where the noise comes from: the system's CSPRNG for a private utterance.

        Returns:
            (K,) float32 on the unit scale, clipped to [0, 1], with its loss.
        """
        unit = hz_to_unit(require_f0(f0_hz))
        if self._codec is None:
            released: Released[Array] = self.mechanism.release(unit, noise)
            return released
        frames = len(unit)
        return self.mechanism.release(self._codec.encode(unit), noise).map(
            lambda noisy: self._decoded(noisy, frames)
        )

    def noise_only(self, frames: int, noise: NoiseSource) -> Array:
        """Decode noise alone, the floor of any measurement.

        Args:
            frames: K.
            noise: Public noise.
        """
        if self._codec is None:
            raise InputError("pitch extractor: the identity variant has no noise")
        return self._decoded(self.mechanism.perturb(self._codec.neutral(frames), noise), frames)

    def _decoded(self, noisy: NDArray[np.float64], frames: int) -> Array:
        if self._codec is None:
            raise InputError("pitch extractor: the identity variant has no decoder")
        unit: Array = np.clip(self._codec.decode(noisy, frames), 0.0, 1.0).astype(np.float32)
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
