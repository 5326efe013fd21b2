"""The conformer: log-mel in; characters or pieces out, by CTC and by an attention decoder.

Gulati et al., "Conformer: Convolution-augmented transformer for speech recognition", Interspeech 2020; joint
CTC and attention: Watanabe et al., IEEE J-STSP 11(8), 2017. The layers are SpeechBrain's, put together as in
its LibriSpeech recipe: two convolutions that halve time and frequency, relative positions, a transformer
decoder.

One number per utterance, its mean over time and bands, is subtracted from the log-mel, so that gain cancels:
released speech has a loudness of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from voxveil.audio.frames import HOP, MEL_BANDS
from voxveil.audio.mel import log_mel
from voxveil.research.asr.tokens import BLANK
from voxveil.training.placeholders import remove_placeholders

__all__ = ["AsrNetwork", "AsrSize", "centred_mel", "encoded_frames", "quiet"]

#: Channels of the two convolutions before the conformer.
_CHANNELS = (64, 32)
#: Frames (10 ms) of the shortest input; what is shorter is filled up.
_LEAST_FRAMES = 16


@dataclass(frozen=True)
class AsrSize:
    """Everything needed to rebuild the network.

    Attributes:
        tokens: Number of tokens V.
        width: Width D of conformer and decoder.
        heads: Attention heads.
        encoder_layers: Conformer layers.
        decoder_layers: Transformer layers of the attention decoder.
        feedforward: Width inside the feed-forward layers.
        kernel: Taps of a conformer convolution, odd.
        dropout: Dropout, in [0, 1).
    """

    tokens: int
    width: int
    heads: int
    encoder_layers: int
    decoder_layers: int
    feedforward: int
    kernel: int
    dropout: float

    def to_json(self) -> dict[str, float]:
        """Return the sizes by name."""
        return asdict(self)


def encoded_frames(frames: int) -> int:
    """Return the number of encoded frames (40 ms) of an utterance of ``frames`` 10 ms frames."""
    return -(-max(frames, _LEAST_FRAMES) // 4)


def centred_mel(audio: torch.Tensor, samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-mel less its mean over each utterance.

    Args:
        audio: (batch, N) 16 kHz, zero after each utterance.
        samples: (batch,) samples of each utterance.

    Returns:
        (batch, K, 80), 0 after each utterance, and (batch,) frames of each utterance.
    """
    missing = (_LEAST_FRAMES - 1) * HOP - audio.shape[1]
    mel = log_mel(functional.pad(audio, (0, max(0, missing))))
    frames = (samples // HOP + 1).clamp(min=_LEAST_FRAMES)
    inside = _inside(mel, frames)
    mean = (mel * inside).sum(dim=(1, 2), keepdim=True) / (frames * MEL_BANDS)[:, None, None]
    return (mel - mean) * inside, frames


class AsrNetwork(nn.Module):
    """Encoder with a CTC layer, and decoder with a layer that names the next token.

    Args:
        size: The shape.
    """

    mean: torch.Tensor
    sd: torch.Tensor

    def __init__(self, size: AsrSize) -> None:
        super().__init__()
        self.size = size
        self.register_buffer("mean", torch.zeros(MEL_BANDS))
        self.register_buffer("sd", torch.ones(MEL_BANDS))
        front, transformer, linear = _parts(size)
        self.front = front
        self.transformer: Any = transformer
        self.ctc = linear(n_neurons=size.tokens, input_size=size.width)
        self.next = linear(n_neurons=size.tokens, input_size=size.width)

    def normalize_by(self, mean: torch.Tensor, sd: torch.Tensor) -> None:
        """Set the (80,) mean and standard deviation of centred log-mel."""
        self.mean.copy_(mean)
        self.sd.copy_(sd)

    def normalized(self, mel: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
        """Return (batch, K, 80) of mean 0 and variance 1 over training speech, 0 after each utterance."""
        return (mel - self.mean) / self.sd * _inside(mel, frames)

    def encode(self, normal: torch.Tensor, frames: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Encode normalized log-mel.

        Args:
            normal: (batch, K, 80).
            frames: (batch,) frames of each utterance.

        Returns:
            (batch, T, D) with T = ceil(K / 4), and (batch,) encoded frames of each utterance.
        """
        seen, lengths = self.front(normal), _lengths(frames)
        with quiet():
            return self.transformer.encode(seen, lengths / seen.shape[1]), lengths

    def ctc_log_probs(self, encoded: torch.Tensor) -> torch.Tensor:
        """Return the (batch, T, V) natural logarithms of CTC."""
        return functional.log_softmax(self.ctc(encoded).float(), dim=2)

    def forward(
        self, normal: torch.Tensor, frames: torch.Tensor, before: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Score transcripts.

        Args:
            normal: (batch, K, 80) normalized log-mel.
            frames: (batch,) frames of each utterance.
            before: (batch, L) tokens before each next one, from the first mark on, filled with blanks.

        Returns:
            (batch, T, V) natural logarithms of CTC, (batch, L, V) scores of each next token, and (batch,)
            encoded frames of each utterance.
        """
        seen, lengths = self.front(normal), _lengths(frames)
        with quiet():
            encoded, decoded = self.transformer(seen, before, lengths / seen.shape[1], pad_idx=BLANK)
        return self.ctc_log_probs(encoded), self.next(decoded).float(), lengths


@contextmanager
def quiet() -> Iterator[None]:
    """Run a block of SpeechBrain's without its warnings: of renamed modules, and of masks of two types."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _inside(mel: torch.Tensor, frames: torch.Tensor) -> torch.Tensor:
    """Return (batch, K, 1) whether each frame is one of its utterance."""
    return (torch.arange(mel.shape[1], device=mel.device) < frames[:, None]).unsqueeze(2)


def _lengths(frames: torch.Tensor) -> torch.Tensor:
    return torch.div(frames + 3, 4, rounding_mode="floor")


def _parts(size: AsrSize) -> tuple[nn.Module, nn.Module, Any]:
    with quiet():
        from speechbrain.lobes.models.convolution import ConvolutionFrontEnd
        from speechbrain.lobes.models.transformer.TransformerASR import TransformerASR
        from speechbrain.nnet.linear import Linear

    remove_placeholders()
    front = ConvolutionFrontEnd(
        input_shape=(8, _LEAST_FRAMES, MEL_BANDS),
        num_blocks=2,
        num_layers_per_block=1,
        out_channels=list(_CHANNELS),
        kernel_sizes=[3, 3],
        strides=[2, 2],
        residuals=[False, False],
        dropout=size.dropout,
    )
    transformer = TransformerASR(
        tgt_vocab=size.tokens,
        input_size=MEL_BANDS // 4 * _CHANNELS[1],
        d_model=size.width,
        nhead=size.heads,
        num_encoder_layers=size.encoder_layers,
        num_decoder_layers=size.decoder_layers,
        d_ffn=size.feedforward,
        dropout=size.dropout,
        activation=nn.GELU,
        encoder_module="conformer",
        attention_type="RelPosMHAXL",
        normalize_before=True,
        causal=False,
        kernel_size=size.kernel,
    )
    return front, transformer, Linear
