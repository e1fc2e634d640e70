"""The connections to close, by deadlines, shares and their number, and the guard's sweeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from tests import event_loop
from vumi.server.connections import (
    PAUSE_SECONDS,
    SLICE,
    SWEEP_SECONDS,
    Connections,
    Limits,
    Phase,
    guard,
)
from vumi.server.sockets import Accepted, Peer

LIMITS = Limits(head_seconds=10.0, unread_seconds=60.0, connections=6, share=3)


@dataclass
class Steps:
    """Connections whose clock is stepped."""

    limits: Limits = LIMITS
    now: float = 0.0
    proxies: tuple[str, ...] = ()
    connections: Connections = field(init=False)

    def __post_init__(self) -> None:
        self.connections = Connections(
            self.limits, is_proxy=self.proxies.__contains__, clock=lambda: self.now
        )

    def see(self, *peers: Peer, unsent: Iterable[Peer] = ()) -> None:
        unread = set(unsent)
        seen = {peer: Accepted(peer, 5, int(peer in unread)) for peer in {*peers, *unread}}
        self.connections.update(seen, self.now)

    def enter(self, peer: Peer, *phases: Phase) -> None:
        for phase in phases:
            self.connections.enter(peer, phase)

    def closed(self, now: float | None = None) -> set[Peer]:
        self.now = self.now if now is None else now
        return set(self.connections.to_close())


def peers(number: int, host: str = "192.0.2.1") -> list[Peer]:
    return [(host, 1_024 + place) for place in range(number)]


A, B, C, D, E = peers(5)


def apart(number: int) -> list[Peer]:
    """Return clients with different addresses."""
    return [(f"192.0.2.{place}", 1_024) for place in range(number)]


def test_a_first_head_has_a_deadline_from_when_the_connection_was_seen() -> None:
    steps = Steps()
    steps.see(A)
    steps.now = 4.0
    steps.see(A, B)
    assert [steps.closed(now) for now in (10.0, 10.1, 14.1)] == [set(), {A}, {A, B}]


@pytest.mark.parametrize("phase", [Phase.BODY, Phase.IDLE, Phase.ANSWER])
def test_only_the_first_head_has_this_deadline(phase: Phase) -> None:
    steps = Steps()
    steps.see(A)
    steps.enter(A, phase)
    steps.now = 1_000.0
    steps.see(A)
    assert steps.closed() == set()


@pytest.mark.parametrize("phase", [Phase.IDLE, Phase.ANSWER])
def test_answers_must_be_received_completely_within_a_time(phase: Phase) -> None:
    """A client that reads one byte now and then, or requests more, gets no more time."""
    steps = Steps()
    steps.enter(A, phase)
    steps.see(unsent=[A])
    steps.now = 59.0
    steps.enter(A, Phase.BODY, phase)
    steps.see(unsent=[A])
    assert [steps.closed(now) for now in (60.0, 60.1)] == [set(), {A}]
    steps.see(A)
    steps.now = 61.0
    steps.see(unsent=[A])
    assert [steps.closed(now) for now in (121.0, 121.1)] == [set(), {A}]


def test_a_connection_that_is_gone_is_forgotten() -> None:
    steps = Steps()
    steps.see(A, B)
    steps.now = 5.0
    steps.see(B)
    steps.now = 9.0
    steps.see(A, B)
    assert steps.closed(11.0) == {B}


def test_a_request_that_came_during_a_look_is_not_forgotten() -> None:
    """The look may have passed its descriptor before it was accepted."""
    steps = Steps(Limits(share=0, connections=0), now=5.0)
    steps.enter(A, Phase.ANSWER)
    steps.see()
    steps.see(A)
    assert steps.closed() == set()
    steps.now = 6.0
    steps.see()
    steps.see(A)
    assert steps.closed() == {A}


def test_an_address_has_a_share_of_its_newest_connections() -> None:
    steps = Steps()
    other = ("192.0.2.2", 1_024)
    for steps.now, seen in enumerate([[other], [other, A], [other, A, B, C]]):
        steps.see(*seen)
    assert steps.closed() == set()
    steps.see(other, A, B, C, D)
    assert steps.closed() == {A}


def test_the_share_is_reached_in_an_order() -> None:
    """Requests that are not complete go first, then unread answers, idle connections last."""
    steps = Steps()
    steps.enter(A, Phase.IDLE)
    steps.enter(B, Phase.ANSWER)
    steps.now = 1.0
    steps.enter(C, Phase.IDLE)
    steps.see(A, B, C, D, E, unsent=[C])
    steps.enter(E, Phase.BODY)
    expected = [D, E, C, A]
    for share in (3, 2, 1, 0):
        steps.connections.limits = Limits(share=share, connections=100)
        assert steps.closed() == set(expected[: 5 - share])
    steps.enter(A, Phase.ANSWER)
    assert steps.closed() == {D, E, C}


def test_overdue_connections_are_not_in_a_share() -> None:
    steps = Steps()
    steps.enter(A, Phase.ANSWER)
    steps.see(unsent=[A])
    steps.now = 60.1
    steps.see(B, C, D, unsent=[A])
    assert steps.closed() == {A}


@pytest.mark.parametrize(
    ("host", "other", "closed"),
    [
        ("192.0.2.1", "192.0.2.2", 0),
        ("2001:db8::1", "2001:db8::ffff:1", 1),
        ("2001:db8::1", "2001:db8:0:1::1", 0),
    ],
)
def test_an_ipv6_network_has_one_share(host: str, other: str, closed: int) -> None:
    steps = Steps()
    steps.see(*peers(2, host), *peers(2, other))
    assert len(steps.closed()) == closed


@pytest.mark.parametrize(("number", "closed"), [(6, 0), (7, 1)])
def test_a_proxy_has_no_share(number: int, closed: int) -> None:
    steps = Steps(proxies=("192.0.2.1",))
    steps.see(*peers(number))
    assert len(steps.closed()) == closed


def test_the_oldest_incomplete_request_goes_when_there_are_too_many_connections() -> None:
    steps = Steps()
    clients = apart(8)
    for second, peer in enumerate(clients):
        steps.now = second
        steps.see(*clients[: second + 1])
        steps.enter(peer, Phase.IDLE if second % 2 else Phase.BODY)
    assert steps.closed() == {clients[0], clients[2]}


def test_shares_count_for_the_number_of_all() -> None:
    steps = Steps()
    steps.see(*peers(6), *apart(4)[2:])
    assert len(steps.closed()) == len(steps.closed() & set(peers(6))) == 3


# ---- the guard

ADDRESS = ("192.0.2.9", 80)
MANY = 2 * SLICE + 1
closed: list[Peer] = []


class ClosedAccepted(Accepted):
    """A connection that notes its end."""

    def close(self) -> None:
        closed.append(self.peer)


@dataclass
class Process:
    """A process with open `files`, the last ones of which are connections; a look may fail."""

    files: int = 1
    connections: int = 1
    failures: int = 0
    looks: int = 0
    slept: list[float] = field(default_factory=list)

    def look(self, addresses: Sequence[Peer]) -> Iterator[Accepted | None]:
        assert addresses == [ADDRESS]
        self.looks += 1
        if self.looks <= self.failures:
            raise MemoryError
        yield from [None] * (self.files - self.connections)
        for place in range(self.connections):
            yield ClosedAccepted(("192.0.2.1", 1_024 + place), 5)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if self.slept.count(SWEEP_SECONDS) >= 2:
            raise asyncio.CancelledError


def run(process: Process) -> None:
    """Run two sweeps."""
    closed.clear()
    with pytest.raises(asyncio.CancelledError):
        event_loop.run(guard(Connections(Limits(share=0)), [ADDRESS], process.look, process.sleep))


@pytest.mark.parametrize(("files", "closes", "pauses"), [(1, 1, 0), (MANY, 1, 2), (MANY, MANY, 4)])
def test_a_sweep_closes_connections_and_pauses_for_requests(
    files: int, closes: int, pauses: int
) -> None:
    """It pauses after each slice of files that it looks at, and of connections that it closes."""
    process = Process(files, closes)
    run(process)
    assert (len(closed), len(set(closed))) == (2 * closes, closes)
    assert process.slept == [*[PAUSE_SECONDS] * pauses, SWEEP_SECONDS] * 2


def test_the_guard_goes_on_after_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    run(Process(failures=1))
    assert len(closed) == 1
    assert "loop_failed" in caplog.text
