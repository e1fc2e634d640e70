"""A milestone becomes one event in each life of its badge, in the write of the count."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from chalicelib.counting import keys, milestones, storing
from chalicelib.counting.consumers import MarkerRemoval, fold_badges, store_views
from chalicelib.counting.folding import BadgeFold
from chalicelib.counting.milestones import (
    MAX_MILESTONES,
    MAX_SENT_A_DAY,
    NOTHING,
    Milestone,
    Milestones,
    event_id,
    reach,
)
from chalicelib.counting.storing import AT_ONCE
from chalicelib.counting.summary import read
from chalicelib.counting.view import Counting, View
from chalicelib.events.event import Event, Status, batches, event_id_in, key
from chalicelib.events.webhook_schedule import EventSchedule
from chalicelib.http.tokens import digest
from chalicelib.outgoing.urls import STRANGERS_SLOTS
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import ReachedError
from chalicelib.settings import Settings
from chalicelib.storage.ports import Table
from simulation.clocks import NOON
from simulation.resources import GivenResources, Names
from simulation.storage import FakeQueue, FaultyTable, MemoryTable, once
from simulation.views import AT_NOON, BADGE, WINDOWS, put_summary, put_views, ulid
from tests.unit import http_requests
from tests.unit.http_requests import Answer

URL = "https://hooks.example/reached"
OTHER = "https://other.example/"
SECRET, THEIRS = "s" * 32, "t" * 32
DAY = milestones.DAY / 1_000


@dataclass
class World:
    """A claimed badge, the queue of deliveries, and a clock that tests move."""

    table: Table = field(default_factory=MemoryTable)
    queue: FakeQueue = field(default_factory=FakeQueue)
    now: float = NOON
    views: int = 0

    def __post_init__(self) -> None:
        self.webhooks = EventSchedule(lambda: self.queue, self.clock)
        claiming.claim(self.table, BADGE, 0, NOON, digest(SECRET))

    def clock(self) -> float:
        return self.now

    @property
    def resources(self) -> GivenResources:
        return GivenResources(
            table=self.table,
            clock=self.clock,
            delivery_queue=self.queue,
            webhooks=self.webhooks,
            settings=Settings(webhook_secrets=("whsec_" + "x" * 32,)),
            resolver=Names(["93.184.216.34"]),
        )

    def set(self, *counts: int, url: str = URL, **more: Any) -> None:
        self.change(milestones=tuple(Milestone(count, url) for count in counts), **more)

    def change(self, secret: str = SECRET, **wanted: Any) -> None:
        owned = finding.authenticate(self.table, BADGE, secret)
        changing.change(self.table, owned, BadgeChange(**wanted), self.now, self.webhooks)

    def take(self, number: int) -> None:
        self.views += number
        put_views(self.table, *(int(self.now * 1000) + n for n in range(number)))

    def fold(self, table: Table | None = None) -> int:
        self.now += 1_800
        return BadgeFold(self.counting(table), BADGE).fold_all()

    def count(self, *views: View, table: Table | None = None, badge_id: str = BADGE) -> int:
        return storing.count_at_once(self.counting(table), badge_id, views)

    def counting(self, table: Table | None = None) -> Counting:
        return Counting(table or self.table, WINDOWS, self.clock, webhooks=self.webhooks)

    def hot(self, number: int) -> list[View]:
        start, self.views = self.views, self.views + number
        taken_at = int(self.now * 1000)
        return [View(BADGE, ulid(taken_at, n), hot=True) for n in range(start, start + number)]

    def events(self) -> list[Event]:
        due = [one for batch in batches(Status.ACTIVE) for one in self.query(batch)]
        return sorted(due, key=lambda event: (event.at, self.data(event)["milestone"]))

    def query(self, batch: str) -> list[Event]:
        found = self.table.query_due(batch, limit=99)
        return [Event.of(self.table.get(due.key) or {}) for due in found]

    def data(self, event: Event) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(event.payload)["data"]
        return data

    def sent(self) -> list[int]:
        return [self.data(event)["milestone"] for event in self.events()]

    def queued(self) -> list[str]:
        return [event_id_in(body) for body in self.queue.bodies]

    def state(self) -> Milestones:
        return Milestones.of(BADGE, self.table.get(keys.milestones(BADGE)) or {})

    def reached(self) -> list[int]:
        return [one.count for one in self.state().milestones if one.reached]

    def api(self, method: str, body: Any = None, owner: str = SECRET) -> Answer:
        sent = b"" if body is None else json.dumps(body).encode()
        path = f"/api/v1/badges?id={BADGE}"
        return http_requests.ask(
            self.resources, method, path, sent, authorization=f"Bearer {owner}"
        )


@pytest.fixture
def world() -> World:
    return World()


# ---- what is sent


def test_a_fold_that_reaches_a_milestone_creates_its_event(world: World) -> None:
    world.set(3, 9)
    world.take(2)
    assert (world.fold(), world.sent()) == (2, [])
    world.take(2)
    assert world.fold() == 2
    [event] = world.events()
    assert json.loads(event.payload) == {
        "type": "badge.milestone",
        "timestamp": "2026-03-14T13:00:00.000Z",
        "data": {"id": BADGE, "milestone": 3, "count": 4},
    }
    assert event.target.to_json() == {"url": URL}
    assert event.at == event.next_at == int(world.now * 1000)
    assert event.event_id == event_id(BADGE, 3, 0, AT_NOON)
    assert world.queued() == [event.event_id]
    assert (world.reached(), read(world.table, BADGE).milestone) == ([3], 9)


@pytest.mark.parametrize("number", [AT_ONCE, AT_ONCE - 1, 3])
def test_views_that_are_counted_at_once_reach_milestones(world: World, number: int) -> None:
    """Milestones take places in a transaction, so it has fewer views."""
    world.set(*range(1, MAX_MILESTONES + 1))
    views = world.hot(number)
    assert world.count(*views) == number
    assert world.count(*views) == 0
    following = number + 1 if number < MAX_MILESTONES else 0
    summary = read(world.table, BADGE)
    assert (summary.count, summary.milestone) == (number, following)
    assert world.sent() == [*range(1, min(number, MAX_MILESTONES) + 1)]
    assert sorted(world.queued()) == sorted(event.event_id for event in world.events())


def test_a_change_of_the_base_reaches_milestones(world: World) -> None:
    world.set(10, 20)
    world.now += 60
    world.set(10, 20)
    world.change(base=15)
    assert world.sent() == [10]
    world.change(base=0)
    world.change(base=15)
    assert world.sent() == [10]
    world.take(5)
    world.fold()
    assert world.sent() == [10, 20]
    assert world.queued() == [event_id(BADGE, count, 0, AT_NOON) for count in (10, 20)]


def test_a_fold_of_views_under_another_name_reaches_milestones(world: World) -> None:
    world.set(3, 9)
    put_summary(world.table, "mona", alias=BADGE, version=1)
    put_views(world.table, *(AT_NOON + n for n in range(3)), badge_id="mona")
    world.now += 1_800
    assert BadgeFold(world.counting(), "mona").fold_all() == 3
    assert (world.sent(), world.reached()) == ([3], [3])
    assert read(world.table, BADGE).milestone == 9


def test_the_consumers_announce_milestones(world: World) -> None:
    world.set(1, 2)
    assert store_views(world.hot(1), world.resources) == set()
    assert world.sent() == [1]
    world.now += 60
    world.take(1)
    mark = WINDOWS.mark(int(world.now * 1000))
    world.now += 1_800
    assert fold_badges([MarkerRemoval(BADGE, mark, 0)], world.resources) == []
    assert world.sent() == [1, 2]


def reach_by_fold(world: World, table: Table) -> None:
    world.fold(table)


def reach_at_once(world: World, table: Table) -> None:
    world.count(*world.hot(3), table=table)


REACHES = (reach_by_fold, reach_at_once)


@pytest.mark.parametrize("act", REACHES)
def test_of_two_concurrent_writes_one_reaches_a_milestone(
    world: World, act: Callable[[World, Table], None]
) -> None:
    world.set(3)
    world.take(3)
    raced = FaultyTable(world.table, before_write=once(world.fold))
    act(world, raced)
    assert (world.sent(), len(world.queued())) == ([3], 1)


def test_without_webhooks_a_milestone_waits_for_the_next_count(world: World) -> None:
    world.set(3)
    world.take(3)
    world.now += 1_800
    counting = replace(world.counting(), webhooks=None)
    assert BadgeFold(counting, BADGE).fold_all() == 3
    assert (world.sent(), world.reached()) == ([], [])
    summary = read(world.table, BADGE)
    assert reach(world.table, summary, 0, world.now, world.webhooks) == NOTHING
    world.take(1)
    world.fold()
    assert world.sent() == [3]


# ---- lives and owners


def test_a_milestone_that_is_set_again_stays_reached(world: World) -> None:
    world.set(2, 5)
    world.take(3)
    world.fold()
    world.set(2, 5, url=OTHER)
    assert (world.reached(), {one.url for one in world.state().milestones}) == ([2], {OTHER})
    world.set(2, 4)
    assert read(world.table, BADGE).milestone == 4
    with pytest.raises(ReachedError, match="the badge has 3 views with its base, so 3 is reached"):
        world.set(3)
    world.set()
    assert (world.reached(), read(world.table, BADGE).milestone) == ([], 0)
    assert world.sent() == [2]


def reset(world: World) -> None:
    world.change(reset=True)


def set_again(world: World) -> None:
    world.change(base=0)
    world.set()
    world.set(10)


def set_again_after_a_hand_over(world: World) -> None:
    world.change(base=0)
    world.set()
    for secrets in ((SECRET, THEIRS), (THEIRS, SECRET)):
        changing.hand_over(world.table, BADGE, secrets[0], digest(secrets[1]), world.now)
    world.set(10)


AGAIN = (reset, set_again, set_again_after_a_hand_over)


@pytest.mark.parametrize("begin_again", AGAIN)
def test_a_milestone_is_sent_once_a_day_however_often_it_is_reached(
    world: World, begin_again: Callable[[World], None]
) -> None:
    world.set(10)
    for _ in range(3):
        world.change(base=15)
        assert (world.reached(), world.sent()) == ([10], [10])
        assert read(world.table, BADGE).milestone == 0
        begin_again(world)
        world.now += DAY / 3 - 1
    world.change(base=15)
    assert world.sent() == [10]
    begin_again(world)
    world.now += 3
    world.change(base=15)
    assert world.sent() == [10, 10]
    assert len({*world.queued()}) == 2


def test_a_badge_sends_few_milestones_a_day(world: World) -> None:
    """Others are marked as reached, so that its next counts read nothing more."""
    for first in range(10, 10 * MAX_SENT_A_DAY, 10):
        world.set(*range(first, first + MAX_MILESTONES))
        world.change(base=first + 9)
    assert len(world.sent()) == MAX_SENT_A_DAY == len(world.state().sent)
    assert len(world.reached()) == MAX_MILESTONES
    world.change(base=0)
    world.now += DAY
    world.set(5)
    world.change(base=9)
    assert world.sent()[-1] == 5
    assert [*world.state().sent] == ["5"]


@pytest.mark.parametrize("act", REACHES)
@pytest.mark.parametrize("is_raced", [False, True])
def test_an_event_that_exists_is_left_as_it_is(
    world: World, act: Callable[[World, Table], None], *, is_raced: bool
) -> None:
    """An import brought the event of a badge that had gone on elsewhere, and was delivered."""
    world.set(3)
    world.take(3)
    place = key(event_id(BADGE, 3, 0, AT_NOON))
    delivered = place.item(status=Status.SUCCESS.value)

    def bring() -> None:
        world.table.put_all([delivered])

    if not is_raced:
        bring()
    act(world, FaultyTable(world.table, before_write=once(bring) if is_raced else lambda _: None))
    assert world.table.get(place) == delivered
    assert (world.reached(), world.sent(), world.queued()) == ([3], [], [])


def test_another_owner_neither_sees_nor_sends_milestones(world: World) -> None:
    world.set(2, 9)
    claiming.grant(world.table, BADGE, world.now, digest(THEIRS))
    world.take(2)
    world.fold()
    assert world.sent() == []
    assert world.api("GET", owner=THEIRS).body["milestones"] == []
    world.change(THEIRS, milestones=(Milestone(3, OTHER),))
    world.take(1)
    world.fold()
    assert [event.target.address for event in world.events()] == [OTHER]


def test_a_deleted_badge_has_no_milestones(world: World) -> None:
    world.set(2)
    owned = finding.authenticate(world.table, BADGE, SECRET)
    changing.delete(world.table, owned, world.now, 86_400)
    assert world.table.get(keys.milestones(BADGE)) is None
    assert read(world.table, BADGE).milestone == 0
    world.now = NOON + 90_000
    world.take(2)
    world.fold()
    assert world.sent() == []


# ---- over HTTP


def test_an_owner_sets_and_sees_milestones(world: World) -> None:
    goals = [{"count": 5, "url": OTHER}, {"count": 2.0, "url": URL}]
    for _ in range(2):
        assert world.api("PATCH", {"milestones": goals}).status == 200
    world.take(2)
    world.fold()
    assert world.api("GET").body["milestones"] == [
        {"count": 2, "url": URL, "reached": "2026-03-14T12:30:00.000Z"},
        {"count": 5, "url": OTHER, "reached": None},
    ]
    assert world.api("PATCH", {"milestones": []}).status == 200
    assert world.api("GET").body["milestones"] == []


def test_an_owner_waits_for_a_slot_to_resolve_names(world: World) -> None:
    with ExitStack() as held:
        while STRANGERS_SLOTS.acquire(blocking=False):
            held.callback(STRANGERS_SLOTS.release)
        refused = world.api("PATCH", {"milestones": [{"count": 5, "url": URL}]})
    assert refused.refusal == (400, "bad_request")
    assert world.api("PATCH", {"milestones": [{"count": 5, "url": URL}]}).status == 200
