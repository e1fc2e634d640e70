"""Clients share the time of the server, however many requests they send and whatever these cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vumi.server.fair_queue import Client, FairQueue


class World:
    """A queue and its clients, which wait with the numbers of their items."""

    def __init__(self) -> None:
        self.queue: FairQueue[int] = FairQueue()
        self.clients: dict[str, Client[int]] = {}

    def add(self, name: str, number: int = 1) -> None:
        client = self.clients.setdefault(name, Client(name))
        if not client.waiting:
            client.waiting.extend(range(number))
            self.queue.enter(client)

    def serve(self, costs: Mapping[str, float], number: int) -> list[str]:
        """Take items, charge their costs, and return their clients."""
        names = []
        for _ in range(number):
            client = self.queue.take()
            client.waiting.popleft()
            self.queue.charge(client, costs[client.name])
            if client.waiting:
                self.queue.enter(client)
            names.append(client.name)
        return names


@pytest.fixture
def world() -> World:
    return World()


def test_clients_take_turns_however_many_items_each_has(world: World) -> None:
    world.add("a", 100)
    world.add("b", 2)
    assert world.serve({"a": 1, "b": 1}, 6) == ["a", "b", "a", "b", "a", "a"]


def test_a_client_with_dear_items_gets_the_same_time_as_others(world: World) -> None:
    world.add("dear", 50)
    world.add("cheap", 500)
    served = Counter(world.serve({"dear": 10, "cheap": 1}, 220))
    assert served == {"dear": 20, "cheap": 200}


def test_an_item_of_a_new_client_is_next(world: World) -> None:
    for place in range(5):
        world.add(f"attacker {place}", 100)
    world.serve({f"attacker {place}": 10 + place for place in range(5)}, 17)
    world.add("visitor")
    assert world.serve({"visitor": 1}, 1) == ["visitor"]


def test_a_debt_lasts_while_others_wait_and_no_longer(world: World) -> None:
    costs = {"a": 10.0, "b": 1.0}
    world.add("b", 5)
    world.add("a")
    assert world.serve(costs, 2) == ["b", "a"]
    world.add("a")
    assert world.serve(costs, 5) == ["b"] * 4 + ["a"]
    assert not world.queue
    world.add("a")
    world.add("b")
    assert world.serve(costs, 2) == ["a", "b"]


def test_no_debt_outlives_the_last_waiting_item_of_a_client_that_owes_less(world: World) -> None:
    costs = {"a": 10.0, "b": 1.0}
    world.add("b", 5)
    world.add("a")
    world.serve(costs, 6)
    world.add("a")
    world.add("b")
    assert world.serve(costs, 1) == ["a"]


def test_no_debt_of_another_queue_is_owed(world: World) -> None:
    world.add("b", 2)
    world.add("a")
    world.serve({"a": 10.0, "b": 1.0}, 2)
    other = World()
    other.add("b", 2)
    other.clients["a"] = world.clients["a"]
    other.serve({"b": 1.0}, 1)
    other.add("a")
    assert other.serve({"a": 1.0, "b": 1.0}, 2) == ["a", "b"]


@given(st.lists(st.integers(1, 20), min_size=1, max_size=60))
def test_no_waiting_client_gets_less_than_another_by_more_than_two_items(
    costs: list[int],
) -> None:
    """The bound of start-time fair queueing, for clients that wait all the time."""
    world = World()
    for client in "abc":
        world.add(client, 61)
    used = Counter[str]()
    for cost in costs:
        [client] = world.serve(dict.fromkeys("abc", cost), 1)
        used[client] += cost
        assert all(abs(used[one] - used[other]) <= 2 * 20 for one, other in pairwise("abca"))
