"""Every parameter of voxveil: a section per stage, the systems, ``base``, and the attack on features.

The defaults are those of scale ``quickstart``; ``params/*.yaml`` hold what differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from voxveil.config.fields import knob, table

__all__ = [
    "AnonymizeParams",
    "AsiParams",
    "BaseParams",
    "BundleParams",
    "ContentVariant",
    "EvaluateParams",
    "GateParams",
    "Params",
    "PitchVariant",
    "PrepareParams",
    "ProbeParams",
    "ReportParams",
    "ScoreParams",
    "SpeakerParams",
    "SynthesisParams",
    "SystemParams",
    "TrainAttackerParams",
    "TrainContentParams",
    "TrainPitchParams",
    "TrainSpeakerParams",
    "TrainVocoderParams",
    "TranscribeParams",
]


@dataclass(frozen=True)
class BaseParams:
    """What every stage shares."""

    scale: str = knob("quickstart", "name of the overlay this file was composed from")
    seed: int = knob(17, "seed of all public randomness (never of noise on private values)", low=0)
    threads: int = knob(2, "CPU threads of a stage; 0 = all. One thread gives bit-equal training", low=0)


@dataclass(frozen=True)
class PrepareParams:
    """The corpus and its splits."""

    source: str = knob("embedded", "'embedded' (espeak-ng speaks it) or the folder of a corpus")
    manifest: str = knob(
        "src/voxveil/corpus/embedded.py",
        "a change of it prepares again; data/NAME.manifest.tsv if source is data/NAME",
    )
    public_subsets: str = knob("", "subsets of the public speakers, separated by commas; empty = all")
    private_subsets: str = knob("", "subsets of the private speakers, separated by commas; empty = all")
    utility_subsets: str = knob(
        "", "subsets that are released and transcribed, but not attacked; by commas (real transcripts)"
    )
    machine_transcripts: str = knob(
        "", "subsets whose transcripts a recognizer made and nobody checked, separated by commas"
    )
    alignment: str = knob(
        "corpus",
        "phone timing: that of the corpus, if it has any, or forced alignment by pocketsphinx",
        one_of=("corpus", "pocketsphinx"),
    )
    public: bool = knob(True, "the private speakers' data may be shown in reports (true for public corpora)")
    extractor_speakers: int = knob(32, "speakers that train the extractors and synthesis", low=2)
    pool_speakers: int = knob(16, "speakers whose x-vectors form the pool of targets", low=4)
    attacker_speakers: int = knob(32, "speakers whose anonymized speech trains the attacker", low=2)
    share_speakers: bool = knob(
        False, "the three public lists may share speakers (a small corpus); the report says which do"
    )
    private_speakers: int = knob(16, "speakers to be protected: enrolment and trials", low=4)
    utterances: int = knob(8, "utterances per speaker of the embedded corpus", low=2)
    enrolment_utterances: int = knob(3, "utterances a speaker is enrolled with", low=1)
    on_bad_audio: str = knob("fail", "what to do with a file that cannot be used", one_of=("fail", "skip"))
    workers: int = knob(2, "processes that decode audio and track F0", low=1)


@dataclass(frozen=True)
class PitchVariant:
    """One pitch extractor."""

    mechanism: str = knob(
        "identity",
        "as it is, the autoencoder's code (laplace), clipped F0 (naive), a few coefficients (contour)",
        one_of=("identity", "laplace", "naive", "contour"),
    )
    epsilon: float = knob(0.0, "epsilon per utterance (unused and 0 for identity)", low=0)


@dataclass(frozen=True)
class TrainPitchParams:
    """The F0 autoencoder with a Laplace noise layer."""

    channels: int = knob(16, "channels C of the noise layer; its L1 sensitivity is C x frames", low=1)
    contour: int = knob(12, "contour: cosine coefficients of log-F0", low=1, high=64)
    voicing: int = knob(12, "contour: cosine coefficients of voicing", low=1, high=64)
    steps: int = knob(200, "training steps", low=1)
    batch: int = knob(16, "utterances per step", low=1)
    learning_rate: float = knob(5e-3, "Adam learning rate", above=0)
    variants: dict[str, PitchVariant] = table("the pitch extractors by name")


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
    )
    epsilon: float = knob(0.0, "epsilon per released vector (unused and 0 for identity)", low=0)
    every: int = knob(1, "10 ms frames per released vector: fewer vectors spend less", low=1, high=50)
    rho: float = knob(0.0, "gaussian only: zCDP rho per released vector (else unused and 0)", low=0)


@dataclass(frozen=True)
class TrainContentParams:
    """The acoustic model whose bottleneck is the content feature."""

    bottleneck: int = knob(256, "size M of the L1-normalised bottleneck", low=2)
    hidden: int = knob(192, "width of the TDNN-F layers", low=8)
    factor: int = knob(48, "rank of the factorised weights", low=2)
    layers: int = knob(5, "TDNN-F layers", low=1)
    targets: str = knob(
        "phones", "what the classifier names: phones, or triphone states", one_of=("phones", "states")
    )
    steps: int = knob(400, "training steps", low=1)
    batch: int = knob(8, "utterance chunks per step", low=1)
    chunk_frames: int = knob(150, "frames (10 ms) per chunk", low=10)
    learning_rate: float = knob(5e-3, "Adam learning rate", above=0)
    bf16: bool = knob(False, "bfloat16 in training; on a CPU faster only where it has the instructions")
    warp: float = knob(
        0.0, "vocal tract perturbation: frequencies times 1 - warp to 1 + warp; 0 = none", low=0, high=0.3
    )
    noise_rise: float = knob(
        0.8, "share of the steps in which training noise grows to its full scale; 0 = at once", low=0, high=1
    )
    variants: dict[str, ContentVariant] = table("the content extractors by name")


@dataclass(frozen=True)
class SpeakerParams:
    """An ECAPA-TDNN trained with additive angular margin softmax."""

    channels: int = knob(48, "width of the ECAPA-TDNN, a multiple of 4", low=8)
    embedding: int = knob(96, "size of the embedding", low=8)
    steps: int = knob(120, "training steps", low=1)
    batch: int = knob(32, "crops per step", low=2)
    crop_seconds: float = knob(1.2, "length of a training crop in seconds", low=0.5)
    learning_rate: float = knob(2e-3, "Adam learning rate", above=0)


@dataclass(frozen=True)
class TrainSpeakerParams(SpeakerParams):
    """The speaker encoder of the synthesizer and its public pool."""

    target_members: int = knob(5, "members of a dense cluster averaged into one target", low=1)


@dataclass(frozen=True)
class TrainAttackerParams(SpeakerParams):
    """The attackers, trained on anonymized public speech."""

    kinds: str = knob(
        "ecapa",
        "by commas: ecapa, xvector_plda, f0_histogram, phone_histogram, prosody, wavlm, wavlm_ecapa",
    )
    speeds: str = knob("1,0.9,1.1", "playing speeds of training speech by commas, each a speaker of its own")
    noise: float = knob(0.0, "share of training crops with noise or another voice mixed in", low=0, high=1)
    seeds: int = knob(
        1, "trainings of each attacker with different seeds; the strongest counts", low=1, high=9
    )
    lda: int = knob(64, "dimensions that LDA keeps before PLDA", low=1)
    codebook: int = knob(64, "codes of the phone histogram", low=2)
    wavlm: str = knob("", "folder of a WavLM (config.json, model.safetensors), or the name of a hub model")
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
    )
    channels: int = knob(96, "width of the spectral filter network; of nsf_gan before upsampling", low=8)
    width: int = knob(64, "hn_sinc: width of the filter blocks", low=4)
    harmonic_blocks: int = knob(5, "hn_sinc: filter blocks of the harmonic branch", low=0)
    noise_blocks: int = knob(1, "hn_sinc: filter blocks of the noise branch", low=0)
    layers: int = knob(10, "hn_sinc: dilated convolutions of a block", low=1, high=12)
    discriminator: int = knob(32, "nsf_gan: first width of the discriminators, a multiple of 4", low=4)
    steps: int = knob(480, "training steps", low=1)
    batch: int = knob(8, "crops per step", low=1)
    crop_frames: int = knob(100, "frames (10 ms) per crop", low=20)
    learning_rate: float = knob(2e-3, "Adam learning rate; hn_sinc diverges above 0.0005", above=0)
    patience: int = knob(0, "curve points without a better held-out loss until it stops; 0 = never", low=0)
    bf16: bool = knob(False, "bfloat16 where there is a GPU")


@dataclass(frozen=True)
class SynthesisParams:
    """The acoustic model: content, F0, target x-vector -> log-mel."""

    channels: int = knob(160, "width of the acoustic model", low=8)
    layers: int = knob(6, "convolution blocks", low=1)
    steps: int = knob(250, "training steps", low=1)
    batch: int = knob(8, "crops per step", low=1)
    crop_frames: int = knob(100, "frames (10 ms) per crop", low=20)
    learning_rate: float = knob(4e-3, "Adam learning rate", above=0)
    patience: int = knob(0, "curve points without a better held-out loss until it stops; 0 = never", low=0)
    bf16: bool = knob(False, "bfloat16 where there is a GPU")


@dataclass(frozen=True)
class BundleParams:
    """The packed model of one system."""

    sex_public: bool = knob(False, "the private speakers' sex is public: a target may be chosen by it")


@dataclass(frozen=True)
class AnonymizeParams:
    """Release of anonymized speech."""

    loudness: float = knob(-23.0, "loudness of every output in LUFS, whatever the input's", high=0)
    samples: int = knob(3, "utterances whose original and anonymized audio the report plays", low=0)


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
    patience: int = knob(10, "validations (40 in all steps) without a new best before it ends", low=1)


@dataclass(frozen=True)
class ProbeParams:
    """What is decoded from features alone; no stage reads it."""

    words: bool = knob(False, "decode words with lexicon and n-gram (English; needs transcripts)")
    tuning: int = knob(24, "training utterances that the decoders' acoustic scales are chosen on", low=1)


@dataclass(frozen=True)
class ScoreParams:
    """Verification scores of the attacker."""

    original: str = knob(
        "original", "the original system, whose attacker serves the scenarios without retraining"
    )
    rank_inputs: int = knob(4, "utterances per speaker scored against all references", low=1)


@dataclass(frozen=True)
class TranscribeParams:
    """Phone and word recognition of the released speech."""

    variant: str = knob("plain", "the content variant that serves as phone recognizer")
    words: str = knob(
        "none",
        "word recognizer: none, or pocketsphinx with the English model of its package",
        one_of=("none", "pocketsphinx"),
    )
    judged_subsets: str = knob(
        "", "subsets whose word errors say whether speech is understood, by commas; empty = all released"
    )
    workers: int = knob(2, "processes that recognise words", low=1)
    replicates: int = knob(1000, "bootstrap replicates over speakers behind the interval", low=20)


@dataclass(frozen=True)
class EvaluateParams:
    """Metrics and their intervals."""

    replicates: int = knob(200, "speaker bootstraps behind ci95, and relabellings behind null95", low=20)


@dataclass(frozen=True)
class ReportParams:
    """The page and its figures."""

    title: str = knob("voxveil", "title of the report")


@dataclass(frozen=True)
class GateParams:
    """When a newly trained system may become the champion; against a pinned reference on the same trials."""

    system: str = knob("anon_dp", "the system that pipelines/retrain.py trains and gates")
    scenarios: str = knob("semi_informed", "attack scenarios whose metrics are gated, by commas")
    replicates: int = knob(1000, "paired speaker bootstraps behind the interval of a loss", low=20)
    margin_identification_rate: float = knob(5.0, "points; the upper end of the loss must lie below", low=0)
    margin_linkability: float = knob(0.05, "the upper end of the loss must lie below", low=0)
    margin_d_ece: float = knob(0.05, "bit; the upper end of the loss must lie below", low=0)
    margin_errors: float = knob(2.0, "points by which word (or else phone) errors may rise", low=0)
    bar_identification_rate: float = knob(50.0, "%, with no champion: highest upper end", low=0, high=100)
    bar_linkability: float = knob(0.5, "with no champion: highest upper end", low=0, high=1)
    bar_d_ece: float = knob(0.3, "bit, with no champion: highest upper end", low=0)
    bar_errors: float = knob(
        80.0, "%, with no champion: highest upper end of word (or else phone) errors", low=0
    )


@dataclass(frozen=True)
class SystemParams:
    """One anonymization system as a composition of variants."""

    kind: str = knob(
        "anonymized",
        "anonymized, passed through (original), or signal processing without any guarantee (mcadams)",
        one_of=("anonymized", "original", "mcadams"),
    )
    pitch: str = knob("plain", "its train_pitch variant")
    content: str = knob("plain", "its train_content variant")
    pitch_conversion: bool = knob(False, "move F0 to the target's mean and standard deviation")
    target: str = knob(
        "dense",
        "voice: of a dense cluster, or far from the source as VoicePrivacy's B1 (no guarantee)",
        one_of=("dense", "farthest"),
    )
    target_level: str = knob(
        "utterance",
        "a voice for each utterance, or for all of a speaker (no guarantee)",
        one_of=("utterance", "speaker"),
    )
    target_sex: str = knob(
        "any",
        "sex of the voice against the source's (no guarantee unless bundle.sex_public)",
        one_of=("any", "same", "cross"),
    )
    mcadams_low: float = knob(0.5, "mcadams: smallest coefficient drawn for an utterance", low=0.1, high=2)
    mcadams_high: float = knob(0.9, "mcadams: largest; equal to the smallest = fixed", low=0.1, high=2)

    @property
    def trained(self) -> bool:
        """The system is made of trained models."""
        return self.kind == "anonymized"

    @property
    def state(self) -> str:
        """State of the speech it puts out: ``original`` or ``anonymized``."""
        return "original" if self.kind == "original" else "anonymized"


@dataclass(frozen=True)
class Params:
    """All of params.yaml."""

    base: BaseParams = field(default_factory=BaseParams)
    systems: dict[str, SystemParams] = table("the systems to train, attack and measure, by name")
    prepare: PrepareParams = field(default_factory=PrepareParams)
    train_pitch: TrainPitchParams = field(default_factory=TrainPitchParams)
    train_content: TrainContentParams = field(default_factory=TrainContentParams)
    train_speaker: TrainSpeakerParams = field(default_factory=TrainSpeakerParams)
    train_vocoder: TrainVocoderParams = field(default_factory=TrainVocoderParams)
    train_synthesis: SynthesisParams = field(default_factory=SynthesisParams)
    bundle: BundleParams = field(default_factory=BundleParams)
    anonymize: AnonymizeParams = field(default_factory=AnonymizeParams)
    train_attacker: TrainAttackerParams = field(default_factory=TrainAttackerParams)
    score: ScoreParams = field(default_factory=ScoreParams)
    transcribe: TranscribeParams = field(default_factory=TranscribeParams)
    evaluate: EvaluateParams = field(default_factory=EvaluateParams)
    report: ReportParams = field(default_factory=ReportParams)
    asi: AsiParams = field(default_factory=AsiParams)
    probe: ProbeParams = field(default_factory=ProbeParams)
    gate: GateParams = field(default_factory=GateParams)
