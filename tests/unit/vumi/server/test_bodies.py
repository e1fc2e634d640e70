"""Bodies have a bound of memory for all, and a client may hold as much as is free."""

from __future__ import annotations

from vumi.server.bodies import BodyMemory


def test_one_client_holds_at_most_half_of_the_memory() -> None:
    memory = BodyMemory(100)
    assert [memory.reserve("192.0.2.1", 10) for _ in range(6)] == [True] * 5 + [False]
    assert memory.reserve("192.0.2.2", 20)
    for client, size in [("192.0.2.1", 50), ("192.0.2.2", 20)]:
        memory.release(client, size)
    assert memory.free == 100
    assert memory.reserve("192.0.2.1", 50)


def test_many_clients_leave_some_memory_for_another() -> None:
    memory = BodyMemory(1_000)
    for client in [f"192.0.2.{place}" for place in range(20)] * 60:
        memory.reserve(client, 10)
    assert 10 <= memory.free < 100
    assert memory.reserve("198.51.100.1", 10)


def test_the_addresses_of_an_ipv6_network_are_one_client() -> None:
    memory = BodyMemory(100)
    assert memory.reserve("2001:db8::1", 50)
    assert not memory.reserve("2001:db8::2", 10)
