"""Step ``prepare_revision``: fetch a version of a dataset by DVC, then run the stage prepare on it.

One pod does both, so the recordings exist once and are gone when it ends. A schedule runs with nobody
watching: it takes public data only.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from voxveil.config.compose import to_mapping
from voxveil.datasets.getting import get_version
from voxveil.kubeflow.steps.call import StepCall, StepResult
from voxveil.runtime.atomic import write_json
from voxveil.runtime.errors import PrivacyError
from voxveil.stages.run import run_stage

__all__ = ["run"]


def run(call: StepCall) -> StepResult:
    """Fetch, check, prepare.

    Raises:
        PrivacyError: Dataset or parameters are not declared public; nothing was fetched.
    """
    if not call.params.prepare.public:
        raise PrivacyError(
            "prepare.public: must be true; data not declared public are not trained on by a schedule"
        )
    repository, dataset, revision = (call.text(name) for name in ("repository", "dataset", "revision"))
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        folder = Path(scratch) / dataset
        face, commit = get_version(repository, dataset, revision, folder, public_only=True)
        params = to_mapping(call.params)
        params["prepare"] |= {"source": str(folder)}
        write_json(Path(scratch) / "params.json", params)
        done = run_stage("prepare", Path(scratch) / "params.json", {}, call.outputs)
    print(f"{dataset}: commit {commit}, {face.utterances} utterances")
    return StepResult(done, {"commit": commit})
