"""What a crowd of light clients does together has one share, like a client."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from chalicelib.http.messages import Request, Response
from chalicelib.limits import Action, NoLimits
from tests import event_loop
from vumi.server.common_commits import CommonCommits
from vumi.server.crowds import NEW_IDS, CrowdLimits, Crowds, DeferredError
from vumi.server.request_queue import (
    BURST_SECONDS,
    CROWD_SHARE,
    MAX_DELAY_SECONDS,
    RECENT_SECONDS,
    REST,
    RequestQueue,
)

CROWD = "\ncrowd"
ABOVE = BURST_SECONDS * 1.01


def answer(queue: RequestQueue[str], client: str, cost: float, now: float, crowd: str = "") -> None:
    queue.add(client, client, now)
    queue.take(now)
    queue.charge(client, cost, now, crowd)


def test_a_crowd_must_wait_after_its_burst_until_its_share_has_made_up_for_it() -> None:
    queue: RequestQueue[str] = RequestQueue()
    answer(queue, "other", 0.0001, 1.0)
    answer(queue, "a", BURST_SECONDS, 1.0, CROWD)
    assert not queue.must_wait(CROWD, 1.0)
    answer(queue, "b", ABOVE - BURST_SECONDS, 1.0, CROWD)
    assert queue.must_wait(CROWD, 1.0)
    assert not queue.must_wait("\nanother", 1.0)
    assert not queue.must_wait(CROWD, 1.01 + (ABOVE - BURST_SECONDS) / CROWD_SHARE)


@pytest.mark.parametrize(
    ("other", "crowd", "waits"),
    [("other", "", True), ("other", "\nsmall", True), ("c", CROWD, False)],
    ids=["a client", "a small crowd", "itself"],
)
def test_a_crowd_waits_only_beside_others(other: str, crowd: str, *, waits: bool) -> None:
    queue: RequestQueue[str] = RequestQueue()
    answer(queue, "a", ABOVE, 1.0, CROWD)
    answer(queue, other, 0.0001, 1.0, crowd)
    assert queue.must_wait(CROWD, 1.0) == waits
    answer(queue, "b", ABOVE, 1.0 + RECENT_SECONDS, CROWD)
    assert not queue.must_wait(CROWD, 1.0 + RECENT_SECONDS)


def test_a_crowd_rests_with_its_part_of_the_time_of_a_commit() -> None:
    queue: RequestQueue[str] = RequestQueue()
    answer(queue, "other", 0.1, 1.0)
    answer(queue, "a", 0.3, 1.0, CROWD)
    queue.rest(0.04, 1.0)
    queue.add(CROWD, "a", 1.0)
    assert queue.wait(1.0) == pytest.approx(REST * 0.03)
    assert queue.take(1.2) == (CROWD, "a")
    assert not queue.must_wait(CROWD, 1.2)


def test_rests_follow_each_other_up_to_the_longest_delay() -> None:
    queue: RequestQueue[str] = RequestQueue()
    answer(queue, "other", 0.0, 1.0)
    for rests in (1, 2):
        answer(queue, "a", 0.3, 1.0, CROWD)
        queue.rest(0.01, 1.0)
        queue.add(CROWD, "a", 1.0)
        assert queue.wait(1.0) == pytest.approx(rests * REST * 0.01)
    answer(queue, "a", 0.3, 1.0, CROWD)
    queue.rest(10.0, 1.0)
    assert queue.wait(1.0) == MAX_DELAY_SECONDS


@dataclass
class Routes:
    """Routes by which requests join crowds. An answer takes this long."""

    crowds: Crowds = field(default_factory=Crowds)
    now: float = 0.0
    begun: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)

    def answer(self, request: Request) -> Response:
        self.begun.append(request.path)
        if request.path.startswith("/new"):
            self.crowds.join(NEW_IDS)
        self.answered.append(request.path)
        self.now += ABOVE
        return Response(body=request.path.encode())


def test_a_request_of_a_heavy_crowd_is_answered_after_those_of_others_once() -> None:
    routes = Routes()

    async def ask() -> None:
        commits = CommonCommits(
            routes.answer, lambda function: function(), routes.crowds, stopwatch=lambda: routes.now
        )

        def ask_for(path: str) -> asyncio.Task[object]:
            request = Request("GET", path, client=path)
            return asyncio.create_task(commits.answer(path, lambda: request))

        await asyncio.gather(*map(ask_for, ("/other", "/new/0")))
        waiting = [*map(ask_for, ("/new/1", "/new/2"))]
        await asyncio.gather(*map(ask_for, ("/visit/0", "/visit/1")))
        for place, one in enumerate(waiting, 2):
            routes.now += MAX_DELAY_SECONDS
            await asyncio.gather(ask_for(f"/visit/{place}"), one)
        commits.close()

    event_loop.run(ask())
    assert routes.answered[:4] == ["/other", "/new/0", "/visit/0", "/visit/1"]
    assert routes.answered[4:] == ["/visit/2", "/new/1", "/visit/3", "/new/2"]
    assert [routes.begun.count(f"/new/{place}") for place in range(3)] == [1, 2, 2]


def test_a_request_on_a_thread_waits_for_no_crowd() -> None:
    crowds = Crowds()
    crowds.begin(lambda _: True, is_again=False)
    crowds.join(NEW_IDS)


@dataclass
class Counted(NoLimits):
    """Limits that note the actions."""

    actions: list[Action] = field(default_factory=list)

    def wait(self, action: Action, client: str) -> float:  # noqa: ARG002  the port's
        self.actions.append(action)
        return 0.0


def test_a_request_that_waits_for_its_crowd_is_counted_once() -> None:
    counted, crowds = Counted(), Crowds()
    limits = CrowdLimits(counted, crowds)

    async def take_turns() -> None:
        for is_again in (False, True):
            crowds.begin(lambda _: True, is_again=is_again)
            limits.wait(Action.REQUEST, "a")
            if is_again:
                limits.wait(Action.NEW_ID, "a")
            else:
                with pytest.raises(DeferredError):
                    limits.wait(Action.NEW_ID, "a")

    event_loop.run(take_turns())
    assert counted.actions == [Action.REQUEST, Action.NEW_ID]
