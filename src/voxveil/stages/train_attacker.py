"""Stage train_attacker: train the attackers on the attacker split, anonymized by the attacked system.

Each kind of ``train_attacker.kinds`` lies in a folder of its own below the model (``KIND/``, further
seeds ``KIND.seedN/``), with ``fusion.json`` beside them where they are fused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from voxveil.attack.attackers.interface import TrainedAttacker, TrainingSetup
from voxveil.attack.attackers.registry import attacker_folder, listed_kinds, seeds_of, train_attacker
from voxveil.attack.fusion import fuse_attackers, hold_out
from voxveil.config.networks import TrainAttackerParams
from voxveil.corpus.split import Speech, Split
from voxveil.runtime.atomic import write_json
from voxveil.stages.context import StageContext
from voxveil.tracking.models.fetching import locate_pretrained
from voxveil.training.checkpoint import write_curve

__all__ = ["run", "with_local_models"]

_NO_CURVE = [{"step": 0.0, "loss": 0.0}]


def run(context: StageContext) -> None:
    """Write the attackers, ``curve.csv`` (of the first kind) and ``metrics.json``."""
    params, seed = context.params.train_attacker, context.params.base.seed
    kinds = listed_kinds(params.kinds)
    params = with_local_models(params)
    speech: Speech = Split(context.inputs["attacker"])
    held = None
    if params.fusion_speakers:
        speech, held = hold_out(speech, params.fusion_speakers, seed)
    folder = context.outputs["model"]
    first: dict[str, TrainedAttacker] = {}
    for kind in kinds:
        for number in seeds_of(kind, params.seeds):
            name = attacker_folder(kind, number)
            sink = context.sink if (kind, number) == (kinds[0], 1) else None
            setup = TrainingSetup(params, context.system.state, seed, context.checkpoints / name, sink)
            trained = train_attacker(kind, speech, setup, number)
            (folder / name).mkdir()
            trained.attacker.save(folder / name)
            write_curve(folder / name, trained.curve or _NO_CURVE)
            first.setdefault(kind, trained)
    if held is not None:
        fuse_attackers([result.attacker for result in first.values()], held).save(folder)
    write_curve(folder, first[kinds[0]].curve or _NO_CURVE)
    write_json(folder / "metrics.json", _numbers(context.key, first))


def with_local_models(params: TrainAttackerParams) -> TrainAttackerParams:
    """Return the parameters with the local folder of each imported model that an attacker of them reads.

    Raises:
        InputError: A model does not exist, or is of another kind.
        IncompleteInputError: A file of a model is missing or differs from its checksum.
    """
    found: dict[str, Any] = {}
    for name, kind in (("pretrained", "speaker"), ("wavlm", "features")):
        text = getattr(params, name)
        if text and any(attacker.startswith(name) for attacker in listed_kinds(params.kinds)):
            found[name] = str(locate_pretrained(text, kind, f"train_attacker.{name}").folder)
    return replace(params, **found)


def _numbers(key: str, trained: dict[str, TrainedAttacker]) -> dict[str, float]:
    """Return accuracy and loss by name; names of the first kind do not hold its kind."""
    numbers = {}
    for index, (kind, result) in enumerate(trained.items()):
        where = f"train_attacker/{key}" if index == 0 else f"train_attacker/{key}/{kind}"
        if result.accuracy is not None:
            numbers[f"{where}/accuracy"] = result.accuracy
        if result.curve:
            numbers[f"{where}/loss"] = result.curve[-1]["loss"]
    return numbers
