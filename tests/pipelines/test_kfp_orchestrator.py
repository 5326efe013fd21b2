"""kfp's own local orchestrator runs the compiled pipeline through our adapter, with stand-in stages.

Only its Docker call is replaced: the command it would give to a container goes to the command line
of this process. So what kfp renders for ``{{$}}`` and what it reads back are kfp's, not ours.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import goldens
import messages
import pytest

from voxveil.cli.main import main
from voxveil.stages.registry import STAGES
from voxveil.stages.training_runs import training_name

kfp = pytest.importorskip("kfp", reason="needs the pipeline extra")
pytest.importorskip("docker", reason="needs the pipeline extra")


# Resources, GPUs and display names mean nothing to a local runner; kfp says so for every task.
pytestmark = pytest.mark.filterwarnings("ignore:Task .* have no effect in the current local runner")


@pytest.fixture
def recorders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, messages.Recorder]:
    from kfp.local import docker_task_handler, status

    monkeypatch.setenv("VOXVEIL_CHECKPOINTS", str(tmp_path / "checkpoints"))
    made = {spec.name: messages.Recorder(spec, {"privacy/eer": 12.5}) for spec in STAGES}
    for name, recorder in made.items():
        monkeypatch.setitem(sys.modules, f"voxveil.stages.{name}", recorder)

    def run(self: Any) -> Any:
        assert self.full_command[0] == "voxveil"
        return status.Status.SUCCESS if main(self.full_command[1:]) == 0 else status.Status.FAILURE

    monkeypatch.setattr(docker_task_handler.DockerTaskHandler, "run", run)
    kfp.local.init(runner=kfp.local.DockerRunner(), pipeline_root=str(tmp_path / "root"))
    return made


def test_every_task_runs_once_and_the_report_sees_every_system(
    recorders: dict[str, messages.Recorder], tmp_path: Path
) -> None:
    seen: dict[str, list[str]] = {}
    reported: dict[str, str] = {}
    report = recorders["report"]

    def run(context: Any) -> None:
        reported.update(context.training)
        for port in ("metrics", "samples"):
            seen[port] = sorted(folder.name for folder in context.inputs[port].iterdir())
        messages.Recorder.run(report, context)

    report.run = run
    pipeline = kfp.components.load_component_from_text(goldens.compiled("tiny"))
    pipeline(params=messages.tiny())

    params = messages.tiny_params()
    keys = {
        "": [""],
        "system": list(params.systems),
        "pitch_variant": list(params.pitch_variants),
        "content_variant": list(params.content_variants),
    }
    for spec in STAGES:
        ran = sorted(context.key for context in recorders[spec.name].contexts)
        assert ran == sorted(keys[spec.keyed]), spec.name
    assert reported == {
        training_name(spec, context.key): context.fingerprint
        for spec in STAGES
        if spec.trains
        for context in recorders[spec.name].contexts
    }
    assert seen == {port: sorted(params.systems) for port in ("metrics", "samples")}
    assert all(
        context.params == params for recorder in recorders.values() for context in recorder.contexts
    ), "whole numbers came back as something else"
