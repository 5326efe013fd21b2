"""The one table of stages: name, key, inputs, outputs and what they need.

The command line, the pods of Kubeflow and the tests read this table. dvc.yaml, the Kubeflow
components, their documents, the network policies and the tables of costs are generated from it
(``make generate``, which runs :mod:`voxveil.kubeflow.generation`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from voxveil.config import Params
from voxveil.runtime.errors import InputError

__all__ = ["STAGES", "Port", "StageSpec", "stage_spec"]

Kind = Literal["Dataset", "Model", "Metrics", "HTML"]
Keyed = Literal["", "system", "pitch_variant", "content_variant"]
MadeFor = Literal["", "key", "pitch", "content", "recognizer", "original"]
Secrecy = Literal["public", "private", "released"]
Service = Literal["mlflow", "store", "ledger", "webhook", "https"]


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
        path: For an output: its path in dvc.yaml, where that does not follow from the names of stage, key and
            port (``${key}`` stands for the stage's key).
        located: For an output: Kubeflow also hands it on as a text ``KEY URI DIGEST``, which others collect.
        holds: For an output: what is in it, for the component's document.
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
    path: str = ""
    located: bool = False
    holds: str = ""


@dataclass(frozen=True)
class StageSpec:
    """What a stage reads, writes and needs.

    Attributes:
        name: Stem of its module, component and section.
        help: What it does, in a line.
        inputs: Its inputs.
        outputs: Its outputs.
        keyed: What it runs for one by one; empty where it runs once.
        sections: Sections of the parameters that it reads as a whole.
        packages: Code its results depend on, relative to the package, apart from its module.
        files: Further files it depends on, as dvc.yaml names them.
        base: What it reads of section ``base``. The name of the scale is shown in results and decides none.
        torch: It computes with PyTorch.
        gpu: It takes a GPU where there is one.
        cacheable: Kubeflow may take its outputs from an earlier run.
        shared: Several pods can each do a share of its work.
        services: What its pod may use: the MLflow server, the S3 store, the register of releases, the
            webhook, or HTTPS to anywhere. That a training uses MLflow, and that what collects from several
            tasks uses the store, is implied.
        collects: Lists of texts that Kubeflow hands to it beside its inputs, with what each holds.
    """

    name: str
    help: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    keyed: Keyed = ""
    sections: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    base: tuple[str, ...] = ("base.seed", "base.threads")
    torch: bool = False
    gpu: bool = False
    cacheable: bool = True
    shared: bool = False
    services: tuple[Service, ...] = ()
    collects: tuple[tuple[str, str], ...] = ()

    @property
    def table(self) -> str:
        """Section of the parameters that has a name for each run of the stage; empty where it runs once."""
        return f"{self.keyed}s" if self.keyed else ""

    def keys(self, params: Params) -> list[str]:
        """Return the names of the stage's runs; none where it runs once, without a name."""
        return list(getattr(params, self.table)) if self.table else []

    @property
    def command(self) -> str:
        """The stage's name on the command line."""
        return self.name.replace("_", "-")

    @property
    def trains(self) -> bool:
        """Whether the stage has a training curve."""
        return any(port.name == "curve" for port in self.outputs)

    def uses(self, service: Service) -> bool:
        """Whether its pod may use a service."""
        collecting = any(port.many or port.shares for port in self.inputs)
        implied = {"mlflow": self.trains, "store": collecting}
        return service in self.services or implied.get(service, False)


_PUBLIC = Port("public", "Dataset", made_by="prepare", output="public")
_PRIVATE = Port("private", "Dataset", "private", made_by="prepare", output="private")
_RELEASED = Port("released", "Dataset", "released", made_by="anonymize", made_for="key", output="released")


