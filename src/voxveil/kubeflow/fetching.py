"""Download of a finished pipeline run's results into the layout of a local run.

Everything is fetched beside its place and held against its digest first; only when all of it is there does
anything get its place. A fetch that is killed leaves whole outputs or none, and can be run again.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from voxveil.config import Params, load_params, parse_params
from voxveil.config.compose import params_text, was_edited
from voxveil.config.older import renamed_content
from voxveil.kubeflow.fan_in import location, read_locations
from voxveil.kubeflow.local import RECORD
from voxveil.kubeflow.locations import REPORT, Locations, find_locations
from voxveil.kubeflow.server import Server
from voxveil.kubeflow.store import check_reachable, fetch, seen_from
from voxveil.kubeflow.submitting import find_started
from voxveil.runtime.atomic import read_json, whole_directory, write_text
from voxveil.runtime.done import DONE, require_done
from voxveil.runtime.errors import InputError, ParamsError, VoxveilError
from voxveil.tracking.client import connect_to_read
from voxveil.tracking.store import resolve_store

__all__ = ["Finished", "fetch_results", "finished_here", "finished_on_server"]

#: Output folder of each task of a local run whose location it reports, by the stage that makes it.
_LOCATED = {"evaluate": "metrics", "score": "scores"}


@dataclass(frozen=True)
class Finished:
    """A successful pipeline run.

    Attributes:
        name: What people call it, for messages.
        params: The parameters it ran with.
        locations: Where its outputs lie.
    """

    name: str
    params: Params
    locations: Locations


def finished_here(root: Path) -> Finished:
    """Return the run that ``voxveil pipeline run --local`` left in a folder, wherever that is now.

    Raises:
        InputError: It is no such folder, or the run has not ended well.
    """
    if not (root / RECORD).is_file():
        raise InputError(f"{root}: no folder of 'voxveil pipeline run --local' (no {RECORD})")
    content = read_json(root / RECORD)
    try:
        state, params = content["state"], content["arguments"].get("params")
        tasks = {str(task): dict(values) for task, values in content["tasks"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise InputError(f"{root / RECORD}: not the record of a local run") from None
    if state == "RUNNING":
        raise InputError(f"{root}: the run is still RUNNING, or was killed; only a finished one is fetched")
    if state != "SUCCEEDED":
        raise InputError(f"{root}: the run is {state}; only one that SUCCEEDED is fetched")
    found: dict[str, dict[str, str]] = {stage: {} for stage in _LOCATED}
    report = ""
    for task, values in sorted(tasks.items()):
        for stage, output in _LOCATED.items():
            if text := values.get(f"{output}_location"):
                ((system, _, digest),) = read_locations([text], f"{output}_location")
                found[stage][system] = location(system, str(root / task / output), digest)
        if whole := values.get("report_digest"):
            report = location(REPORT, str(root / task / "report_files"), str(whole))
    if not report:
        raise InputError(
            f"{root}: the pipeline {content.get('pipeline')} has no report; there is none to fetch"
        )
    return Finished(str(root), _params(params, str(root)), Locations(**found, report=report))


def finished_on_server(server: Server, experiment: str, text: str) -> Finished:
    """Return a run of a Kubeflow server by its id or name; MLflow has the locations of its outputs.

    Args:
        server: The server.
        experiment: Kubeflow's experiment, for names.
        text: Id or name.

    Raises:
        InputError: There is no such run, it has not ended well, or MLflow does not know it.
        KubeflowError: The server is away or refuses.
        TrackingError: MLflow is away or refuses.
    """
    run = find_started(server, experiment, text)
    name = f"run {run.run_id}"
    if run.state != "SUCCEEDED":
        raise InputError(f"{name} is {run.state or 'not started'}; only one that SUCCEEDED is fetched")
    params = _params(_given(server, run, name), name)
    tracker = connect_to_read(resolve_store(), f"{name}: where its outputs lie stands in MLflow")
    return Finished(name, params, find_locations(tracker, str(run.run_id)))


def fetch_results(run: Finished, project: Path, *, scores: bool = False, endpoint: str = "") -> list[str]:
    """Fetch the results of a run into ``project`` and return one line per output.

    Args:
        run: The run.
        project: A checkout without outputs, a new folder, or one where results of this run lie already.
        scores: Also the scores, which name private utterances.
        endpoint: Address of the S3 server as seen from here, where the pods use another.

    Raises:
        InputError: ``project`` holds something else, or an output is gone or is not what the run made;
            nothing was put into place.
    """
    project, wanted = Path(project), _wanted(run)
    present = _check_project(run, project, wanted)
    chosen = {output: text for output, text in wanted.items() if scores or not output.startswith("score/")}
    missing = {output: _seen(text, endpoint) for output, text in chosen.items() if output not in present}
    for _, uri, _ in missing.values():
        check_reachable(uri)
    outputs = project / "outputs"
    absent = [folder for folder in (outputs, *outputs.absolute().parents) if not folder.exists()]
    try:
        # Locked until everything has its place: of two at once the second is refused.
        with whole_directory(outputs / ".fetched") as locked:
            with whole_directory(locked / "all") as folder:
                for output, (key, uri, digest) in missing.items():
                    _fetch_one(output, key, uri, digest, folder / output)
            if _check_project(run, project, wanted) != present:
                raise InputError(f"{outputs}: another process wrote into it; run this again")
            lines = [_write_params(run, project)]
            for output in missing:
                target = outputs / output
                target.parent.mkdir(parents=True, exist_ok=True)
                (locked / "all" / output).replace(target)
    finally:
        shutil.rmtree(outputs / ".fetched", ignore_errors=True)
        for folder in absent:
            with suppress(OSError):
                folder.rmdir()
    for output in chosen:
        lines.append(f"{outputs / output}: {'was there' if output in present else 'fetched'}")
    return lines


def _wanted(run: Finished) -> dict[str, str]:
    """Return the location of each output by its place below ``outputs``, every system's of the parameters."""
    found = {"report": run.locations.report}
    for stage, texts in (("evaluate", run.locations.evaluate), ("score", run.locations.score)):
        if set(texts) != set(run.params.systems):
            raise InputError(
                f"{run.name}: has {stage} of systems {', '.join(sorted(texts)) or 'none'}, its parameters"
                f" name {', '.join(sorted(run.params.systems))}"
            )
        found |= {f"{stage}/{system}": texts[system] for system in run.params.systems}
    return dict(sorted(found.items()))


