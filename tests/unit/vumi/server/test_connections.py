"""The connections to close: deadlines, shares of addresses, and the order when there are many."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from vumi.server.connections import Connections, Limits, Phase
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

    def see(self, *peers: Peer, unsent: Iterable[Peer] = (), began: float | None = None) -> None:
        unread = set(unsent)
        seen = {peer: Accepted(peer, 5, int(peer in unread)) for peer in {*peers, *unread}}
        self.connections.update(seen, self.now if began is None else began)

    def enter(self, peer: Peer, *phases: Phase) -> None:
        for phase in phases:
            self.connections.enter(peer, phase)

    def closed(self) -> set[Peer]:
        return set(self.connections.to_close())


def peers(number: int, host: str = "192.0.2.1") -> list[Peer]:
    return [(host, 1_024 + place) for place in range(number)]


A, B, C, D, E, F, G = peers(7)


def apart(number: int) -> list[Peer]:
    """Return clients with different addresses."""
    return [(f"192.0.2.{place}", 1_024) for place in range(number)]


def test_a_first_head_has_a_deadline_from_when_the_connection_was_seen() -> None:
    steps = Steps()
    steps.see(A)
    steps.now = 4.0
    steps.see(A, B)
    steps.now = 10.0
    assert steps.closed() == set()
    steps.now = 10.1
    assert steps.closed() == {A}
    steps.now = 14.1
    assert steps.closed() == {A, B}


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
    steps.now = 60.0
    assert steps.closed() == set()
    steps.now = 60.1
    assert steps.closed() == {A}


def test_the_time_begins_again_when_all_was_received() -> None:
    steps = Steps()
    steps.enter(A, Phase.IDLE)
    steps.see(unsent=[A])
    steps.now = 50.0
    steps.see(A)
    steps.now = 60.0
    steps.see(unsent=[A])
    steps.now = 120.0
    assert steps.closed() == set()
    steps.now = 120.1
    assert steps.closed() == {A}


def test_a_connection_that_is_gone_is_forgotten() -> None:
    steps = Steps()
    steps.see(A, B)
    steps.now = 5.0
    steps.see(B)
    steps.now = 9.0
    steps.see(A, B)
    steps.now = 11.0
    assert steps.closed() == {B}


def test_a_request_that_came_during_a_look_is_not_forgotten() -> None:
    """The look may have passed its descriptor before it was accepted."""
    steps = Steps(Limits(share=0, connections=0))
    steps.now = 5.0
    steps.enter(A, Phase.ANSWER)
    steps.see(began=5.0)
    steps.see(A)
    assert steps.closed() == set()
    steps.now = 6.0
    steps.see(began=6.0)
    steps.see(A)
    assert steps.closed() == {A}


def test_an_address_has_a_share() -> None:
    steps = Steps()
    other = ("192.0.2.2", 1_024)
    steps.see(other)
    steps.now = 1.0
    steps.see(other, A)
    steps.now = 2.0
    steps.see(other, A, B, C)
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


def test_the_oldest_of_a_phase_goes_first() -> None:
    steps = Steps()
    for second, peer in enumerate((C, A, D, B, C)):
        steps.now = second
        steps.enter(peer, Phase.BODY)
    assert steps.closed() == {A}


def test_overdue_connections_are_not_in_a_share() -> None:
    steps = Steps()
    steps.enter(A, Phase.ANSWER)
    steps.see(unsent=[A])
    steps.now = 60.1
    steps.see(B, C, D, unsent=[A])
    assert steps.closed() == {A}


@pytest.mark.parametrize(
    ("host", "other", "is_shared"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
    ],
)
def test_an_ipv6_network_has_one_share(host: str, other: str, *, is_shared: bool) -> None:
    steps = Steps()
    steps.see(*peers(2, host), *peers(2, other))
    assert len(steps.closed()) == int(is_shared)


def test_a_proxy_has_no_share() -> None:
    steps = Steps(proxies=("192.0.2.1",))
    steps.see(*peers(6))
    assert steps.closed() == set()
    steps.see(*peers(7))
    assert len(steps.closed()) == 1


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
