"""Run of one stage: check of inputs and parameters, the stage itself, atomic replacement of its outputs."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from voxveil.config import Params, load_params, original_system
from voxveil.config.compose import to_mapping
from voxveil.runtime.atomic import whole_directory, write_bytes, write_json
from voxveil.runtime.done import Done, finish, require_done
from voxveil.runtime.errors import InputError, ParamsError
from voxveil.stages.context import Share, StageContext
from voxveil.stages.registry import STAGES, Port, StageSpec, stage_spec
from voxveil.stages.torchrun import run_by_torchrun, training_processes
from voxveil.tracking.stream import training_sink

__all__ = [
    "SHARE",
    "checkpoint_root",
    "code_digest",
    "code_digests",
    "fingerprint",
    "made_for",
    "run_share",
    "run_stage",
]

#: In the folder of a share: which it is and what it was made from.
SHARE = "share.json"


def run_stage(
    name: str,
    params_path: Path,
    inputs: Mapping[str, Path],
    outputs: Mapping[str, Path],
    *,
    key: str = "",
    digests: Mapping[str, str] | None = None,
    training: Mapping[str, str] | None = None,
) -> dict[str, Done]:
    """Run stage ``name`` and return the completion record of each output.

    Args:
        name: Stem or command name of the stage.
        params_path: params.yaml.
        inputs: Folder of each declared input.
        outputs: Folder of each declared output; replaced whole.
        key: System or variant, where the stage has one.
        digests: Digest an input must have, where the caller knows one.
        training: Fingerprint of each training behind the inputs, where the caller knows them.

    Raises:
        VoxveilError: Nothing was written.
    """
    spec = stage_spec(name)
    params = load_params(params_path)
    _check_ports(spec, "--in", spec.inputs, inputs)
    _check_ports(spec, "--out", spec.outputs, outputs)
    _check_outputs(spec, outputs)
    _check_names(spec, "--digest", digests or {}, inputs)
    _check_key(spec, key, params)
    processes = training_processes(spec, params)
    context, _ = _context(spec, key, params, inputs, digests or {})
    with ExitStack() as stack:
        folders = {
            port.name: stack.enter_context(whole_directory(Path(outputs[port.name])))
            for port in spec.outputs
            if not port.copy_of
        }
        context = replace(context, outputs=folders, training=dict(training or {}))
        if processes > 1:
            run_by_torchrun(context, processes)
        else:
            if spec.trains:
                # Before the stage's imports: MLflow's own take as long.
                context = replace(context, sink=stack.enter_context(training_sink(context)))
            _run_module(spec, context)
        results = {name: finish(folder, spec.name, key or None, name) for name, folder in folders.items()}
    for port in spec.outputs:
        if port.copy_of:
            source, _, file = port.copy_of.format(key=key).partition("/")
            write_bytes(Path(outputs[port.name]), (Path(outputs[source]) / file).read_bytes())
    shutil.rmtree(context.checkpoints, ignore_errors=True)
    return results


def run_share(
    name: str,
    params: Params,
    inputs: Mapping[str, Path],
    output: Path,
    share: Share,
    *,
    key: str,
    digests: Mapping[str, str] | None = None,
) -> Done:
    """Run one share of stage ``name`` and return the completion record of what it leaves.

    That is one folder with a folder for each output of the stage and ``share.json``. It is no output of the
    stage, and no other stage takes it, until all shares are gathered (:mod:`voxveil.stages.gathering`).

    Args:
        name: Stem of a stage whose work can be shared.
        params: The parameters.
        inputs: Folder of each declared input.
        output: Folder of the share; replaced whole.
        share: Which share.
        key: System.
        digests: Digest an input must have, where the caller knows one.

    Raises:
        VoxveilError: Nothing was written.
    """
    spec = stage_spec(name)
    if not spec.shared:
        able = ", ".join(other.command for other in STAGES if other.shared)
        raise InputError(f"stage {spec.command}: its work cannot be shared between pods; that of {able} can")
    _check_ports(spec, "--in", spec.inputs, inputs)
    _check_names(spec, "--digest", digests or {}, inputs)
    _check_key(spec, key, params)
    context, done_in = _context(spec, key, params, inputs, digests or {})
    with whole_directory(Path(output)) as folder:
        outputs = {port.name: folder / port.name for port in spec.outputs}
        for path in outputs.values():
            path.mkdir()
        _run_module(spec, replace(context, outputs=outputs, share=share))
        facts = {"share": str(share), "fingerprint": context.fingerprint, "inputs": done_in}
        write_json(folder / SHARE, {"format": 1, **facts})
        return finish(folder, f"{spec.name}_share", key, "made")


def checkpoint_root() -> Path:
    """Return the folder of all checkpoints: VOXVEIL_CHECKPOINTS, else ``.voxveil/checkpoints``."""
    return Path(os.environ.get("VOXVEIL_CHECKPOINTS") or ".voxveil/checkpoints")


def fingerprint(spec: StageSpec, key: str, params: Params, inputs: Mapping[str, str]) -> str:
    """Hash what decides a stage's result: its parameters, inputs and code.

    A checkpoint is resumed only under the same fingerprint.
    """
    everything = to_mapping(params)
    sections = {section: everything[section] for section in ("base", *spec.sections)}
    # The name of the scale decides nothing: what two scales share is the same.
    sections["base"] = {name: value for name, value in sections["base"].items() if name != "scale"}
    if spec.keyed:
        sections[spec.table] = {key: everything[spec.table][key]}
    code = code_digests(spec)
    content = json.dumps(
        {"stage": spec.name, "key": key, "params": sections, "inputs": dict(inputs), "code": code},
        sort_keys=True,
    )
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def code_digests(spec: StageSpec) -> dict[str, str]:
    """Return the SHA-256 of each package and module that a stage's results depend on."""
    return {name: code_digest(name) for name in (*spec.packages, f"stages/{spec.name}.py")}


