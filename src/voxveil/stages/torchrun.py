"""A training stage on several GPUs of one machine or pod: torchrun starts a process for each.

Every process runs the whole stage and takes its share of each training step (:mod:`voxveil.training.ranks`).
The first one writes outputs, checkpoints and curves; what the others write is thrown away. One that fails
ends them all. They end with the stage's own process, whichever way that ends.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from voxveil.config import Params, parse_params
from voxveil.config.compose import to_mapping
from voxveil.runtime.atomic import read_json, write_json
from voxveil.runtime.errors import ParamsError, VoxveilError
from voxveil.stages.context import StageContext
from voxveil.stages.registry import StageSpec, stage_spec
from voxveil.tracking.stream import training_sink

__all__ = ["CPU_PROCESSES", "RankError", "run_by_torchrun", "training_processes"]

#: Set to ``allow``, a machine without a GPU trains with as many processes on its processor.
CPU_PROCESSES = "VOXVEIL_CPU_PROCESSES"

_CALL = "call.json"
_STOPPING_S = 60.0


class RankError(VoxveilError):
    """One of the processes that trained together failed."""

    exit_code = 1


def training_processes(spec: StageSpec, params: Params) -> int:
    """Return the number of processes of a stage: ``gpus`` of its section, 1 where it trains nothing.

    Raises:
        ParamsError: This machine has fewer GPUs.
    """
    if not spec.trains:
        return 1
    wanted = int(getattr(params, spec.name).gpus)
    if wanted == 1:
        return 1
    import torch

    available = torch.cuda.device_count()
    where = f"{spec.name}.gpus: got {wanted}, this machine has"
    if available == 0 and os.environ.get(CPU_PROCESSES) != "allow":
        raise ParamsError(
            f"{where} no GPU; set 1, or {CPU_PROCESSES}=allow for {wanted} processes on the processor"
        )
    if 0 < available < wanted:
        raise ParamsError(f"{where} {available}; set {available} or fewer")
    return wanted


def run_by_torchrun(context: StageContext, processes: int) -> None:
    """Run a training stage with several processes; the outputs of ``context`` are filled when it returns.

    Raises:
        RankError: In one line, why the first of them failed.
    """
    with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
        folder = Path(scratch)
        write_json(folder / _CALL, _written(context))
        command = [sys.executable, "-P", "-m", "torch.distributed.run", "--standalone"]
        command += ["--local-addr", "localhost", "--nproc-per-node", str(processes)]
        command += ["-m", "voxveil.stages.torchrun", str(folder)]
        # What the processes say goes to this one's standard error, what torchrun says of them into a file.
        with (
            (folder / "torchrun.txt").open("wb") as noise,
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=2, stderr=noise, env=_environment()
            ) as torchrun,
        ):
            try:
                code = torchrun.wait()
            except BaseException:
                torchrun.terminate()
                with suppress(subprocess.TimeoutExpired):
                    torchrun.wait(_STOPPING_S)
                torchrun.kill()
                raise
        if code:
            raise _failure(folder, context.label, processes)


def _environment() -> dict[str, str]:
    environment = dict(os.environ)
    # A project's folders (mlflow/) must not be taken for packages.
    environment["PYTHONSAFEPATH"] = "1"
    environment.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if sys.platform == "linux":
        # All of them are on this machine, whose name need not be one that resolves.
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
    return environment


def _written(context: StageContext) -> dict[str, Any]:
    return {
        "stage": context.stage,
        "key": context.key,
        "params": to_mapping(context.params),
        "inputs": {name: str(path.absolute()) for name, path in context.inputs.items()},
        "outputs": {name: str(path.absolute()) for name, path in context.outputs.items()},
        "checkpoints": str(context.checkpoints.absolute()),
        "fingerprint": context.fingerprint,
        "training": dict(context.training),
    }


def _read(content: dict[str, Any]) -> StageContext:
    return StageContext(
        content["stage"],
        content["key"],
        parse_params(content["params"], complete=True),
        {name: Path(path) for name, path in content["inputs"].items()},
        {name: Path(path) for name, path in content["outputs"].items()},
        Path(content["checkpoints"]),
        content["fingerprint"],
        training=content["training"],
    )


def _failure(folder: Path, label: str, processes: int) -> RankError:
    """Return the error to raise: of several failures the first with a known cause, else the first."""
    errors = [read_json(path) for path in folder.glob("error-*.json")]
    if errors:
        first = min(errors, key=lambda error: (not error["known"], error["time"]))
        failure = RankError(
            first["message"]
            if first["known"]
            else f"{label}: process {first['rank']} of {processes} failed: {first['message']}"
        )
        failure.exit_code = first["exit_code"]
        return failure
    noise = (folder / "torchrun.txt").read_text(encoding="utf-8", errors="replace")
    code = re.search(r"exitcode\s*:\s*(-?\d+)", noise)
    lines = [line.strip() for line in noise.splitlines() if line.strip()]
    why = f"exit code {code[1]}" if code else (lines[-1][:200] if lines else "torchrun said nothing")
    return RankError(
        f"{label}: one of {processes} processes ended by itself ({why}): killed, out of memory, or a fault in"
        " a library; nothing was written"
    )


def main(folder: Path) -> int:
    """Run as one of the processes; its rank comes from torchrun through the environment."""
    rank, processes = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    threading.Thread(target=_end_with_stage, daemon=True).start()
    if rank:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
    else:
        os.dup2(1, 2)
    try:
        _run(_read(read_json(folder / _CALL)), rank, processes)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        known = isinstance(error, VoxveilError)
        at = traceback.extract_tb(error.__traceback__)[-1]
        shown = f"{type(error).__name__}: {' '.join(str(error).split())[:300]} ({at.name}, line {at.lineno})"
        content = {
            "rank": rank,
            "known": known,
            "message": str(error) if known else shown,
            "exit_code": error.exit_code if isinstance(error, VoxveilError) else 1,
            "time": time.time(),
        }
        write_json(folder / f"error-{rank}.json", content)
        return 1
    return 0


def _run(context: StageContext, rank: int, processes: int) -> None:
    import importlib

    from voxveil.training.loop import use_threads
    from voxveil.training.ranks import joined

    use_threads(context.params.base.threads)
    module = importlib.import_module(f"voxveil.stages.{stage_spec(context.stage).name}")
    with joined(rank, processes):
        if rank == 0:
            with training_sink(context) as sink:
                module.run(replace(context, sink=sink))
            return
        with tempfile.TemporaryDirectory(prefix="voxveil-") as scratch:
            outputs = {name: Path(scratch) / name for name in context.outputs}
            for path in outputs.values():
                path.mkdir()
            module.run(replace(context, outputs=outputs))


def _end_with_stage() -> None:
    """Exit when the process of the stage has ended: it alone holds the other end of standard input."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    status = main(Path(sys.argv[1]))
    if status:
        # At once: threads of the group that was joined may still wait for the others.
        os._exit(status)
