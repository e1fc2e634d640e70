"""Heavy clients and crowds rest while light clients are answered, who share the server's time."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vumi.server.request_queue import (
    BURST_SECONDS,
    COMMIT_SECONDS,
    COUNT_SECONDS,
    CROWD_SHARE,
    FREE_SECONDS,
    HEAVY_COMMIT_SECONDS,
    MAX_CLIENTS,
    MAX_COMMIT_SECONDS,
    MAX_COST_SECONDS,
    MAX_DELAY_SECONDS,
    OTHERS_SECONDS,
    REST,
    Client,
    Clients,
    FairQueue,
    RequestQueue,
)

LIGHT = {"b": 0.0002, "c": 0.0002}


class Recent(Clients[int]):
    """Clients that are asked for by their names."""

    def add(self, name: str, cost: float, now: float) -> None:
        self.use(self.of(name, now), cost, now)

    def use_up(self, costs: Mapping[str, float], seconds: float = 1.0) -> None:
        """Let clients use the server for some seconds, each this time in every 10 ms."""
        for step in range(round(seconds * 100)):
            for name, cost in costs.items():
                self.add(name, cost, step / 100)

    def has_heavy(self, name: str, now: float) -> bool:
        return self.is_heavy(self.of(name, now), now)


@pytest.mark.parametrize(
    ("costs", "heavy"),
    [
        ({"a": 0.01}, ""),
        ({"a": 0.005, "b": 0.005}, ""),
        ({"a": 0.004, "b": 0.0002}, ""),
        ({"a": 0.005, "b": 0.0002, "c": 0.0002}, "a"),
        ({"a": 0.003, "b": 0.003, "c": 0.0002, "d": 0.0002, "e": 0.0002}, "ab"),
    ],
    ids=["alone", "equal", "as many are heavy", "one", "two"],
)
def test_a_client_is_heavy_by_its_use_while_most_are_light(
    costs: Mapping[str, float], heavy: str
) -> None:
    recent = Recent()
    recent.use_up(costs)
    assert "".join(client for client in costs if recent.has_heavy(client, 1.0)) == heavy


def test_a_client_is_heavy_after_a_burst_until_its_share_has_made_up_for_it() -> None:
    recent = Recent()
    recent.use_up({"b": 0.0, "c": 0.0})
    recent.add("a", BURST_SECONDS, 1.0)
    assert not recent.has_heavy("a", 1.0)
    recent.add("a", 0.003, 1.0)
    assert recent.has_heavy("a", 1.0)
    assert not recent.has_heavy("a", 1.11)


def test_a_client_is_not_heavy_by_an_interruption_of_its_answer(queue: RequestQueue[int]) -> None:
    queue.add("b", 1, 1.0)
    queue.take(1.0)
    queue.charge(3.0, 1.0)
    queue.add("b", 2, 1.0)
    assert queue.wait(1.0) == 0


def test_clients_that_left_are_not_counted() -> None:
    recent = Recent()
    recent.use_up({"a": 0.01, "b": 0.0, "c": 0.0}, 0.1)
    recent.add("left", 0.0, 0.1)
    recent.use_up({"a": 0.01, "b": 0.0, "c": 0.0}, 1.2)
    assert recent.has_heavy("a", 1.2)
    recent.add("a", 0.01, 2.2)
    assert not recent.has_heavy("a", 2.2)


def test_the_use_of_few_clients_is_remembered() -> None:
    recent = Recent()
    recent.use_up({"a": 0.01, "b": 0.0, "c": 0.0})
    for place in range(MAX_CLIENTS - 3):
        recent.add(str(place), 0.0, 1.0)
    assert recent.has_heavy("a", 1.0)
    recent.add("last", 0.0, 1.0 + COUNT_SECONDS)
    assert not recent.has_heavy("a", 1.0)


def test_crowds_are_no_clients_of_which_most_are_light() -> None:
    recent = Recent()
    recent.use_up({"a": 0.01, "b": 0.0, "c": 0.0})
    for name in "xyz":
        recent.use(recent.of(f"\n{name}", 1.0, CROWD_SHARE), 1.0, 1.0)
    assert recent.has_heavy("a", 1.1)


def test_a_client_with_a_waiting_item_is_not_forgotten() -> None:
    recent = Recent()
    waiting = recent.of("waits", 0.0)
    waiting.waiting.append(1)
    for place in range(2 * MAX_CLIENTS):
        recent.of(str(place), 0.0)
    assert recent.of("waits", 0.0) is waiting


@pytest.fixture
def queue() -> RequestQueue[int]:
    """Return a queue at 1 s with two light clients, and a heavy one that used 10 ms just now."""
    queue: RequestQueue[int] = RequestQueue()
    for step in range(101):
        for client, cost in (LIGHT | {"a": 0.01}).items():
            queue.add(client, step, step / 100)
            queue.take(step / 100)
            queue.charge(cost, step / 100)
    queue.rest(0.0, 1.0)
    queue.add("a", 0, 1.0)
    queue.take(1.0)
    queue.charge(0.002, 1.0)
    queue.rest(0.01, 1.0)
    return queue


def test_a_heavy_client_rests_for_a_multiple_of_its_time(queue: RequestQueue[int]) -> None:
    queue.add("a", 1, 1.0)
    assert queue.wait(1.0) == pytest.approx(0.04)
    assert queue.take(1.03) is None
    assert queue.wait(1.05) == 0
    assert queue.take(1.05) == 1


def test_light_clients_are_first_until_a_heavy_one_has_waited_long(
    queue: RequestQueue[int],
) -> None:
    queue.add("a", 1, 1.0)
    for number in (2, 3, 4):
        queue.add("b", number, 1.0)
    assert queue.wait(1.0) == 0
    for number, now in ((2, 1.0), (3, 1.05)):
        assert queue.take(now) == number
        queue.charge(0.0002, now)
    assert queue.take(1.05 + MAX_DELAY_SECONDS) == 1


@pytest.mark.parametrize(
    ("cost", "order"),
    [
        (0.9 * FREE_SECONDS, ["waits", "back", "new"]),
        (1.1 * FREE_SECONDS, ["waits", "new", "back"]),
    ],
    ids=["light", "over its share"],
)
def test_a_light_client_that_comes_back_waits_for_nobody_who_comes_after_it(
    cost: float, order: list[str]
) -> None:
    queue: RequestQueue[str] = RequestQueue()
    queue.add("back", "first", 1.0)
    queue.add("waits", "waits", 1.0)
    queue.take(1.0)
    queue.charge(cost, 1.0)
    queue.add("back", "back", 1.0)
    queue.add("new", "new", 1.0)
    taken = []
    while item := queue.take(1.0):
        taken.append(item)
        queue.charge(0.0, 1.0)
    assert taken == order


@pytest.mark.parametrize(
    ("client", "seconds"),
    [("a", HEAVY_COMMIT_SECONDS), ("b", COMMIT_SECONDS)],
    ids=["heavy", "light"],
)
def test_a_commit_takes_what_ends_in_its_time_by_what_the_clients_last_one_cost(
    queue: RequestQueue[int], client: str, seconds: float
) -> None:
    queue.add(client, 1, 1.5)
    cost = {"a": 0.002, "b": LIGHT["b"]}[client]
    assert queue.take(1.5, began=1.5 + cost - 1.001 * seconds) is None
    assert queue.take(1.5, began=1.5 + cost - 0.999 * seconds) == 1


@pytest.mark.parametrize(
    ("own_time", "seconds"),
    [(0.0002, COMMIT_SECONDS), (0.003, 0.006), (1.0, MAX_COMMIT_SECONDS)],
    ids=["fast", "slow", "it hangs"],
)
def test_a_commit_takes_more_on_a_slow_disk(own_time: float, seconds: float) -> None:
    queue: RequestQueue[int] = RequestQueue()
    for now in range(100):
        queue.add("b", now, now)
        queue.take(now)
        queue.charge(0.001, now)
        queue.rest(0.001 + own_time, now)
    queue.add("b", 100, 100)
    assert queue.take(100, began=100.001 - 1.001 * seconds) is None
    assert queue.take(100, began=100.001 - 0.999 * seconds) == 100


def test_a_failed_commit_clears_the_queue_even_of_a_client_whose_item_is_not_answered(
    queue: RequestQueue[int],
) -> None:
    for number in range(3):
        queue.add("a", number, 1.0)
        queue.add("b", number, 1.0)
    assert queue.take(1.0) == 0
    assert sorted(queue.clear()) == [0, 1, 1, 2, 2]
    assert not queue
    queue.add("b", 7, 1.0)
    assert queue.take(1.0) == 7


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
    assert not world.queue.starts
    world.add("a")
    world.add("b")
    assert world.serve(costs, 2) == ["a", "b"]
    world.add("b", 5)
    world.add("a")
    assert world.serve(costs, 6)[-1] == "b", "which owes less"
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
    used = dict.fromkeys("abc", 0)
    for cost in costs:
        [client] = world.serve(dict.fromkeys("abc", cost), 1)
        used[client] += cost
        assert max(used.values()) - min(used.values()) <= 2 * 20


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
    for _ in range(2):
        assert queue.take(1.0) == "deferred"
        queue.charge(0.01, 1.0, CROWD)
    used = ABOVE + 4 * 0.01 - BURST_SECONDS
    answer(queue, "other", 0.0001, 1.0 + used / CROWD_SHARE)
    assert must_wait(queue, 0.99 + used / CROWD_SHARE, CROWD)
    assert not must_wait(queue, 1.01 + used / CROWD_SHARE, CROWD)
