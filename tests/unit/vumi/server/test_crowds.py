"""What a crowd of light clients does together has one share, like a client."""

from __future__ import annotations

from math import ceil

import pytest

from vumi.server.request_queue import (
    BURST_SECONDS,
    CROWD_SHARE,
    MAX_COST_SECONDS,
    MAX_DELAY_SECONDS,
    OTHERS_SECONDS,
    REST,
    RequestQueue,
)

CROWD = "\ncrowd"
ABOVE = BURST_SECONDS * 1.01


def answer(queue: RequestQueue[str], client: str, cost: float, now: float, crowd: str = "") -> None:
    """Answer a client as often as costs so much."""
    answers = ceil(cost / MAX_COST_SECONDS) or 1
    for _ in range(answers):
        queue.add(client, client, now)
        queue.take(now)
        queue.charge(cost / answers, now, crowd)


def defer(queue: RequestQueue[str], cost: float, now: float) -> None:
    """Let a visitor's request of the crowd wait for the crowd's turn."""
    queue.add("visitor", "deferred", now)
    queue.take(now)
    queue.defer("deferred", cost, now, CROWD)


def must_wait(queue: RequestQueue[str], now: float, crowd: str) -> bool:
    """Return whether a visitor's request of a crowd must wait for the crowd's turn."""
    queue.add("visitor", "", now)
    queue.take(now)
    waits = queue.must_wait(crowd)
    queue.charge(0.0, now, crowd)
    return waits


def test_a_crowd_must_wait_after_its_burst_until_its_share_has_made_up_for_it() -> None:
    queue: RequestQueue[str] = RequestQueue()
    answer(queue, "other", 0.0001, 1.0)
    answer(queue, "a", BURST_SECONDS, 1.0, CROWD)
    assert not must_wait(queue, 1.0, CROWD)
    answer(queue, "b", ABOVE - BURST_SECONDS, 1.0, CROWD)
    answer(queue, "other", 0.0001, 1.0)
    assert must_wait(queue, 1.0, CROWD)
    assert not must_wait(queue, 1.0, "\nanother")
    assert not must_wait(queue, 1.01 + (ABOVE - BURST_SECONDS) / CROWD_SHARE, CROWD)


@pytest.mark.parametrize(
    ("other", "crowd", "waits"),
    [
        ("other", "", True),
        ("other", "\nsmall", True),
        ("c", CROWD, False),
        ("visitor", "", False),
    ],
    ids=["a client", "a small crowd", "itself", "the same client"],
)
def test_a_crowd_waits_only_beside_others(other: str, crowd: str, *, waits: bool) -> None:
    queue: RequestQueue[str] = RequestQueue()
    answer(queue, "a", ABOVE + 2 * CROWD_SHARE, 0.0, CROWD)
    answer(queue, other, 0.0001, 1.0, crowd)
    assert must_wait(queue, 1.0, CROWD) == waits
    answer(queue, "b", ABOVE, 1.0 + OTHERS_SECONDS, CROWD)
    assert not must_wait(queue, 1.0 + OTHERS_SECONDS, CROWD)


def test_a_crowd_rests_with_its_part_of_the_time_of_a_commit() -> None:
    queue: RequestQueue[str] = RequestQueue()
    answer(queue, "a", ABOVE, 1.0, CROWD)
    queue.rest(0.0, 1.0)
    answer(queue, "other", 0.02, 1.0)
    answer(queue, "b", 0.04, 1.0, CROWD)
    queue.rest(0.06, 1.0)
    defer(queue, 0.0, 1.0)
    assert queue.wait(1.0) == pytest.approx(REST * 0.04)
    assert queue.take(1.2) == "deferred"
    assert not queue.must_wait(CROWD)


def test_rests_follow_each_other_up_to_the_longest_delay() -> None:
    queue: RequestQueue[str] = RequestQueue()
    answer(queue, "a", ABOVE, 1.0, CROWD)
    queue.rest(0.0, 1.0)
    for rests in (1, 2):
        answer(queue, "a", 0.01, 1.0, CROWD)
        queue.rest(0.01, 1.0)
        defer(queue, 0.0, 1.0)
        assert queue.wait(1.0) == pytest.approx(rests * REST * 0.01)
    answer(queue, "a", 0.3, 1.0, CROWD)
    queue.rest(10.0, 1.0)
    assert queue.wait(1.0) == MAX_DELAY_SECONDS


def test_requests_that_leave_their_turn_add_to_no_rest() -> None:
    """Else a flood of them would let the crowd have no turn."""
    queue: RequestQueue[str] = RequestQueue()
    answer(queue, "other", 0.0001, 1.0)
    answer(queue, "a", ABOVE, 1.0, CROWD)
    queue.rest(0.0, 1.0)
    for _ in range(2):
        defer(queue, 0.01, 1.0)
    queue.rest(0.02, 1.0)
    assert queue.wait(1.0) == 0
    assert queue.take(1.0) == "deferred"
    queue.charge(0.01, 1.0, CROWD)
    assert queue.take(1.0) == "deferred"
    queue.charge(0.01, 1.0, CROWD)
    used = ABOVE + 4 * 0.01 - BURST_SECONDS
    answer(queue, "other", 0.0001, 1.0 + used / CROWD_SHARE)
    assert must_wait(queue, 0.99 + used / CROWD_SHARE, CROWD)
    assert not must_wait(queue, 1.01 + used / CROWD_SHARE, CROWD)
