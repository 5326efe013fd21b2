"""What a finished run leaves: a chain as DVC would have it, objects in a store, a database of MLflow."""

from __future__ import annotations

import json
import os
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path

import messages
import pytest
from s3_server import Store

from made_outputs import SYSTEMS, evaluate, make_outputs
from voxveil.config.compose import to_mapping
from voxveil.kubeflow.adapter import run_executor_input
from voxveil.kubeflow.fan_in import location
from voxveil.runtime.done import require_done

RUN = "0b5c2f66-run"
CHOSEN = {name: SYSTEMS[name] for name in ("original", "anon")}
#: Where outputs lie in the store; what was retried or cached lies elsewhere than the rest.
PLACES = {"evaluate": "runs/root/new", "score": "runs/root/older", "samples": "runs/root/older"}


@dataclass
class Ran:
    """What the run left.

    Attributes:
        chain: Its outputs and parameters, as in a checkout.
        database: MLflow's, with what the report published.
        objects: Of the S3 store.
    """

    chain: Path
    database: Path
    objects: dict[str, bytes] = field(default_factory=dict)


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def run_report(root: Path, empty_store: Path) -> Ran:
    """Evaluate two systems, then run the report as its pod would, with a store and MLflow at hand."""
    made = Ran(root / "chain", root / "mlflow.db")
    shutil.copy(empty_store, made.database)
    params = make_outputs(made.chain, CHOSEN, samples=False)
    for system in CHOSEN:
        evaluate(made.chain, system)
    texts: dict[str, list[str]] = {stage: [] for stage in PLACES}
    for stage, place in PLACES.items():
        for system in CHOSEN:
            folder, key = made.chain / "outputs" / stage / system, f"{place}/{stage}-{system}"
            made.objects |= {f"{key}/{name}": data for name, data in tree(folder).items()}
            texts[stage].append(location(system, f"s3://{key}", require_done(folder, stage).digest))
    values = {"params": messages.as_floats(to_mapping(params)), "training": [], "scores": texts["score"]}
    values |= {"metrics": texts["evaluate"], "samples": texts["samples"]}
    call = messages.message(
        "report", root / "out", values, {}, report_files="s3://runs/root/new/report_files"
    )
    written = call["outputs"]["artifacts"]["report_files"]["artifacts"][0]
    written["customPath"] = str(made.chain / "outputs/report")
    server = Store()
    server.objects = made.objects
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith(("MLFLOW_", "DVC_", "KFP_", "AWS_"))]:
            patch.delenv(name)
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{made.database}")
        patch.setenv("VOXVEIL_TRACKING", "on")
        patch.setenv("KFP_RUN_ID", RUN)
        patch.setenv("AWS_ENDPOINT_URL", server.url)
        patch.setenv("AWS_ACCESS_KEY_ID", "key")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        assert run_executor_input("report", json.dumps(call)) == 0
    server.shutdown()
    server.server_close()
    report = tree(made.chain / "outputs/report")
    made.objects |= {f"runs/root/new/report_files/{name}": data for name, data in report.items()}
    return made
