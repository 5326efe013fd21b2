"""Results in order, bounded waiting, and errors where their item stands."""

from __future__ import annotations

import threading
import time

import pytest

from voxveil.runtime.workers import in_order


@pytest.mark.parametrize("threads", [1, 3, 0])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    def slow_when_early(n: int) -> int:
        time.sleep(0.002 * (10 - n))
        return n * n

    assert list(in_order(slow_when_early, range(10), threads)) == [n * n for n in range(10)]


def test_an_error_ends_it_after_the_items_before() -> None:
    taken = []
    with pytest.raises(ZeroDivisionError):
        for value in in_order(lambda n: 1 // (3 - n), range(1000), 2):
            taken.append(value)
    assert taken == [0, 0, 1]


def test_no_more_than_a_few_items_are_ahead() -> None:
    lock, started = threading.Lock(), []

    def note(n: int) -> int:
        with lock:
            started.append(n)
        return n

    results = in_order(note, iter(range(1000)), 2)
    assert next(results) == 0
    time.sleep(0.02)
    assert len(started) <= 4
    results.close()


def test_nothing_to_do() -> None:
    assert list(in_order(lambda n: n, [], 2)) == []
