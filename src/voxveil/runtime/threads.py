"""Work spread over threads, results in the order asked for."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["in_order"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


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
    if "torch" in sys.modules:
        from voxveil.training.loop import use_threads

        use_threads(1)
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
