"""Parameters of the two extractors whose features are released: mechanisms, epsilons, sizes."""

from __future__ import annotations

from dataclasses import dataclass

from voxveil.config.fields import gpus, knob

__all__ = ["CONTENT_MECHANISMS", "ContentVariant", "PitchVariant", "TrainContentParams", "TrainPitchParams"]


@dataclass(frozen=True)
class PitchVariant:
    """One pitch extractor."""

    mechanism: str = knob(
        "identity",
        "as it is, the autoencoder's code (laplace), clipped F0 (naive), a few coefficients (contour)",
        one_of=("identity", "laplace", "naive", "contour"),
        written="usually",
    )
    epsilon: float = knob(0.0, "epsilon per utterance (unused and 0 for identity)", low=0, written="usually")


@dataclass(frozen=True)
class TrainPitchParams:
    """The F0 autoencoder with a Laplace noise layer."""

    channels: int = knob(16, "channels C of the noise layer; its L1 sensitivity is C x frames", low=1)
    contour: int = knob(12, "contour: cosine coefficients of log-F0", low=1, high=64)
    voicing: int = knob(12, "contour: cosine coefficients of voicing", low=1, high=64)
    steps: int = knob(200, "training steps", low=1, written="usually")
    batch: int = knob(16, "utterances per step", low=1, written="usually")
    learning_rate: float = knob(5e-3, "Adam learning rate", above=0)
    gpus: int = gpus()


CONTENT_MECHANISMS = (
    "identity",
    "laplace",
    "sharp_laplace",
    "randomized_response",
    "subset_selection",
    "gaussian",
)


@dataclass(frozen=True)
class ContentVariant:
    """One content extractor."""

    mechanism: str = knob(
        "identity",
        "how a vector is released: as it is, with noise, as a phone or a set of them (docs/guide.md)",
        one_of=CONTENT_MECHANISMS,
        written="usually",
    )
    epsilon: float = knob(
        0.0, "epsilon per released vector (unused and 0 for identity)", low=0, written="usually"
    )
    every: int = knob(1, "10 ms frames per released vector: fewer vectors spend less", low=1, high=50)
    rho: float = knob(0.0, "gaussian only: zCDP rho per released vector (else unused and 0)", low=0)


@dataclass(frozen=True)
class TrainContentParams:
    """The acoustic model whose bottleneck is the content feature."""

    bottleneck: int = knob(256, "size M of the L1-normalized bottleneck", low=2)
    hidden: int = knob(192, "width of the TDNN-F layers", low=8)
    factor: int = knob(48, "rank of the factorised weights", low=2)
    layers: int = knob(5, "TDNN-F layers", low=1)
    targets: str = knob(
        "phones", "what the classifier names: phones, or triphone states", one_of=("phones", "states")
    )
    steps: int = knob(400, "training steps", low=1, written="usually")
    batch: int = knob(8, "utterance chunks per step", low=1, written="usually")
    chunk_frames: int = knob(150, "frames (10 ms) per chunk", low=10)
    learning_rate: float = knob(5e-3, "Adam learning rate", above=0)
    bf16: bool = knob(False, "bfloat16 in training; on a CPU faster only where it has the instructions")
    warp: float = knob(
        0.0, "vocal tract perturbation: frequencies times 1 - warp to 1 + warp; 0 = none", low=0, high=0.3
    )
    noise_rise: float = knob(
        0.8, "share of the steps in which training noise grows to its full scale; 0 = at once", low=0, high=1
    )
    gpus: int = gpus()
