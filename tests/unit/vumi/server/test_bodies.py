"""Bodies have bounds for all, and a client may hold as much as is free."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from vumi.server.bodies import SharedCapacity, TooManyBodiesError


def shares(capacity: SharedCapacity, client: str, size: int, held: ExitStack) -> bool:
    """Return whether a client has a share of a size, and hold it."""
    try:
        held.enter_context(capacity.share(client, size))
    except TooManyBodiesError:
        return False
    return True


def test_one_client_holds_at_most_half_of_the_capacity() -> None:
    capacity = SharedCapacity(100)
    with ExitStack() as held:
        assert [shares(capacity, "192.0.2.1", 10, held) for _ in range(6)] == [True] * 5 + [False]
        assert shares(capacity, "192.0.2.2", 20, held)
        assert capacity.free == 30
    assert capacity.free == 100
    with capacity.share("192.0.2.1", 50):
        assert capacity.free == 50


def test_many_clients_leave_some_capacity_for_another() -> None:
    capacity = SharedCapacity(1_000)
    with ExitStack() as held:
        for client in [f"192.0.2.{place}" for place in range(20)] * 60:
            shares(capacity, client, 10, held)
        assert 10 <= capacity.free < 100
        assert shares(capacity, "198.51.100.1", 10, held)


def test_the_addresses_of_an_ipv6_network_are_one_client() -> None:
    capacity = SharedCapacity(100)
    with capacity.share("2001:db8::1", 50), pytest.raises(TooManyBodiesError):
        capacity.share("2001:db8::2", 10).__enter__()