def code_digest(name: str) -> str:
    """Return the SHA-256 over the Python files of a module or package, e.g. ``privacy``.

    Raises:
        InputError: There is none: a digest of nothing would never change.
    """
    root = Path(__file__).resolve().parents[1]
    path = root / name
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    if not files:
        raise InputError(f"code {name}: no such module or package in {root}")
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _run_module(spec: StageSpec, context: StageContext) -> None:
    module = importlib.import_module(f"voxveil.stages.{spec.name}")
    if spec.torch:
        from voxveil.training.loop import use_threads

        use_threads(context.params.base.threads)
    module.run(context)


def _context(
    spec: StageSpec, key: str, params: Params, inputs: Mapping[str, Path], digests: Mapping[str, str]
) -> tuple[StageContext, dict[str, str]]:
    """Check every input and return the context of the run, without outputs, and the digest of each input."""
    given = {port.name: Path(inputs[port.name]) for port in spec.inputs}
    found = {
        port.name: _require(port, given[port.name], params, key, digests.get(port.name))
        for port in spec.inputs
    }
    mark = fingerprint(spec, key, params, found)
    return StageContext(spec.name, key, params, given, {}, checkpoint_root() / spec.name / mark, mark), found


def _check_names(spec: StageSpec, flag: str, given: Iterable[str], known: Collection[str]) -> None:
    for name in given:
        if name not in known:
            raise InputError(
                f"stage {spec.command}: unknown {flag} {name}; it has: {', '.join(known) or 'none'}"
            )


def _check_ports(spec: StageSpec, flag: str, ports: tuple[Port, ...], given: Mapping[str, Path]) -> None:
    names = [port.name for port in ports]
    _check_names(spec, flag, given, names)
    for name in names:
        if name not in given:
            raise InputError(
                f"stage {spec.command}: {flag} {name}=PATH is missing; it needs: {', '.join(names)}"
            )


def _check_key(spec: StageSpec, key: str, params: Params) -> None:
    known = spec.keys(params)
    if not spec.keyed and key:
        raise InputError(f"stage {spec.command}: takes no --key, got {key!r}")
    if spec.keyed and not key:
        raise InputError(f"stage {spec.command}: --key is missing; params have: {', '.join(known)}")
    if spec.keyed and key not in known:
        raise ParamsError(
            f"stage {spec.command}: no {spec.keyed} {key!r} in params; known: {', '.join(known)}"
        )


def _check_outputs(spec: StageSpec, outputs: Mapping[str, Path]) -> None:
    """Raise an error, before any work, for output paths that could not be written after it."""
    seen: dict[Path, str] = {}
    for port in spec.outputs:
        path = Path(outputs[port.name])
        where = path.absolute()
        if where in seen:
            raise InputError(
                f"stage {spec.command}: --out {port.name} and {seen[where]} have the same path {path}"
            )
        seen[where] = port.name
        if port.copy_of and path.is_dir():
            raise InputError(f"stage {spec.command}: --out {port.name}={path} is a folder; it must be a file")
        if not port.copy_of and path.exists() and not path.is_dir():
            raise InputError(f"stage {spec.command}: --out {port.name}={path} is a file; it must be a folder")


def _require(port: Port, path: Path, params: Params, key: str, digest: str | None) -> str:
    if not port.many:
        done = require_done(path, port.name, digest=digest)
        _check_origin(port, done, path, made_for(port, params, key))
        return done.digest
    digests = []
    for system in sorted(params.systems):
        done = require_done(path / system, port.name)
        _check_origin(port, done, path / system, system)
        digests.append(done.digest)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def made_for(port: Port, params: Params, key: str) -> str | None:
    """Return the key an input must have been made for, None where it has none.

    Args:
        port: The input.
        params: The parameters of the run.
        key: Key of the stage that reads it; a system where the input belongs to one.
    """
    if port.made_for == "key":
        return key
    if port.made_for == "recognizer":
        return params.transcribe.variant
    if port.made_for == "original":
        return original_system(params)
    if port.made_for in ("pitch", "content"):
        return str(getattr(params.systems[key], port.made_for))
    return None


def _check_origin(port: Port, done: Done, path: Path, key: str | None) -> None:
    """Raise an error for the output of another stage, system or variant: results would carry a wrong name."""
    got = f"{done.stage}[{done.key}]" if done.key else done.stage
    wanted = f"{port.made_by}[{key}]" if key else port.made_by
    if got != wanted or (done.output and port.output and done.output != port.output):
        which = f" {done.output!r}" if done.output else ""
        need = f" {port.output!r}" if port.output else ""
        raise InputError(
            f"input {port.name}: {path} is output{which} of {got}, must be output{need} of {wanted}"
        )
