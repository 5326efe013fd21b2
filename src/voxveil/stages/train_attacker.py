"""Train the attacker's speaker encoder on the attacker split as the attacked system renders it."""

from __future__ import annotations

from voxveil.attack.ecapa import EcapaAttacker
from voxveil.corpus.split import Split
from voxveil.stages.io import StageContext
from voxveil.storage.atomic import write_json
from voxveil.training.outputs import write_curve

__all__ = ["run"]


def run(context: StageContext) -> None:
    """Write the attacker, ``curve.csv`` and ``metrics.json``."""
    split = Split(context.inputs["attacker"])
    attacker, result = EcapaAttacker.train(
        split,
        context.params.train_attacker,
        training=context.system.kind,
        seed=context.params.base.seed,
        checkpoints=context.checkpoints,
        sink=context.sink,
    )
    folder = context.outputs["model"]
    attacker.save(folder)
    write_curve(folder, result.curve)
    write_json(
        folder / "metrics.json",
        {
            f"train_attacker/{context.key}/accuracy": result.accuracy,
            f"train_attacker/{context.key}/loss": result.curve[-1]["loss"],
        },
    )
