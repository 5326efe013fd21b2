"""Parameter sections of research: ``asi``, ``probe`` and ``asr``, registered by entry points."""

from __future__ import annotations

from dataclasses import dataclass

from voxveil.config.fields import knob, speeds_of
from voxveil.runtime.errors import ParamsError

__all__ = ["AsiParams", "AsrParams", "ProbeParams"]


@dataclass(frozen=True)
class AsiParams:
    """Automatic speaker identification from pitch or content features alone; no stage reads it."""

    channels: int = knob(64, "width of the x-vector network", low=2)
    steps: int = knob(400, "training steps at most; fewer where validation stops improving", low=1)
    batch: int = knob(32, "crops per step", low=2)
    crop_frames: int = knob(200, "frames (after grouping) per training crop", low=10)
    group: int = knob(1, "frames averaged into one before the network: long features train sooner", low=1)
    learning_rate: float = knob(5e-3, "Adam learning rate", above=0)
    full: bool = knob(False, "80/10/10 % of every speaker; else one utterance to stop by, one to test on")
    patience: int = knob(
        40,
        "validations (40 in all steps) without a new best before it ends; fewer may end a slow start",
        low=1,
    )


@dataclass(frozen=True)
class ProbeParams:
    """What is decoded from features alone, and how U_ASR is measured; no stage reads it."""

    words: bool = knob(
        False, "decode words with lexicon and n-gram (English; needs transcripts)", written="usually"
    )
    tuning: int = knob(24, "training utterances that the decoders' acoustic scales are chosen on", low=1)
    recognizer: str = knob(
        "hybrid",
        "of U_ASR: phones by an acoustic model (mini size), or words by section asr (full size)",
        one_of=("hybrid", "conformer"),
        written="usually",
    )
    largest_errors: float = knob(
        90.0,
        "% wrong of original speech: more, and what was trained on it for U_ASR is set up wrongly; 100 = off",
        above=0,
        high=100,
    )


@dataclass(frozen=True)
class AsrParams:
    """The recognizer of `probe utility` at full size: a conformer, CTC and attention; no stage reads it."""

    width: int = knob(144, "width of the conformer, a multiple of 2 and of the heads", low=8)
    heads: int = knob(4, "attention heads", low=1)
    encoder_layers: int = knob(6, "conformer layers", low=1)
    decoder_layers: int = knob(2, "transformer layers of the attention decoder", low=1)
    feedforward: int = knob(576, "width inside the feed-forward layers", low=8)
    kernel: int = knob(31, "frames (40 ms) of a conformer convolution, odd", low=3)
    dropout: float = knob(0.1, "dropout", low=0, high=0.9)
    pieces: int = knob(
        0, "SentencePiece units learnt from the training transcripts, at most; 0 = characters", low=0
    )
    steps: int = knob(4000, "training steps", low=1)
    batch_seconds: float = knob(120.0, "speech of a step in seconds, padding included", above=0)
    max_seconds: float = knob(20.0, "longer utterances are not trained on", above=0)
    learning_rate: float = knob(1e-3, "Adam learning rate", above=0)
    ctc_weight: float = knob(0.3, "share of CTC in the training loss; the rest is attention", low=0, high=1)
    label_smoothing: float = knob(0.1, "label smoothing of the attention decoder", low=0, high=0.9)
    speeds: str = knob("1,0.9,1.1", "playing speeds of training speech by commas, drawn for each step")
    spec_augment: bool = knob(True, "SpecAugment: stretches of time and frequency masked in training")
    patience: int = knob(
        0,
        "curve points without a better loss of held-out speakers until it stops; 0 = never, none held out",
        low=0,
    )
    bf16: bool = knob(False, "bfloat16 in training where there is a GPU")
    beam: int = knob(10, "hypotheses of the joint beam search; 0 = greedy CTC", low=0, high=200)
    ctc_decoding: float = knob(
        0.4, "share of CTC in the beam search's score; the rest is attention", low=0, high=0.99
    )
    workers: int = knob(2, "threads that read training speech ahead", low=1)

    def check(self, path: str) -> None:
        """Check what concerns several values.

        Raises:
            ParamsError: With the dotted path.
        """
        if self.width % 2 or self.width % self.heads:
            raise ParamsError(
                f"{path}.width: must be a multiple of 2 and of {path}.heads ({self.heads}), got {self.width}"
            )
        if self.kernel % 2 == 0:
            raise ParamsError(f"{path}.kernel: must be odd, got {self.kernel}")
        speeds_of(self.speeds, f"{path}.speeds")
