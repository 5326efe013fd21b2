"""The one table of stages: name, key, inputs, outputs and what they need.

The command line, the pods of Kubeflow and the tests read this table. dvc.yaml, the Kubeflow
components, their documents, the network policies and the tables of costs are generated from it
(``make generate``, which runs :mod:`voxveil.kubeflow.generation`).
"""

from __future__ import annotations

from dataclasses import replace

from voxveil.runtime.errors import InputError
from voxveil.stages.declaration import Port, StageSpec

__all__ = ["STAGES", "Port", "StageSpec", "stage_spec"]

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
    "stages/declaration.py",
    "stages/registry.py",
)
_AUDIO_IO = ("audio/files.py", "audio/containers.py", "audio/frames.py")
_CURVES = tuple(f"tracking/{name}.py" for name in ("client", "mlflow_names", "sender", "store", "stream"))
#: Resolution of the models that parameters name.
_MODELS = ("pretrained", "tracking/models/addresses.py", "tracking/models/fetching.py")
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
        packages=(*_TRAIN, "synthesis", *_MODELS, "features/speaker/clips.py"),
        torch=True,
        gpu=True,
        services=("store",),
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
        packages=(*_TRAIN, "features/speaker", "attack", *_MODELS),
        torch=True,
        gpu=True,
        cacheable=False,
        services=("store",),
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
            "pretrained",
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
            "features/speaker/clips.py",
            "privacy",
            "training",
            "metrics/data.py",
            "metrics/intervals.py",
            *_MODELS,
            "utility",
        ),
        torch=True,
        gpu=True,
        cacheable=False,
        # No MLflow: it holds private speech.
        services=("store",),
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
