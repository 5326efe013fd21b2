"""Parameters of the full-size recognizer behind U_ASR."""

from __future__ import annotations

from dataclasses import dataclass

from voxveil.config.fields import knob

__all__ = ["AsrParams"]


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
