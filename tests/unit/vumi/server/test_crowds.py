"""What a crowd of light clients does together has one share, like a client."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import TypeVar

import pytest

from chalicelib.http.messages import Request, Response
from chalicelib.resources import Action, NoLimits
from tests import event_loop
from vumi.server.common_commits import NEW_IDS, CommonCommits, Crowds
from vumi.server.request_queue import (
    BURST_SECONDS,
    CROWD_SHARE,
    HEAVY_COMMIT_SECONDS,
    MAX_COST_SECONDS,
    MAX_DELAY_SECONDS,
    OTHERS_SECONDS,
    REST,
    RequestQueue,
)

Result = TypeVar("Result")

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


@dataclass
class Counted(NoLimits):
    """Limits that note the actions."""

    actions: list[Action] = field(default_factory=list)

    def wait(self, action: Action, client: str) -> float:  # noqa: ARG002  the port's
        self.actions.append(action)
        return 0.0


@dataclass
class World:
    """A server whose paths below `/new` are views of new ids. Each answer takes `cost`."""

    cost: float = ABOVE
    now: float = 0.0
    counted: Counted = field(default_factory=Counted)
    commits: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.crowds = Crowds(self.counted)

    def commit(self, function: Callable[[], Result], /) -> Result:
        self.commits.append([])
        return function()

    def answer(self, request: Request) -> Response:
        self.crowds.wait(Action.REQUEST, request.client)
        if request.path.startswith("/new"):
            self.crowds.wait(Action.NEW_ID, request.client)
        self.commits[-1].append(request.path)
        self.now += self.cost
        return Response()


def test_requests_of_a_heavy_crowd_have_short_commits_after_those_of_others() -> None:
    """Each is counted once, though it is read again in its second turn."""
    world = World()

    async def ask() -> None:
        commits = CommonCommits(
            world.answer, world.commit, world.crowds, stopwatch=lambda: world.now
        )

        def ask_for(path: str) -> asyncio.Task[object]:
            request = Request("GET", path, client=path)
            return asyncio.create_task(commits.answer(path, lambda: request))

        for path in ("/new/a", "/new/b", "/new/c", "/new/d"):
            await ask_for(path)
        world.commits.clear()
        world.cost = 0.4 * HEAVY_COMMIT_SECONDS
        waiting = [*map(ask_for, ("/new/1", "/new/2"))]
        await asyncio.gather(*map(ask_for, ("/visit/0", "/visit/1")))
        world.now += MAX_DELAY_SECONDS
        await asyncio.gather(ask_for("/visit/2"), waiting[0])
        world.now += MAX_DELAY_SECONDS
        await waiting[1]
        commits.close()

    event_loop.run(ask())
    assert [commit for commit in world.commits if commit] == [
        ["/visit/0", "/visit/1"],
        ["/visit/2", "/new/1"],
        ["/new/2"],
    ]
    assert Counter(world.counted.actions) == {Action.REQUEST: 9, Action.NEW_ID: 6}


def test_a_request_on_a_thread_waits_for_no_crowd() -> None:
    crowds = Crowds(NoLimits())
    crowds.must_wait = lambda _: True
    event_loop.on_own_thread(crowds.join, NEW_IDS)
