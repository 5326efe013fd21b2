"""Parameters of the networks that are trained beside the extractors: speakers, attackers, synthesis."""

from __future__ import annotations

from dataclasses import dataclass

from voxveil.config.fields import gpus, knob

__all__ = [
    "SpeakerParams",
    "SynthesisParams",
    "TrainAttackerParams",
    "TrainSpeakerParams",
    "TrainVocoderParams",
]


@dataclass(frozen=True)
class SpeakerParams:
    """An ECAPA-TDNN trained with additive angular margin softmax."""

    channels: int = knob(48, "width of the ECAPA-TDNN, a multiple of 4", low=8)
    embedding: int = knob(96, "size of the embedding", low=8)
    steps: int = knob(120, "training steps", low=1, written="usually")
    batch: int = knob(32, "crops per step", low=2, written="usually")
    crop_seconds: float = knob(1.2, "length of a training crop in seconds", low=0.5)
    learning_rate: float = knob(2e-3, "Adam learning rate", above=0)
    gpus: int = gpus()


@dataclass(frozen=True)
class TrainSpeakerParams(SpeakerParams):
    """The speaker encoder of the synthesizer and its public pool."""

    target_members: int = knob(5, "members of a dense cluster averaged into one target", low=1)


@dataclass(frozen=True)
class TrainAttackerParams(SpeakerParams):
    """The attackers, trained on anonymized public speech."""

    kinds: str = knob(
        "ecapa",
        "by commas: ecapa, xvector_plda, f0_histogram, phone_histogram, prosody, wavlm, wavlm_ecapa,"
        " pretrained, pretrained_lda, pretrained_finetuned",
        written="usually",
    )
    speeds: str = knob("1,0.9,1.1", "playing speeds of training speech by commas, each a speaker of its own")
    noise: float = knob(0.0, "share of training crops with noise or another voice mixed in", low=0, high=1)
    seeds: int = knob(
        1,
        "trainings of each attacker with different seeds; the strongest counts",
        low=1,
        high=9,
        written="usually",
    )
    lda: int = knob(64, "dimensions that LDA keeps before PLDA", low=1)
    codebook: int = knob(64, "codes of the phone histogram", low=2)
    wavlm: str = knob(
        "", "network of the kinds wavlm...: imported WavLM or HuBERT: a folder, s3:// or models:/"
    )
    pretrained: str = knob(
        "", "speaker network of the kinds pretrained...: folder of 'voxveil model import', s3:// or models:/"
    )
    finetune_steps: int = knob(200, "training steps of pretrained_finetuned", low=1)
    finetune_learning_rate: float = knob(1e-4, "Adam learning rate of pretrained_finetuned", above=0)
    fusion_speakers: int = knob(
        0, "public speakers kept from training to fuse the attackers on; 0 = no fusion", low=0
    )


@dataclass(frozen=True)
class TrainVocoderParams:
    """The harmonic-plus-noise source-filter vocoder."""

    kind: str = knob(
        "stft",
        "filters the spectrum (stft), also the waveform (hn_sinc), or HiFi-GAN with that source (nsf_gan)",
        one_of=("stft", "hn_sinc", "nsf_gan"),
        written="usually",
    )
    channels: int = knob(96, "width of the spectral filter network; of nsf_gan before upsampling", low=8)
    width: int = knob(64, "hn_sinc: width of the filter blocks", low=4)
    harmonic_blocks: int = knob(5, "hn_sinc: filter blocks of the harmonic branch", low=0)
    noise_blocks: int = knob(1, "hn_sinc: filter blocks of the noise branch", low=0)
    layers: int = knob(10, "hn_sinc: dilated convolutions of a block", low=1, high=12)
    pretrained: str = knob("", "nsf_gan: imported HiFi-GAN to start from: a folder, s3:// or models:/")
    discriminator: int = knob(32, "nsf_gan: first width of the discriminators, a multiple of 4", low=4)
    steps: int = knob(480, "training steps", low=1, written="usually")
    batch: int = knob(8, "crops per step", low=1, written="usually")
    crop_frames: int = knob(100, "frames (10 ms) per crop", low=20)
    learning_rate: float = knob(2e-3, "Adam learning rate; hn_sinc diverges above 0.0005", above=0)
    patience: int = knob(0, "curve points without a better held-out loss until it stops; 0 = never", low=0)
    bf16: bool = knob(False, "bfloat16 where there is a GPU")
    gpus: int = gpus()


@dataclass(frozen=True)
class SynthesisParams:
    """The acoustic model: content, F0, target x-vector -> log-mel."""

    channels: int = knob(160, "width of the acoustic model", low=8)
    layers: int = knob(6, "convolution blocks", low=1)
    steps: int = knob(250, "training steps", low=1, written="usually")
    batch: int = knob(8, "crops per step", low=1, written="usually")
    crop_frames: int = knob(100, "frames (10 ms) per crop", low=20)
    learning_rate: float = knob(4e-3, "Adam learning rate", above=0)
    patience: int = knob(0, "curve points without a better held-out loss until it stops; 0 = never", low=0)
    bf16: bool = knob(False, "bfloat16 where there is a GPU")
    gpus: int = gpus()
