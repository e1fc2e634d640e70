"""Parallel work on the parts of a batch."""

from __future__ import annotations

import threading

import pytest

from chalicelib import telemetry
from chalicelib.concurrency import THREADS, map_parallel
from simulation.logs import counting_metrics

PATIENCE = 30.0
"""Seconds after which a thread counts as hung."""


def test_results_come_in_the_order_of_the_parts_though_the_first_ends_last() -> None:
    others_are_done = threading.Event()

    def work(part: int) -> int:
        if part == 0:
            assert others_are_done.wait(PATIENCE)
        if part == 4:
            others_are_done.set()
        return part * part

    assert list(map_parallel(work, range(5))) == [0, 1, 4, 9, 16]


def test_no_more_threads_are_made_than_given_however_many_parts_there_are() -> None:
    threads = set(map_parallel(lambda _: threading.get_ident(), range(500)))
    assert 1 <= len(threads) <= THREADS
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("parts", [1, 3])
def test_a_failure_is_raised_and_the_next_batch_is_completed(parts: int) -> None:
    def work(part: int) -> int:
        if part == 0:
            raise ValueError("the first part")
        return part

    with pytest.raises(ValueError, match="the first part"):
        map_parallel(work, range(parts))
    assert list(map_parallel(work, [1, 2])) == [1, 2]


@pytest.mark.parametrize("parts", [1, THREADS, 40])
def test_with_as_many_threads_as_parts_none_waits_for_another(parts: int) -> None:
    """No part passes the barrier until all have reached it."""
    together = threading.Barrier(parts, timeout=PATIENCE)
    given = {} if parts == THREADS else {"threads": parts}
    assert sorted(map_parallel(lambda _: together.wait(), iter(range(parts)), **given)) == [
        *range(parts)
    ]


@pytest.mark.parametrize("parts", [1, 3, 40])
def test_a_metric_of_a_part_is_counted_for_the_function_of_the_caller(parts: int) -> None:
    """An alarm watches the metrics of a function by its name."""
    telemetry.begin("deliver_events", None)
    with counting_metrics() as counted:
        map_parallel(lambda _: telemetry.count(events_failed=1), range(parts))
    assert counted == {"deliver_events": {"events_failed": parts}}
