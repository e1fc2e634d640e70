"""Bodies have a bound of memory for all, and a client may hold as much as is free."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from vumi.server.bodies import BodyMemory, TooManyBodiesError


def test_one_client_holds_at_most_half_of_the_memory() -> None:
    memory = BodyMemory(100)
    with ExitStack() as held:
        for _ in range(5):
            held.enter_context(memory.hold("192.0.2.1", 10))
        with pytest.raises(TooManyBodiesError, match="50 bytes"):
            held.enter_context(memory.hold("192.0.2.1", 10))
        held.enter_context(memory.hold("192.0.2.2", 20))
    assert memory.free == 100


def test_many_clients_leave_some_memory_for_another() -> None:
    memory, clients = BodyMemory(1_000), [f"192.0.2.{place}" for place in range(20)]
    with ExitStack() as held:
        for client in clients * 60:
            try:
                held.enter_context(memory.hold(client, 10))
            except TooManyBodiesError:
                assert memory.free < 1_000 / 2
        assert memory.free >= 10
        held.enter_context(memory.hold("198.51.100.1", 10))
        assert memory.free >= 0


def test_the_addresses_of_an_ipv6_network_are_one_client() -> None:
    memory = BodyMemory(100)
    with memory.hold("2001:db8::1", 50), pytest.raises(TooManyBodiesError):
        memory.hold("2001:db8::2", 10).__enter__()


def test_memory_is_free_again_after_a_failure() -> None:
    memory = BodyMemory(100)
    with pytest.raises(ZeroDivisionError), memory.hold("192.0.2.1", 50):
        raise ZeroDivisionError
    assert memory.free == 100