def _check_project(run: Finished, project: Path, wanted: Mapping[str, str]) -> set[str]:
    """Raise an error if the project holds other results; return the outputs of this run in it."""
    path, outputs = project / "params.yaml", project / "outputs"
    for folder in (project, outputs):
        if os.path.lexists(folder) and not folder.is_dir():
            what = "a link to nothing" if folder.is_symlink() and not folder.exists() else "a file"
            raise InputError(f"{folder}: is {what}; it must be a folder")
    if path.is_dir():
        raise InputError(f"{path}: is a folder; it must be a file")
    if not _same_params(path, run.params) and was_edited(project, or_set=True):
        raise InputError(f"{path}: is another than that of {run.name}; fetch into another folder")
    stages = {output.partition("/")[0] for output in wanted}
    present = set()
    for output in _found(outputs, stages):
        try:
            ((_, _, digest),) = read_locations([wanted[output]], output)
            require_done(outputs / output, output, digest=digest)
        except (KeyError, VoxveilError):
            raise InputError(
                f"{outputs / output}: is not of {run.name}; fetch into another folder, or remove it"
            ) from None
        present.add(output)
    return present


def _found(outputs: Path, stages: set[str]) -> list[str]:
    """Return the outputs in ``outputs``, one per system where a stage has an output per system."""
    found = []
    for entry in sorted(outputs.iterdir()) if outputs.is_dir() else []:
        if entry.name.startswith("."):
            continue
        if entry.name in stages - {"report"} and entry.is_dir():
            inner = (path.name for path in sorted(entry.iterdir()) if not path.name.startswith("."))
            found += [f"{entry.name}/{name}" for name in inner]
        else:
            found.append(entry.name)
    return found


def _same_params(path: Path, params: Params) -> bool:
    try:
        return path.is_file() and load_params(path) == params
    except ParamsError:
        return False


def _write_params(run: Finished, project: Path) -> str:
    path = project / "params.yaml"
    if _same_params(path, run.params):
        return f"{path}: is that of the run"
    write_text(path, params_text(run.params, command="voxveil pipeline fetch"))
    return f"{path}: written, as the run had it"


def _seen(text: str, endpoint: str) -> tuple[str, str, str]:
    ((key, uri, digest),) = read_locations([text], "location")
    return key, seen_from(uri, endpoint), digest


def _fetch_one(output: str, key: str, uri: str, digest: str, folder: Path) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    fetch(uri, folder)
    try:
        done = require_done(folder, output, digest=digest)
    except VoxveilError as error:
        # The folder it speaks of is about to vanish; what people can look at is the store.
        raise InputError(
            f"{uri}: is not what the run made: {str(error).replace(str(folder), '...')}"
        ) from None
    stage, made_for = output.partition("/")[0], None if key == REPORT else key
    files = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    if unknown := sorted(set(files) - set(done.files) - {DONE}):
        raise InputError(f"{uri}: is not what the run made: {unknown[0]} came later")
    if (done.stage, done.key) != (stage, made_for):
        raise InputError(f"{uri}: is output of {done.stage} {done.key or ''}, must be of {output}")


def _given(server: Server, run: Any, name: str) -> Any:
    """Return the parameter ``params`` of a run: as it was started with, or the pipeline's default."""
    given = (run.runtime_config.parameters or {}) if run.runtime_config else {}
    if "params" in given:
        return given["params"]
    spec, reference = run.pipeline_spec, run.pipeline_version_reference
    if spec is None and reference is not None:
        spec = server.compiled(reference.pipeline_id, reference.pipeline_version_id)
    try:
        # With a second document, for Kubernetes, the first one is wrapped.
        root = spec.get("pipeline_spec", spec)["root"]
        return root["inputDefinitions"]["parameters"]["params"]["defaultValue"]
    except (AttributeError, KeyError, TypeError):
        raise InputError(f"{name}: its parameters are gone with the version of its pipeline") from None


def _params(content: Any, name: str) -> Params:
    try:
        params = parse_params(renamed_content(content), complete=True)
    except ParamsError as error:
        raise ParamsError(f"{name}: its parameters are not of this version of voxveil: {error}") from None
    # Kubeflow keeps no order. The original first, as the pipeline has it.
    systems = dict(sorted(params.systems.items(), key=lambda named: (named[1].kind != "original", named[0])))
    return replace(params, systems=systems)
