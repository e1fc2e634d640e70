"""Requests share commits, unless they may wait for the network or their commit failed."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, TypeVar

import pytest

from chalicelib.history.routes import TOP
from chalicelib.http.errors import BadRequestError
from chalicelib.http.messages import Request, Response
from chalicelib.resources import Action, NoLimits
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from tests import event_loop
from vumi.resources import MayWait
from vumi.server.asgi import BodyExpected
from vumi.server.common_commits import (
    ADMIN_DATA,
    HEALTH,
    METRICS,
    NEW_IDS,
    CommonCommits,
    Crowds,
)
from vumi.server.request_queue import BURST_SECONDS, HEAVY_COMMIT_SECONDS, MAX_DELAY_SECONDS
from vumi.storage.database import CorruptFileError

Result = TypeVar("Result")

URL = Request("POST", "/events", client="203.0.113.9")
"""A request that may wait for the network."""


class Counted(NoLimits):
    """Limits that note the actions of clients that have an address."""

    def __init__(self) -> None:
        self.actions = Counter[Action]()

    def wait(self, action: Action, client: str) -> float:
        self.actions[action] += bool(client)
        return 0.0


@dataclass
class Storage:
    """A storage that notes the commit and the thread of each request.

    Requests of paths that begin with `/new` are for new ids.
    With `error` a commit fails: before its function, or after it if it fails `late`.
    """

    error: Exception | None = None
    late: bool = False
    number: int = 0
    is_open: bool = False
    limits: Counted = field(default_factory=Counted)
    loop_thread: threading.Thread | None = None
    answered: list[tuple[str, int | None, threading.Thread]] = field(default_factory=list)
    on_answer: Callable[[Request], object] = lambda _: None
    costs: Mapping[str, float] = field(default_factory=dict)
    measured: list[tuple[int, float]] = field(default_factory=list)
    now: float = 0.0
    tick: float = 0.0

    def __post_init__(self) -> None:
        self.crowds = Crowds(self.limits)

    def read_stopwatch(self) -> float:
        self.now += self.tick
        return self.now

    def in_one_commit(self, function: Callable[[], Result], /) -> Result:
        self.number += 1
        if self.error and not self.late:
            raise self.error
        self.is_open = True
        result = function()
        self.is_open = False
        if self.error:
            raise self.error
        return result

    def route(self, request: Request) -> Response:
        self.crowds.wait(Action.REQUEST, request.client)
        if request.path == URL.path and threading.current_thread() is self.loop_thread:
            raise MayWait
        if request.path.startswith("/new"):
            self.crowds.wait(Action.NEW_ID, request.client)
        self.on_answer(request)
        self.now += self.costs.get(request.path, 0.0)
        number = self.number if self.is_open else None
        self.answered.append((request.path, number, threading.current_thread()))
        return Response(body=request.path.encode())

    @property
    def commits(self) -> list[int | None]:
        return [number for _, number, _ in self.answered]


def run(storage: Storage, ask: Callable[[CommonCommits], Coroutine[Any, Any, Result]]) -> Result:
    async def asked() -> Result:
        storage.loop_thread = threading.current_thread()
        commits = CommonCommits(
            storage.route,
            storage.in_one_commit,
            storage.crowds,
            lambda *measures: storage.measured.append(measures),
            storage.read_stopwatch,
        )
        try:
            return await ask(commits)
        finally:
            commits.close()

    return event_loop.run(asked())


async def ask_for(commits: CommonCommits, request: Request) -> Response:
    response = await commits.answer(request.client, lambda: request)
    assert isinstance(response, Response)
    return response


def answers(storage: Storage, requests: Sequence[Request]) -> list[Response]:
    """Answer requests that come at the same time."""

    async def ask(commits: CommonCommits) -> list[Response]:
        return await asyncio.gather(*(ask_for(commits, one) for one in requests))

    return run(storage, ask)


def gets(number: int) -> list[Request]:
    return [Request("GET", f"/{place}") for place in range(number)]


def test_requests_that_come_together_share_a_commit() -> None:
    storage = Storage()
    requests = [*gets(3), Request("PUT", "/transfer", body=b'{"amount": "1"}')]

    found = answers(storage, requests)

    assert [response.body.decode() for response in found] == ["/0", "/1", "/2", "/transfer"]
    assert storage.commits == [1, 1, 1, 1]
    assert {thread for _, _, thread in storage.answered} == {storage.loop_thread}


@pytest.mark.parametrize(
    ("costs", "sizes"),
    [
        ([0.0004] * 4, [4]),
        ([0.0004] * 6, [4, 2]),
        ([0.010, 0.0004, 0.0004], [1, 2]),
        ([0.0004, 0.010, 0.0004], [2, 1]),
    ],
)
def test_a_commit_is_bounded_by_its_time(costs: Sequence[float], sizes: Sequence[int]) -> None:
    """It takes the next request of a client if that may cost what its last one did."""
    storage = Storage(costs={f"/{place}": cost for place, cost in enumerate(costs)})
    answers(storage, gets(len(costs)))
    assert [size for size, _ in storage.measured] == sizes


def test_one_request_of_another_client_is_read_and_answered_before_the_rest_of_a_dear_one() -> None:
    """Else 190 heads of one client are read before the next commit."""
    storage, read = Storage(costs={f"/{place}": 0.010 for place in range(50)}), list[str]()

    def note(request: Request) -> Request:
        read.append(request.path)
        return request

    async def ask(commits: CommonCommits) -> None:
        dear = [commits.answer("198.51.100.7", partial(note, one)) for one in gets(50)]
        visitor = commits.answer("203.0.113.9", partial(note, Request("GET", "/visitor")))
        await asyncio.gather(*dear, visitor)

    run(storage, ask)
    assert read.index("/visitor") == 1
    assert [path for path, _, _ in storage.answered].index("/visitor") == 1


def test_a_client_that_uses_much_rests_while_others_are_answered() -> None:
    """It rests until 1.6 s, for four times as long as its fourth request took."""
    storage = Storage(costs={f"/{place}": 0.2 for place in range(4)}, tick=1e-6)
    visits = [Request("GET", f"/visit{place}", client=f"203.0.113.{place}") for place in range(4)]

    async def ask(commits: CommonCommits) -> list[bool]:
        *first, fourth, fifth = gets(5)
        await asyncio.gather(*(ask_for(commits, one) for one in (*first, *visits[:2])))
        await ask_for(commits, fourth)
        resting = asyncio.create_task(ask_for(commits, fifth))
        found = []
        for visit, later in zip(visits[2:], (1.599, 1.61), strict=True):
            for _ in range(5):  # until the rest has begun
                await asyncio.sleep(0)
            await asyncio.wait_for(ask_for(commits, visit), 3.0)
            found.append(resting.done())
            storage.now = later
        await resting
        return found

    assert run(storage, ask) == [False, False]
    assert [path for path, _, _ in storage.answered][-3:] == ["/visit2", "/visit3", "/4"]


def test_a_response_is_sent_before_the_next_commit() -> None:
    storage = Storage(costs={"/0": 0.010, "/1": 0.010})

    async def ask(commits: CommonCommits) -> list[int]:
        async def commits_when_answered(request: Request) -> int:
            await ask_for(commits, request)
            return storage.number

        return await asyncio.gather(*map(commits_when_answered, gets(2)))

    assert run(storage, ask) == [1, 2]


def test_requests_that_come_while_a_commit_runs_are_answered_in_the_next() -> None:
    storage = Storage()

    async def ask(commits: CommonCommits) -> None:
        late: list[asyncio.Task[Response]] = []

        def others_come(request: Request) -> None:
            if request.path == "/0":
                late.extend(asyncio.create_task(ask_for(commits, one)) for one in gets(3)[1:])

        storage.on_answer = others_come
        await ask_for(commits, gets(1)[0])
        await asyncio.gather(*late)

    run(storage, ask)
    assert storage.commits == [1, 2, 2]


def test_a_request_that_cannot_be_read_fails_alone() -> None:
    storage = Storage()

    def fail() -> Request:
        raise BadRequestError("no head")

    async def ask(commits: CommonCommits) -> tuple[object, Response]:
        return await asyncio.gather(commits.answer("", fail), ask_for(commits, gets(1)[0]))

    failed, other = run(storage, ask)
    assert isinstance(failed, Response)
    assert (failed.status, other.status) == (400, 200)
    assert storage.commits == [1]


@pytest.mark.parametrize("error", [None, UnavailableError("full")])
def test_a_body_is_expected_before_the_request_is_answered(error: StorageError | None) -> None:
    storage, expected = Storage(error), BodyExpected(gets(1)[0], 9, kept=True)

    async def ask(commits: CommonCommits) -> object:
        return await commits.answer("", lambda: expected)

    assert run(storage, ask) is expected
    assert storage.answered == []


def test_a_request_that_waits_for_the_network_has_a_thread_and_delays_no_other() -> None:
    """The route of the URL waits until another request was answered."""
    met, clients = threading.Event(), list[str]()

    def meet(request: Request) -> None:
        clients.append(request.client)
        if request.path == URL.path:
            assert met.wait(10.0)
        met.set()

    storage = Storage(on_answer=meet)
    answers(storage, [URL, *gets(1)])
    assert [(path, number) for path, number, _ in storage.answered] == [
        ("/0", 1),
        ("/events", None),
    ]
    assert storage.answered[1][2] is not storage.loop_thread
    assert storage.number == 1
    assert storage.limits.actions == {Action.REQUEST: 1}, "the limits count it once"
    assert clients == ["", ""]


@pytest.mark.parametrize("error", [UnavailableError("full"), StorageRefusedError("broken")])
@pytest.mark.parametrize("late", [False, True])
def test_requests_whose_commit_failed_are_answered_alone(
    error: StorageError, *, late: bool
) -> None:
    """Each runs in its own commit, and then without one, so that its route gets the error."""
    storage = Storage(error, late)

    assert [response.status for response in answers(storage, gets(2))] == [200, 200]
    assert storage.number == 3
    assert storage.answered[-1][2] is not storage.loop_thread


def test_a_request_may_succeed_alone_that_failed_with_others() -> None:
    storage = Storage(UnavailableError("full"), late=True)

    def recover(_: Request) -> None:
        if threading.current_thread() is not storage.loop_thread:
            storage.error = None

    storage.on_answer = recover
    [response] = answers(storage, gets(1))

    assert response.status == 200
    assert storage.commits == [1, 2]


def test_a_fault_of_a_common_commit_is_logged_and_ends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = Storage(MemoryError())

    async def ask(commits: CommonCommits) -> Response:
        with pytest.raises(MemoryError):
            await ask_for(commits, gets(1)[0])
        storage.error = None
        return await ask_for(commits, gets(1)[0])

    assert run(storage, ask).status == 200
    assert "common_commit_failed" in caplog.text


@pytest.mark.parametrize(
    ("error", "path", "status"),
    [
        (CorruptFileError("malformed"), HEALTH, 503),
        (CorruptFileError("malformed"), "/", 200),
        (UnavailableError("full"), HEALTH, 200),
    ],
)
def test_a_corrupt_file_is_not_healthy(error: StorageError, path: str, status: int) -> None:
    """The route may not notice, because what can be read still is."""
    [response] = answers(Storage(error), [Request("GET", path)])

    assert response.status == status


@pytest.mark.parametrize("slow", [METRICS, ADMIN_DATA, f"{ADMIN_DATA}/badges", TOP])
def test_each_common_commit_is_measured_and_what_reads_much_is_in_none(slow: str) -> None:
    storage = Storage(costs={f"/{place}": 0.0001 for place in range(3)})
    answers(storage, [*gets(3), Request("GET", slow)])
    [(size, seconds)] = storage.measured
    assert size == 3
    assert seconds == pytest.approx(0.0003)
    assert [number for path, number, _ in storage.answered if path == slow] == [None]
    threads = {thread for path, _, thread in storage.answered if path == slow}
    assert threads.isdisjoint({thread for path, _, thread in storage.answered if path != slow})


def test_requests_of_a_heavy_crowd_have_short_commits_after_those_of_others() -> None:
    """Each is counted once, though it is read again in its second turn."""
    first = [Request("GET", f"/new/{one}", client=one) for one in "abcd"]
    heavy = [Request("GET", f"/new/{place}", client=f"new {place}") for place in range(2)]
    visits = [Request("GET", f"/visit/{place}", client=f"visit {place}") for place in range(3)]
    costs = dict.fromkeys([one.path for one in (*heavy, *visits)], 0.4 * HEAVY_COMMIT_SECONDS)
    costs |= dict.fromkeys([one.path for one in first], 1.01 * BURST_SECONDS)
    storage = Storage(costs=costs)

    async def ask(commits: CommonCommits) -> None:
        for one in first:
            await ask_for(commits, one)
        waiting = [asyncio.create_task(ask_for(commits, one)) for one in heavy]
        await asyncio.gather(*(ask_for(commits, one) for one in visits[:2]))
        storage.now += MAX_DELAY_SECONDS
        await asyncio.gather(ask_for(commits, visits[2]), waiting[0])
        storage.now += MAX_DELAY_SECONDS
        await waiting[1]

    run(storage, ask)
    after = storage.answered[len(first) :]
    commits = [[path for path, *_ in one] for _, one in groupby(after, lambda found: found[1])]
    assert commits == [["/visit/0", "/visit/1"], ["/visit/2", "/new/0"], ["/new/1"]]
    assert storage.limits.actions == {Action.REQUEST: 9, Action.NEW_ID: 6}


def test_a_request_on_a_thread_waits_for_no_crowd() -> None:
    crowds = Crowds(NoLimits())
    crowds.must_wait = lambda _: True
    event_loop.on_own_thread(crowds.join, NEW_IDS)
