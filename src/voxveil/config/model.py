"""Every parameter of voxveil: a section per stage, the systems, ``base``, and what no stage reads.

The defaults are those of scale ``quickstart``; ``params/*.yaml`` hold what differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from voxveil.config.features import (
    ContentVariant,
    PitchVariant,
    TrainContentParams,
    TrainPitchParams,
)
from voxveil.config.fields import knob, table
from voxveil.config.networks import (
    SynthesisParams,
    TrainAttackerParams,
    TrainSpeakerParams,
    TrainVocoderParams,
)

__all__ = [
    "AnonymizeParams",
    "BaseParams",
    "BundleParams",
    "ClusterParams",
    "EvaluateParams",
    "GateParams",
    "Params",
    "PrepareParams",
    "ReportParams",
    "ScoreParams",
    "SystemParams",
    "TranscribeParams",
]


@dataclass(frozen=True)
class BaseParams:
    """What every stage shares."""

    scale: str = knob("quickstart", "name of the overlay this file was composed from", written="always")
    seed: int = knob(
        17, "seed of all public randomness (never of noise on private values)", low=0, written="always"
    )
    threads: int = knob(
        2, "CPU threads of a stage; 0 = all. One thread gives bit-equal training", low=0, written="always"
    )


@dataclass(frozen=True)
class PrepareParams:
    """The corpus and its splits."""

    source: str = knob(
        "embedded", "'embedded' (espeak-ng speaks it) or the folder of a corpus", written="usually"
    )
    manifest: str = knob(
        "src/voxveil/corpus/embedded.py",
        "a change of it prepares again; data/NAME.manifest.tsv if source is data/NAME",
        written="always",
    )
    public_subsets: str = knob(
        "", "subsets of the public speakers, separated by commas; empty = all", written="usually"
    )
    private_subsets: str = knob(
        "", "subsets of the private speakers, separated by commas; empty = all", written="usually"
    )
    utility_subsets: str = knob(
        "",
        "subsets that are released and transcribed, but not attacked; by commas (real transcripts)",
        written="usually",
    )
    machine_transcripts: str = knob(
        "", "subsets whose transcripts a recognizer made and nobody checked, separated by commas"
    )
    alignment: str = knob(
        "corpus",
        "phone timing: that of the corpus, if it has any, or forced alignment by pocketsphinx",
        one_of=("corpus", "pocketsphinx"),
        written="usually",
    )
    public: bool = knob(True, "the private speakers' data may be shown in reports (true for public corpora)")
    extractor_speakers: int = knob(
        32, "speakers that train the extractors and synthesis", low=2, written="usually"
    )
    pool_speakers: int = knob(
        16, "speakers whose x-vectors form the pool of targets", low=4, written="usually"
    )
    attacker_speakers: int = knob(
        32, "speakers whose anonymized speech trains the attacker", low=2, written="usually"
    )
    share_speakers: bool = knob(
        False, "the three public lists may share speakers (a small corpus); the report says which do"
    )
    private_speakers: int = knob(
        16, "speakers to be protected: enrolment and trials", low=4, written="usually"
    )
    utterances: int = knob(8, "utterances per speaker of the embedded corpus", low=2, written="usually")
    enrolment_utterances: int = knob(3, "utterances a speaker is enrolled with", low=1, written="usually")
    on_bad_audio: str = knob("fail", "what to do with a file that cannot be used", one_of=("fail", "skip"))
    workers: int = knob(2, "processes that decode audio and track F0", low=1, written="usually")


@dataclass(frozen=True)
class BundleParams:
    """The packed model of one system."""

    sex_public: bool = knob(
        False, "the private speakers' sex is public: a target may be chosen by it", written="usually"
    )


@dataclass(frozen=True)
class AnonymizeParams:
    """Release of anonymized speech."""

    loudness: float = knob(
        -23.0, "loudness of every output in LUFS, whatever the input's", high=0, written="usually"
    )
    samples: int = knob(
        3, "utterances whose original and anonymized audio the report plays", low=0, written="usually"
    )


@dataclass(frozen=True)
class ScoreParams:
    """Verification scores of the attacker."""

    original: str = knob(
        "original",
        "the original system, whose attacker serves the scenarios without retraining",
        written="always",
    )
    rank_inputs: int = knob(4, "utterances per speaker scored against all references", low=1)


@dataclass(frozen=True)
class TranscribeParams:
    """Phone and word recognition of the released speech."""

    variant: str = knob("plain", "the content variant that serves as phone recognizer", written="always")
    words: str = knob(
        "none",
        "word recognizer: none, pocketsphinx with its English model, or an imported whisper or other model",
        one_of=("none", "pocketsphinx", "whisper", "imported"),
        written="usually",
    )
    recognizer: str = knob("", "imported model of whisper or imported: a folder, s3:// or models:/")
    language: str = knob("en", "whisper: language code; empty = detected in each utterance")
    naturalness: str = knob(
        "", "imported judges of naturalness, by commas: folders, s3:// or models:/; empty = none"
    )
    judged_subsets: str = knob(
        "",
        "subsets whose word errors say whether speech is understood, by commas; empty = all released",
        written="usually",
    )
    pitch_utterances: int = knob(
        40, "utterances whose F0 is held against the original's, spread over all; 0 = none", low=0
    )
    workers: int = knob(2, "processes that recognize words", low=1)
    replicates: int = knob(1000, "bootstrap replicates over speakers behind the interval", low=20)


@dataclass(frozen=True)
class EvaluateParams:
    """Metrics and their intervals."""

    replicates: int = knob(
        200, "speaker bootstraps behind ci95, and relabellings behind null95", low=20, written="usually"
    )


@dataclass(frozen=True)
class ReportParams:
    """The page and its figures."""

    title: str = knob("voxveil", "title of the report", written="usually")


@dataclass(frozen=True)
class GateParams:
    """When a newly trained system may become the champion; against a pinned reference on the same trials."""

    system: str = knob("anon_dp", "the system that pipelines/retrain.py trains and gates", written="usually")
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
class ClusterParams:
    """Work spread over pods by a compiled pipeline; no stage reads it, so DVC makes nothing anew for it."""

    anonymize_shards: int = knob(
        1,
        "pods that anonymize a system, each with a share of the utterances",
        low=1,
        high=500,
        written="usually",
    )
    score_shards: int = knob(
        1,
        "pods that attack a system, each with a share of the three scenarios",
        low=1,
        high=3,
        written="usually",
    )
    parallel: int = knob(
        0, "shares of one stage and system that run at the same time; 0 = all", low=0, written="usually"
    )

    def shards(self, stage: str) -> int:
        """Return how many pods do the work of ``stage`` for a system."""
        return int(getattr(self, f"{stage}_shards"))


@dataclass(frozen=True)
class SystemParams:
    """One anonymization system as a composition of variants."""

    kind: str = knob(
        "anonymized",
        "anonymized, passed through (original), or without any guarantee: mcadams, copy_synthesis",
        one_of=("anonymized", "original", "mcadams", "copy_synthesis"),
        written="usually",
    )
    pitch: str = knob("plain", "its pitch variant", written="always")
    content: str = knob("plain", "its content variant", written="always")
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
        """The system is made of extractors and an acoustic model of its own."""
        return self.kind == "anonymized"

    @property
    def state(self) -> str:
        """State of the speech it puts out: ``original`` or ``anonymized``."""
        return "original" if self.kind == "original" else "anonymized"


@dataclass(frozen=True)
class Params:
    """All of params.yaml but the sections that extensions register (:mod:`voxveil.config.sections`)."""

    base: BaseParams = field(default_factory=BaseParams)
    systems: dict[str, SystemParams] = table("The systems to train, attack and measure, by name.")
    pitch_variants: dict[str, PitchVariant] = table("The pitch extractors that train_pitch makes, by name.")
    content_variants: dict[str, ContentVariant] = table(
        "The content extractors that train_content makes, by name."
    )
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
    gate: GateParams = field(default_factory=GateParams)
    cluster: ClusterParams = field(default_factory=ClusterParams)
