"""The one table of stages: name, key, inputs, outputs and what they need.

dvc.yaml, the command line, the Kubeflow components and the docs are held against this
table by tests/unit/test_consistency.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from voxveil.runtime.errors import InputError

__all__ = ["STAGES", "Port", "StageSpec", "stage_spec"]

Kind = Literal["Dataset", "Model", "Metrics", "HTML"]
Keyed = Literal["", "system", "pitch_variant", "content_variant"]
MadeFor = Literal["", "key", "pitch", "content", "recognizer", "original"]
Secrecy = Literal["public", "private", "released"]


@dataclass(frozen=True)
class Port:
    """One declared input or output: a folder with ``_DONE.json``, or a copy of one file of another output.

    Attributes:
        name: As in ``--in NAME=PATH``.
        kind: Kubeflow artifact type.
        secrecy: ``private`` artifacts never leave the private store.
        made_by: For an input: the stage whose output it must be.
        made_for: For an input: the key it must have been made for: that of this run, the system's pitch or
            content variant, the recognizer's variant, the original system, or none.
        output: For an input: the output port it must come from, where the stage has several.
        many: The folder holds one finished output per system (fan-in).
        shares: The folder holds one finished output per share of one stage's work (fan-in).
        copy_of: ``OUTPUT/FILE``: this output is a single file, copied from that one so that DVC can show it
            (``{key}`` stands for the stage's key).
    """

    name: str
    kind: Kind
    secrecy: Secrecy = "public"
    made_by: str = ""
    made_for: MadeFor = ""
    output: str = ""
    many: bool = False
    shares: bool = False
    copy_of: str = ""


@dataclass(frozen=True)
class StageSpec:
    """What a stage reads, writes and needs; ``shared``: several pods can each do a share of its work."""

    name: str
    help: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    keyed: Keyed = ""
    sections: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    torch: bool = False
    gpu: bool = False
    cacheable: bool = True
    shared: bool = False

    @property
    def command(self) -> str:
        """The stage's name on the command line."""
        return self.name.replace("_", "-")

    @property
    def trains(self) -> bool:
        """Whether the stage has a training curve."""
        return any(port.name == "curve" for port in self.outputs)


_PUBLIC = Port("public", "Dataset", made_by="prepare", output="public")
_PRIVATE = Port("private", "Dataset", "private", made_by="prepare", output="private")
_RELEASED = Port("released", "Dataset", "released", made_by="anonymize", made_for="key", output="released")
_TRAINED = (
    Port("model", "Model"),
    Port("metrics", "Metrics", copy_of="model/metrics.json"),
    Port("curve", "Dataset", copy_of="model/curve.csv"),
)
_COMMON = (
    "runtime",
    "config",
    "stages/run.py",
    "stages/context.py",
    "stages/registry.py",
)
_AUDIO_IO = ("audio/files.py", "audio/containers.py", "audio/frames.py")
_CURVES = tuple(f"tracking/{name}.py" for name in ("client", "mlflow_names", "sender", "store", "stream"))
_TRAIN = (*_COMMON, "stages/torchrun.py", "corpus/split.py", "audio", "training", *_CURVES)

STAGES: tuple[StageSpec, ...] = (
    StageSpec(
        "prepare",
        "read or speak the corpus, split it, track F0, draw trials",
        (),
        (_PUBLIC, _PRIVATE),
        sections=("prepare",),
        packages=(
            *_COMMON,
            "corpus",
            "audio",
            "features/pitch/yaapt",
        ),
    ),
    StageSpec(
        "train_pitch",
        "train the F0 autoencoder of one variant through its noise",
        (_PUBLIC,),
        _TRAINED,
        keyed="pitch_variant",
        sections=("train_pitch",),
        packages=(*_TRAIN, "features/pitch", "privacy"),
        torch=True,
        gpu=True,
    ),
    StageSpec(
        "train_content",
        "train the acoustic model whose bottleneck is the content feature",
        (_PUBLIC,),
        _TRAINED,
        keyed="content_variant",
        sections=("train_content",),
        packages=(*_TRAIN, "corpus/phones.py", "features/content", "privacy"),
        torch=True,
        gpu=True,
    ),
    StageSpec(
        "train_speaker",
        "train the speaker encoder and build the public pool of targets",
        (_PUBLIC,),
        _TRAINED,
        sections=("train_speaker",),
        packages=(*_TRAIN, "features/speaker"),
        torch=True,
        gpu=True,
    ),
    StageSpec(
        "train_vocoder",
        "train the neural source-filter vocoder",
        (_PUBLIC,),
        _TRAINED,
        sections=("train_vocoder",),
        packages=(*_TRAIN, "synthesis"),
        torch=True,
        gpu=True,
    ),
    StageSpec(
        "train_synthesis",
        "train one system's acoustic model on its own released features",
        (
            _PUBLIC,
            Port("pitch", "Model", made_by="train_pitch", made_for="pitch"),
            Port("content", "Model", made_by="train_content", made_for="content"),
            Port("speaker", "Model", made_by="train_speaker"),
        ),
        _TRAINED,
        keyed="system",
        sections=("train_synthesis",),
        packages=(
            *_TRAIN,
            "features",
            "privacy",
            "synthesis",
        ),
        torch=True,
        gpu=True,
    ),
    StageSpec(
        "bundle",
        "pack one system into a model folder that anonymizes by itself",
        (
            Port("pitch", "Model", made_by="train_pitch", made_for="pitch"),
            Port("content", "Model", made_by="train_content", made_for="content"),
            Port("speaker", "Model", made_by="train_speaker"),
            Port("vocoder", "Model", made_by="train_vocoder"),
            Port("synthesis", "Model", made_by="train_synthesis", made_for="key"),
        ),
        (Port("model", "Model"),),
        keyed="system",
        sections=("bundle",),
        packages=(*_COMMON, "privacy", "features/speaker", "anonymize/bundle.py"),
    ),
    StageSpec(
        "anonymize",
        "release anonymized speech of the private speakers and the attacker's training set",
        (Port("model", "Model", made_by="bundle", made_for="key"), _PUBLIC, _PRIVATE),
        (
            Port("attacker", "Dataset"),
            Port("released", "Dataset", "released"),
            Port("samples", "Dataset"),
        ),
        keyed="system",
        sections=("anonymize",),
        packages=(
            *_COMMON,
            "corpus/split.py",
            "audio",
            "features",
            "privacy",
            "synthesis",
            "anonymize/bundle.py",
            "anonymize/anonymizer.py",
            "anonymize/systems.py",
            "training",
        ),
        torch=True,
        gpu=True,
        cacheable=False,
        shared=True,
    ),
    StageSpec(
        "train_attacker",
        "train the attackers on anonymized public speech",
        (Port("attacker", "Dataset", made_by="anonymize", made_for="key", output="attacker"),),
        _TRAINED,
        keyed="system",
        sections=("train_attacker",),
        packages=(*_TRAIN, "features/speaker", "attack"),
        torch=True,
        gpu=True,
        cacheable=False,
    ),
    StageSpec(
        "score",
        "score trials and the pooled rank protocol in every attack scenario",
        (
            Port("attacker", "Model", made_by="train_attacker", made_for="key"),
            Port("original_attacker", "Model", made_by="train_attacker", made_for="original"),
            _RELEASED,
            _PRIVATE,
        ),
        (Port("scores", "Dataset", "private"),),
        keyed="system",
        sections=("score",),
        packages=(
            *_COMMON,
            "corpus/split.py",
            "corpus/trials.py",
            "audio",
            "features/speaker",
            "attack",
            "metrics/data.py",
            "metrics/eer.py",
            "metrics/pav.py",
            "training",
        ),
        torch=True,
        gpu=True,
        cacheable=False,
        shared=True,
    ),
    StageSpec(
        "transcribe",
        "recognize the released speech and count errors",
        (Port("recognizer", "Model", made_by="train_content", made_for="recognizer"), _RELEASED, _PRIVATE),
        (Port("transcripts", "Dataset", "private"),),
        keyed="system",
        sections=("transcribe",),
        packages=(
            *_COMMON,
            "corpus/split.py",
            "corpus/phones.py",
            "audio",
            "features/content",
            "features/pitch/yaapt",
            "privacy",
            "training",
            "metrics/data.py",
            "metrics/intervals.py",
            "utility",
        ),
        torch=True,
        gpu=True,
        cacheable=False,
    ),
    StageSpec(
        "evaluate",
        "compute every privacy and utility metric of one system",
        (
            Port("scores", "Dataset", "private", made_by="score", made_for="key"),
            Port("transcripts", "Dataset", "private", made_by="transcribe", made_for="key"),
            _RELEASED,
        ),
        (Port("metrics", "Metrics"), Port("flat", "Metrics", copy_of="metrics/{key}.metrics.json")),
        keyed="system",
        sections=("evaluate",),
        packages=(*_COMMON, "metrics", "privacy"),
        cacheable=False,
    ),
    StageSpec(
        "report",
        "write the report page and publish the run to MLflow",
        (
            Port("metrics", "Metrics", made_by="evaluate", made_for="key", many=True),
            Port("samples", "Dataset", made_by="anonymize", made_for="key", output="samples", many=True),
        ),
        (Port("report", "HTML"),),
        sections=("report", "systems"),
        packages=(*_COMMON, "metrics", "results", "tracking", *_AUDIO_IO),
        cacheable=False,
    ),
)


def stage_spec(name: str) -> StageSpec:
    """Return the stage called ``name`` (``train_pitch`` or ``train-pitch``)."""
    for spec in STAGES:
        if name in (spec.name, spec.command):
            return spec
    known = ", ".join(spec.command for spec in STAGES)
    raise InputError(f"no stage {name!r}; stages: {known}")
