"""Clients share the time of the server, however many requests they send and whatever these cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vumi.server.fair_queue import MAX_IDLE, FairQueue


@pytest.fixture
def queue() -> FairQueue[int]:
    return FairQueue()


def serve(queue: FairQueue[int], costs: Mapping[str, float], number: int) -> list[str]:
    """Take items, charge their costs, and return their clients."""
    clients = []
    for _ in range(number):
        client, _ = queue.take()
        queue.charge(client, costs[client])
        clients.append(client)
    return clients


def add(queue: FairQueue[int], client: str, number: int = 1) -> None:
    for place in range(number):
        queue.add(client, place)


def test_the_items_of_one_client_keep_their_order_and_the_queue_is_true_meanwhile(
    queue: FairQueue[int],
) -> None:
    add(queue, "a", 4)
    taken = []
    while queue:
        client, item = queue.take()
        queue.charge(client, 1.0)
        taken.append(item)
    assert taken == [0, 1, 2, 3]


def test_clients_take_turns_however_many_items_each_has(queue: FairQueue[int]) -> None:
    add(queue, "a", 100)
    add(queue, "b", 2)
    assert serve(queue, {"a": 1, "b": 1}, 6) == ["a", "b", "a", "b", "a", "a"]


def test_a_client_with_dear_items_gets_the_same_time_as_others(queue: FairQueue[int]) -> None:
    add(queue, "dear", 50)
    add(queue, "cheap", 500)
    served = Counter(serve(queue, {"dear": 10, "cheap": 1}, 220))
    assert served == {"dear": 20, "cheap": 200}


def test_an_item_of_a_new_client_is_next(queue: FairQueue[int]) -> None:
    for place in range(5):
        add(queue, f"attacker {place}", 100)
    serve(queue, {f"attacker {place}": 10 + place for place in range(5)}, 17)
    add(queue, "visitor")
    assert serve(queue, {"visitor": 1}, 1) == ["visitor"]


def test_a_debt_lasts_while_others_wait_and_no_longer(queue: FairQueue[int]) -> None:
    costs = {"a": 10.0, "b": 1.0}
    add(queue, "b", 5)
    add(queue, "a")
    assert serve(queue, costs, 2) == ["b", "a"]
    add(queue, "a")
    assert serve(queue, costs, 5) == ["b"] * 4 + ["a"]
    assert not queue
    add(queue, "a")
    add(queue, "b")
    assert serve(queue, costs, 2) == ["a", "b"]


def test_the_expected_cost_is_that_of_the_clients_last_item(queue: FairQueue[int]) -> None:
    add(queue, "a", 2)
    assert queue.expected_cost() == 0
    serve(queue, {"a": 3.0}, 1)
    assert queue.expected_cost() == 3


def test_idle_clients_are_forgotten_while_another_is_busy(queue: FairQueue[int]) -> None:
    add(queue, "busy", 3 * MAX_IDLE)
    for place in range(2 * MAX_IDLE):
        add(queue, str(place))
        serve(queue, defaultdict(lambda: 0.5), 2)
    assert queue
    assert queue.clients < MAX_IDLE + 10


@given(st.lists(st.integers(1, 20), min_size=1, max_size=60))
def test_no_waiting_client_gets_less_than_another_by_more_than_two_items(
    costs: list[int],
) -> None:
    """The bound of start-time fair queueing, for clients that wait all the time."""
    queue: FairQueue[int] = FairQueue()
    for client in "abc":
        add(queue, client, 61)
    used = Counter[str]()
    for cost in costs:
        client, _ = queue.take()
        queue.charge(client, cost)
        used[client] += cost
        assert all(abs(used[one] - used[other]) <= 2 * 20 for one, other in pairwise("abca"))
