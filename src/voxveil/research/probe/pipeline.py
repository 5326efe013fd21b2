"""The DVC pipeline of a feature-level experiment: a stage per variant, a stage per variant and draw.

It is written out in full, so that ``dvc repro`` resumes it at the first unfinished stage and every
stage depends on its own parameters and code only.

A stage measures and stores one probe, as do ``voxveil probe pitch|content`` and the steps of a cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from voxveil.config import Params
from voxveil.runtime.atomic import whole_directory, write_json
from voxveil.runtime.done import Done, finish, require_done
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.registry import StageSpec, stage_spec

__all__ = [
    "CODE",
    "FEATURES",
    "GATHER_CODE",
    "PROBED",
    "PROBES",
    "PROBE_CODE",
    "draws_of",
    "dvc_yaml",
    "make_probe",
    "probe_folder",
]

#: File beside dvc.yaml with the digest of each stage's code.
CODE = "code.json"
#: What is probed, and the stage that trains it.
PROBED = {"pitch": "train_pitch", "content": "train_content"}
#: Where all probes, and the table made of them, lie in an experiment.
PROBES = "outputs/probe"
FEATURES = "outputs/features"
_PUBLIC = "outputs/prepare/public"

#: Packages and modules that a probe's numbers depend on: a change of one measures again.
PROBE_CODE = (
    "research/probe",
    "research/decoding",
    "research/params.py",
    "research/asi",
    "features/content",
    "features/pitch",
    "metrics",
    "privacy",
    "training",
    "utility",
)
#: What the table, figures and page of an experiment depend on.
GATHER_CODE = tuple(
    f"research/probe/{name}.py" for name in ("experiment", "experiment_figures", "facts", "gather")
)


def probe_folder(kind: str, variant: str, draw: int) -> str:
    """Return where a probe writes, relative to the experiment."""
    return f"{PROBES}/{kind}/{variant}/draw-{draw}"


def draws_of(params: Params, kind: str, variant: str, draws: int) -> range:
    """Return the draw numbers of a variant; a single draw without noise."""
    mechanism = getattr(params, stage_spec(PROBED[kind]).table)[variant].mechanism
    return range(1, (1 if mechanism == "identity" else draws) + 1)


def dvc_yaml(params: Params, draws: int) -> str:
    """Return the text of dvc.yaml.

    Args:
        params: All parameters; every pitch and content variant is trained and probed.
        draws: Draws of the noise per variant with noise, at least 1; a variant without has one.
    """
    stages: dict[str, Any] = {"prepare": _prepare()}
    gathered = []
    for kind, trainer in PROBED.items():
        for variant in stage_spec(trainer).keys(params):
            stages[f"{trainer}-{variant}"] = _train(stage_spec(trainer), variant)
            for draw in draws_of(params, kind, variant, draws):
                stages[f"probe-{kind}-{variant}-{draw}"] = _probe(kind, trainer, variant, draw)
                gathered.append(probe_folder(kind, variant, draw))
    stages["gather"] = {
        "cmd": f"voxveil probe gather {PROBES} --out {FEATURES}",
        "deps": gathered,
        "params": [{CODE: ["gather"]}],
        "outs": [FEATURES],
    }
    return yaml.safe_dump({"stages": stages}, sort_keys=False, width=100)


def _prepare() -> dict[str, Any]:
    outs = [_PUBLIC, "outputs/prepare/private"]
    ports = " ".join(f"--out {out.rpartition('/')[2]}={out}" for out in outs)
    return {
        "cmd": f"voxveil stage prepare --params params.yaml {ports}",
        "params": ["base", "prepare", {CODE: ["prepare"]}],
        "outs": outs,
    }


def _train(spec: StageSpec, variant: str) -> dict[str, Any]:
    model, rest = f"outputs/{spec.name}/{variant}", f"metrics/{spec.name}/{variant}"
    return {
        "cmd": f"voxveil stage {spec.command} --key {variant} --params params.yaml --in public={_PUBLIC}"
        f" --out model={model} --out metrics={rest}.json --out curve={rest}.csv",
        "deps": [_PUBLIC],
        "params": ["base", spec.name, f"{spec.table}.{variant}", {CODE: [spec.name]}],
        "outs": [model, f"{rest}.json", f"{rest}.csv"],
    }


def _probe(kind: str, trainer: str, variant: str, draw: int) -> dict[str, Any]:
    model, out = f"outputs/{trainer}/{variant}", probe_folder(kind, variant, draw)
    return {
        "cmd": f"voxveil probe {kind} --variant {variant} --draw {draw} --params params.yaml"
        f" --public {_PUBLIC} --model {model} --out {out}",
        "deps": [_PUBLIC, model],
        "params": ["base", "asi", "probe", {CODE: ["probe"]}],
        "outs": [out],
    }


def make_probe(
    kind: str, public: Path, model: Path, out: Path, params: Params, variant: str, draw: int
) -> Done:
    """Measure one draw of one variant, and write ``probe.json`` into a finished folder.

    Args:
        kind: ``pitch`` or ``content``.
        public: Public output of prepare. That it is whole the caller has checked, who may know its digest.
        model: What the training of the variant wrote.
        out: Folder of the probe; replaced whole.
        params: All parameters.
        variant: Name of the variant.
        draw: Number of the draw of its noise, from 1 on.

    Raises:
        ParamsError: There is no such variant.
        InputError: The model is of another variant, or there is no such draw.
    """
    trainer = PROBED[kind]
    table = stage_spec(trainer).table
    variants = getattr(params, table)
    if variant not in variants:
        raise ParamsError(f"{table}: no variant {variant!r}; known: {', '.join(variants) or 'none'}")
    if draw < 1:
        raise InputError(f"the draw of a probe must be at least 1, got {draw}")
    done = require_done(model, "model")
    if (done.stage, done.key) != (trainer, variant):
        raise InputError(
            f"{model} is output of {done.stage}[{done.key}]; needed is that of {trainer}[{variant}]"
        )
    from voxveil.training.loop import use_threads

    use_threads(params.base.threads)
    if kind == "pitch":
        from voxveil.research.probe.pitch import probe_pitch

        result = probe_pitch(public, model, params, variant, draw)
    else:
        from voxveil.research.probe.content import probe_content

        result = probe_content(public, model, params, variant, draw)
    with whole_directory(out) as folder:
        write_json(folder / "probe.json", result)
        return finish(folder, f"probe_{kind}", variant)
