"""Work spread over processes, results in the order asked for."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TypeVar

from voxveil.runtime.errors import VoxveilError

__all__ = ["WorkerError", "in_processes"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_CHUNK = 8


class WorkerError(VoxveilError):
    """A worker process ended by itself."""

    exit_code = 1


def in_processes(
    function: Callable[[_Item], _Result], items: Sequence[_Item], workers: int
) -> Iterator[_Result]:
    """Yield ``function(item)`` for each item, in order, computed by processes of one thread each.

    Args:
        function: Can be pickled; holds the interpreter lock, or keeps state that threads must not share.
        items: Can be pickled.
        workers: Number of processes; 1 = this one.

    Raises:
        WorkerError: A process was killed or crashed.
    """
    if workers == 1:
        yield from map(function, items)
        return
    # Spawned, not forked: numerical libraries may have threads by now.
    context = multiprocessing.get_context("spawn")
    with (
        _one_thread_each(),
        ProcessPoolExecutor(min(workers, max(1, len(items))), context, _end_with_parent) as pool,
    ):
        try:
            yield from pool.map(function, items, chunksize=_CHUNK)
        except BrokenProcessPool:
            raise WorkerError(
                "a worker process ended by itself (killed, out of memory, or a fault in a library);"
                " nothing was written"
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _end_with_parent() -> None:
    """Worker set-up: die when the stage is killed, whichever way."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Numerical libraries of the workers read this when they are loaded."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
