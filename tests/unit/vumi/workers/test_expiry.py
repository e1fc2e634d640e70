"""Expired items are removed, and the removals that a consumer handles enter the change log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from chalicelib.counting import keys
from chalicelib.counting.view import View, marker_item
from chalicelib.storage.items import Item, Key, key_of
from chalicelib.storage.writes import Update
from chalicelib.ulids import new_ulid
from simulation.clocks import Clock
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.workers.deliveries import Change, ChangeDelivery
from vumi.workers.expiry import BATCH_REMOVALS, EXPIRY_SECONDS, remove_expired

START = 1_000_000.0


@dataclass
class Life:
    """A table and its expiry, as the engine has them."""

    database: Database
    table: SqliteTable
    clock: Clock
    removals: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = SqliteQueue(self.database, "views", self.clock)

    def step(self) -> float:
        return self.expire(lambda: self.removals.append(self.clock.now))

    def expire(self, on_removal: Callable[[], None]) -> float:
        return remove_expired(self.database, self.queue, self.clock, on_removal)

    def view(self, badge_id: str = "badge", at: float = START) -> Key:
        """Store a view that is kept for an hour."""
        key = keys.view(badge_id, new_ulid(int(at * 1000)))
        self.table.put_all([{"PK": key.pk, "SK": key.sk, "ttl": int(at) + 3_600}])
        return key

    def fold(self, badge_id: str, upto: float) -> None:
        """Move the watermark of a badge."""
        pk, sk = keys.summary(badge_id)
        self.table.put_all([{"PK": pk, "SK": sk, "watermark": int(upto * 1000)}])

    def execute(self, sql: str, *arguments: str) -> None:
        self.database.write(lambda connection: connection.execute(sql, arguments))

    def there(self, key: Key) -> bool:
        return self.table.get(key) is not None

    @property
    def changes(self) -> list[Key]:
        return [Key(*row) for row in self.database.read("SELECT pk, sk FROM changes")]


@pytest.fixture
def life(database: Database, table: SqliteTable) -> Life:
    return Life(database, table, Clock(START))


def test_expiry_removes_expired_items_and_reports_it_after_its_commit(life: Life) -> None:
    marker = marker_item("badge", int(START) - 600, int(START))
    life.table.put_all([marker])
    reported: list[Key] = []
    steps = []
    for life.clock.now in (START, START + 0.5, START + 0.5):
        steps.append(life.expire(lambda: reported.extend(life.changes)))
    assert steps == [EXPIRY_SECONDS, 0.0, EXPIRY_SECONDS], "there may be more after a batch"
    assert not life.there(key_of(marker))
    assert reported == [key_of(marker)]


def test_the_latest_time_to_live_counts(life: Life) -> None:
    now = int(START)
    for ttl in (now - 1, now + 1):
        life.table.put_all([{"PK": "p", "SK": "put again", "ttl": ttl}])
    for name, ttl in (("shortened", now + 1), ("kept", now - 1), ("due", now)):
        life.table.put_all([{"PK": "p", "SK": name, "ttl": ttl}])
    life.table.write(
        Update(Key("p", "shortened"), values={"ttl": now - 1}),
        Update(Key("p", "kept"), remove=("ttl",)),
    )
    life.step()
    assert [item["SK"] for item in life.table.query("p", limit=9)] == ["due", "kept", "put again"]


def test_a_time_to_live_beyond_every_integer_of_sqlite_never_ends(life: Life) -> None:
    items: list[Item] = [{"PK": "p", "SK": str(ttl), "ttl": ttl} for ttl in (2**63 - 1, 2**63)]
    life.table.put_all(items)
    assert life.step() == EXPIRY_SECONDS
    assert life.table.query("p", limit=9) == items


def test_the_oldest_are_removed_first_and_their_changes_have_the_whole_items(life: Life) -> None:
    """They expired 3, 2, 1 and 1 seconds ago."""
    places = (("p", "b", 1), ("p", "c", 3), ("p", "a", 1), ("q", "d", 2))
    items: list[Item] = [
        {"PK": pk, "SK": f"TX#{name}", "ttl": int(START) - ago, "map": {"l": [1, "ü"]}}
        for pk, name, ago in places
    ]
    life.table.put_all(items)
    life.step()
    changes: list[Change] = []

    def take(taken: Sequence[Change]) -> list[Change]:
        changes.extend(taken)
        return []

    ChangeDelivery(life.database, "reader", take).step()
    expected = [items[place] for place in (1, 3, 2, 0)]
    assert changes == [Change(number, START, item) for number, item in enumerate(expected, 1)]


@pytest.mark.parametrize("queue", ["views", "views-dead-letters"])
def test_the_marker_of_a_counted_view_stays_while_the_queue_has_its_message(
    life: Life, queue: str
) -> None:
    """Its message would count the view again."""
    ulid = new_ulid(int(START * 1000))
    kept = [keys.view("badge", ulid), keys.seen(ulid)]
    life.table.put_all([{"PK": key.pk, "SK": key.sk, "ttl": int(START)} for key in kept])
    life.fold("badge", START + 1)
    life.queue.send(View("badge", ulid).to_message())
    life.execute("UPDATE messages SET queue = ?", queue)
    life.clock.now += 1
    assert life.step() == EXPIRY_SECONDS
    assert all(map(life.there, kept))
    life.execute("DELETE FROM messages")
    assert life.step() == 0.0
    assert not any(map(life.there, kept))


def test_expiry_holds_a_view_until_the_watermark_of_its_badge_has_passed_it(life: Life) -> None:
    view, earlier = life.view(), life.view(at=START - 0.001)
    other = life.view("other")
    life.fold("other", START)
    life.clock.now += 3_600
    assert (life.step(), life.there(earlier)) == (EXPIRY_SECONDS, True), "not an hour old"
    life.clock.now += 30 * 86_400
    assert [life.step() for _ in range(2)] == [0.0, EXPIRY_SECONDS]
    assert [*map(life.there, (other, earlier, view))] == [False, True, True], "never folded"
    assert len(life.removals) == 1
    life.fold("badge", START - 0.001)
    assert [life.step() for _ in range(2)] == [0.0, EXPIRY_SECONDS]
    assert [*map(life.there, (earlier, view))] == [False, True]
    life.fold("badge", START)
    assert (life.step(), life.there(view)) == (0.0, False)


def test_the_number_of_a_badge_goes_with_its_last_view(life: Life) -> None:
    for at in (START, START + 300):
        life.view(at=at)
        life.view("other", at=at)
    life.fold("badge", START + 300)
    life.clock.now += 3_601
    assert [life.step() for _ in range(2)] == [0.0, EXPIRY_SECONDS]
    numbers = "SELECT pk, expires FROM viewed ORDER BY pk"
    ends = int(START) + 3_600
    assert life.database.read(numbers) == [("USER#badge", ends + 300), ("USER#other", ends)]
    life.clock.now += 300
    life.step()
    assert life.database.read(numbers) == [("USER#other", ends)]
    life.view()
    assert life.table.count("USER#badge", limit=9) == 2


def test_expiry_works_in_batches(life: Life) -> None:
    """150 items are removed, and then 10 views each of 30 badges, of which one is not yet due."""
    life.table.put_all([{"PK": "p", "SK": f"{place}", "ttl": 1} for place in range(150)])
    for badge_id in (f"badge {place}" for place in range(30)):
        life.fold(badge_id, START + 300)
        for _ in range(BATCH_REMOVALS // 10):
            life.view(badge_id)
        life.view(badge_id, START + 7_200)
    life.clock.now += 3_601
    left = "SELECT (SELECT count(*) FROM items WHERE pk = 'p'), (SELECT count(*) FROM views)"
    numbers = [(life.step(), *life.database.read(left)[0]) for _ in range(6)]
    views = (330, 280, 180, 80, 30, 30)
    rests = [*[0.0] * 5, EXPIRY_SECONDS]
    assert numbers == [*zip(rests, (50, 0, 0, 0, 0, 0), views, strict=True)]


@pytest.mark.parametrize(
    ("key", "is_told"),
    [
        (keys.marker("badge", 300), True),
        (Key("WALLET#w", "TX#1"), True),
        (keys.view("badge", new_ulid(0)), False),
        (keys.seen(new_ulid(0)), False),
        (keys.summary("tombstone"), False),
    ],
)
def test_only_removals_that_a_consumer_handles_enter_the_change_log(
    life: Life, key: Key, *, is_told: bool
) -> None:
    life.fold("badge", START)
    life.table.put_all([{"PK": key.pk, "SK": key.sk, "ttl": 1}])
    assert (life.step(), life.there(key)) == (0.0, False)
    assert life.changes == ([key] if is_told else [])