def _trained(model: str) -> tuple[Port, ...]:
    """Return the outputs of a training, of which the first holds ``model``."""
    return (
        Port("model", "Model", holds=model),
        Port(
            "metrics",
            "Metrics",
            copy_of="model/metrics.json",
            holds="flat numbers of the training, shown on Kubeflow's page",
        ),
        Port("curve", "Dataset", copy_of="model/curve.csv", holds="training curve (step, loss)"),
    )


_TRAINED = _trained("model.safetensors, model.json, curve.csv, metrics.json")
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
        (
            replace(
                _PUBLIC,
                holds="splits `extractor`, `synthesis`, `pool`, `attacker` (audio and F0 shards, tables) and"
                " corpus.json",
            ),
            replace(_PRIVATE, holds="the speakers to be protected: their split, trial lists, corpus.json"),
        ),
        sections=("prepare",),
        packages=(
            *_COMMON,
            "corpus",
            "audio",
            "features/pitch/yaapt",
            "stages/prepare_pool.py",
        ),
        # Which version of its source prepare reads is no output of a stage.
        files=("${prepare.manifest}",),
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
        (
            Port(
                "model", "Model", path="models/${key}", holds="bundle.json, safetensors, pool.npz, SHA256SUMS"
            ),
        ),
        keyed="system",
        sections=("bundle",),
        packages=(*_COMMON, "privacy", "features/speaker", "anonymize/bundle.py"),
    ),
    StageSpec(
        "anonymize",
        "release anonymized speech of the private speakers and the attacker's training set",
        (Port("model", "Model", made_by="bundle", made_for="key"), _PUBLIC, _PRIVATE),
        (
            Port("attacker", "Dataset", holds="the attacker's training set, anonymized with the same policy"),
            Port(
                "released",
                "Dataset",
                "released",
                holds="anonymized speech (FLAC shards, tables) and ledger.json",
            ),
            Port(
                "samples",
                "Dataset",
                path="outputs/samples/${key}",
                located=True,
                holds="up to three public pairs that the report may play; none unless the corpus is public",
            ),
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
        services=("ledger", "store"),
    ),
    StageSpec(
        "train_attacker",
        "train the attackers on anonymized public speech",
        (Port("attacker", "Dataset", made_by="anonymize", made_for="key", output="attacker"),),
        _trained("a folder for each attacker; curve.csv, metrics.json, fusion.json"),
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
        (
            Port(
                "scores",
                "Dataset",
                "private",
                located=True,
                holds="scores.txt, trials.txt and rank.npz per attacker and scenario",
            ),
        ),
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
        (Port("transcripts", "Dataset", "private", holds="recognized phones and error rate"),),
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
        (
            Port(
                "metrics", "Metrics", located=True, holds="full JSON per attacker and scenario, summary.json"
            ),
            Port(
                "flat",
                "Metrics",
                copy_of="metrics/{key}.metrics.json",
                path="metrics/${key}.metrics.json",
                holds="flat numbers under their MLflow names, shown on Kubeflow's page",
            ),
        ),
        keyed="system",
        sections=("evaluate",),
        base=("base",),
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
        (Port("report", "HTML", holds="the page, its figures and results.json"),),
        sections=("report", "systems"),
        base=("base",),
        packages=(*_COMMON, "metrics", "results", "tracking", *_AUDIO_IO),
        cacheable=False,
        services=("mlflow",),
        collects=(
            (
                "training",
                "`TRAINING FINGERPRINT` of every training: their runs in MLflow are linked to this one",
            ),
            (
                "scores",
                "`SYSTEM URI DIGEST` of every system's scores: never read, only left in MLflow for"
                " `voxveil pipeline fetch`",
            ),
        ),
    ),
)


def stage_spec(name: str) -> StageSpec:
    """Return the stage called ``name`` (``train_pitch`` or ``train-pitch``)."""
    for spec in STAGES:
        if name in (spec.name, spec.command):
            return spec
    known = ", ".join(spec.command for spec in STAGES)
    raise InputError(f"no stage {name!r}; stages: {known}")
