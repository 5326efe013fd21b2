"""Parallel map over threads or processes; results keep the order of the items."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import TypeVar

from voxveil.runtime.errors import VoxveilError

__all__ = ["WorkerError", "in_order", "in_processes"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_CHUNK = 8


class WorkerError(VoxveilError):
    """A worker process ended unexpectedly."""

    exit_code = 1


def in_order(function: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> Iterator[_Result]:
    """Yield ``function(item)`` for each item, in order, computed by a few threads.

    Torch computes each item with one thread: utterances are small and independent, so threads of
    its own would only get in the way, and a result does not depend on how many there are.

    At most twice as many results as threads wait to be taken, so memory does not grow with the
    number of items. An error ends the iteration where its item stands.

    Args:
        function: Independent of the other items; spends its time outside the interpreter lock.
        items: Taken lazily.
        threads: Number of threads; 0 = one per core.
    """
    workers = threads or os.cpu_count() or 1
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[_Result]] = deque()
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


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
