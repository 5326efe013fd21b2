"""The pitch extractor: private F0 in, a Released sequence on the unit scale out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voxveil.config.model import PitchVariant
from voxveil.errors import InputError
from voxveil.pitch.scale import hz_to_unit, require_f0
from voxveil.privacy import Identity, LaplaceCube, NoiseSource, Released, pitch_mechanism
from voxveil.storage.atomic import read_json

if TYPE_CHECKING:
    from voxveil.pitch.model import PitchAutoencoder

__all__ = ["PitchExtractor", "describe"]

Array = NDArray[np.float32]


class PitchExtractor:
    """Releases the F0 of one utterance.

    The identity variant releases the unit-scaled F0 itself and needs no network. Otherwise the
    encoder's output goes through the mechanism, and decoder and affine map are post-processing
    of what was released.

    Args:
        mechanism: What makes a private value a released one.
        model: The trained autoencoder; ``None`` for the identity.
        slope: Public affine map from the decoder's output to the unit scale.
        offset: Its constant.
    """

    def __init__(
        self,
        mechanism: Identity | LaplaceCube,
        model: PitchAutoencoder | None = None,
        slope: float = 1.0,
        offset: float = 0.0,
    ) -> None:
        if isinstance(mechanism, LaplaceCube) != (model is not None):
            raise InputError(f"pitch extractor: mechanism {mechanism.name} does not go with this model")
        self.mechanism = mechanism
        self._model = model
        self._slope, self._offset = slope, offset

    @staticmethod
    def load(folder: Path, prefix: str = "") -> PitchExtractor:
        """Load what the train_pitch stage wrote.

        Args:
            folder: Holds ``<prefix>model.json`` and ``<prefix>model.safetensors``.
            prefix: Of the file names, e.g. ``pitch-`` in a bundle.

        Raises:
            InputError: A file is missing or not a pitch model of format 1.
        """
        path = Path(folder) / f"{prefix}model.json"
        content = read_json(path)
        if not isinstance(content, dict) or (content.get("format"), content.get("kind")) != (1, "pitch"):
            raise InputError(f"{path}: not a pitch model of format 1")
        try:
            mechanism = pitch_mechanism(PitchVariant(content["mechanism"], content["epsilon"]))
            if isinstance(mechanism, Identity):
                return PitchExtractor(mechanism)
            channels, slope, offset = content["channels"], content["slope"], content["offset"]
        except KeyError as error:
            raise InputError(f"{path}: {error.args[0]} is missing") from None
        from voxveil.pitch.model import PitchAutoencoder
        from voxveil.training.checkpoint import load_model

        weights = Path(folder) / f"{prefix}model.safetensors"
        if not weights.is_file():
            raise InputError(f"{weights}: no such file")
        model = PitchAutoencoder(channels)
        load_model(model, weights.read_bytes(), str(weights))
        return PitchExtractor(mechanism, model.eval(), slope, offset)

    @property
    def loss(self) -> dict[str, Any]:
        """The loss of one release as JSON; its sensitivity grows with the number of frames."""
        return describe(self.mechanism, self._model.channels if self._model is not None else 0)

    def release(self, f0_hz: NDArray[Any], noise: NoiseSource) -> Released[Array]:
        """Release one utterance's F0 sequence.

        Args:
            f0_hz: (K,) Hz, 0 where unvoiced, K >= 1.
            noise: Where the noise comes from: the system's CSPRNG for a private utterance.

        Returns:
            (K,) float32 on the unit scale, clipped to [0, 1], with its loss. The noise has
            scale C K / epsilon for this utterance's own K.
        """
        unit = hz_to_unit(require_f0(f0_hz))
        if self._model is None:
            released: Released[Array] = self.mechanism.release(unit, noise)
            return released
        from voxveil.pitch.model import encode_one

        return self.mechanism.release(encode_one(self._model, unit), noise).map(self._decode)

    def noise_only(self, frames: int, noise: NoiseSource) -> Array:
        """Return what the decoder makes of noise alone (h held at 1/2): the floor of any measurement.

        Args:
            frames: K.
            noise: Public noise.
        """
        if self._model is None:
            raise InputError("pitch extractor: the identity variant has no noise")
        return self._decode(self.mechanism.perturb(np.full((self._model.channels, frames), 0.5), noise))

    def _decode(self, noisy: NDArray[np.float64]) -> Array:
        from voxveil.pitch.model import decode_one

        if self._model is None:
            raise InputError("pitch extractor: the identity variant has no decoder")
        output = self._slope * decode_one(self._model, noisy) + self._offset
        unit: Array = np.clip(output, 0.0, 1.0).astype(np.float32)
        return unit


def describe(mechanism: Identity | LaplaceCube, channels: int) -> dict[str, Any]:
    """Return the loss of a pitch mechanism as JSON, its sensitivity as a formula in the frames K."""
    example = mechanism.loss_for((max(channels, 1), 1))
    sensitivity = f"{channels} K" if isinstance(mechanism, LaplaceCube) else None
    return {**example.to_json(), "sensitivity": sensitivity}
