"""Dead letters become views where it is certain that they are not counted yet, and only there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from chalicelib.ports import Delete, Item, Key, Put, StorageError, Table, Unavailable, number
from chalicelib.views import counting, folding, keys, storing
from chalicelib.views.counting import Count
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import View
from deploy import redrive
from deploy.redrive import INVISIBLE_SECONDS, ON_UNPROVEN, Outcome, Redrive
from local.table import SqliteTable
from tests.unit.fakes import NOON, FaultyTable, raising, removal, sqlite_table, ulid_of

URL = "https://sqs.us-east-1.amazonaws.com/123456789012/vu-mi-dead"
LIFETIME = Lifetime(window=300, redelivery=300)
OLD = 300 - 60
"""From this age on, in seconds, a view may have been removed: the life of one, less the margin."""


_numbers = count()


class Crash(BaseException):
    """The process ends here."""


def crash_at(call: int) -> Callable[[object], None]:
    """What ends the process at the first call (1), the second (2) or a later one."""
    calls = count(1)

    def step(_: object) -> None:
        if next(calls) == call:
            raise Crash

    return step


@dataclass
class Letter:
    """A message of the dead-letter queue, and from when on it can be received."""

    body: object
    visible_at: float = 0.0


@dataclass
class DeadLetters:
    """An SQS client with one queue. What is received is invisible for as long as was asked for."""

    clock: Callable[[], float]
    letters: dict[str, Letter] = field(default_factory=dict)
    crashes: bool = False
    received: list[int] = field(default_factory=list)

    def put(self, *bodies: object) -> None:
        for body in bodies:
            self.letters[f"m-{next(_numbers)}"] = Letter(body)

    def receive_message(
        self,
        QueueUrl: str,  # noqa: N803  boto3's names
        MaxNumberOfMessages: int,  # noqa: N803
        VisibilityTimeout: int,  # noqa: N803
        WaitTimeSeconds: int,  # noqa: N803
    ) -> dict[str, Any]:
        assert QueueUrl == URL
        assert 1 <= MaxNumberOfMessages <= 10, "InvalidParameterValue"
        assert 0 < WaitTimeSeconds <= 20, "a short poll may miss messages that are there"
        assert len(self.received) < 1_000, "the run never ends"
        now = self.clock()
        there = [name for name, letter in self.letters.items() if letter.visible_at <= now]
        given = there[:MaxNumberOfMessages]
        for name in given:
            self.letters[name].visible_at = now + VisibilityTimeout
        self.received.append(len(given))
        return {"Messages": [self._message(name) for name in given]} if given else {}

    def _message(self, name: str) -> dict[str, object]:
        body = self.letters[name].body
        message: dict[str, object] = {"MessageId": name, "ReceiptHandle": f"handle-{name}"}
        return message if body is None else {**message, "Body": body}

    def delete_message(self, QueueUrl: str, ReceiptHandle: str) -> None:  # noqa: N803
        assert QueueUrl == URL
        if self.crashes:
            raise Crash
        del self.letters[ReceiptHandle.removeprefix("handle-")]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[SqliteTable]:
    with sqlite_table(tmp_path) as opened:
        yield opened


def job(letters: DeadLetters, table: Table, unproven: str = "keep") -> Redrive:
    client: Any = letters
    return Redrive(client, URL, table, LIFETIME, ON_UNPROVEN[unproven])


def settled(
    table: Table, *bodies: object, unproven: str = "keep"
) -> tuple[dict[Outcome, int], list[object]]:
    """What became of dead letters at noon, and the bodies of those that are still there."""
    letters = DeadLetters(lambda: NOON)
    letters.put(*bodies)
    outcomes = job(letters, table, unproven).run(lambda: NOON)
    return dict(outcomes), [letter.body for letter in letters.letters.values()]


def view(age: float, shown: int = 0, badge_id: str = "octocat") -> View:
    """A view taken so many seconds before noon."""
    return View(badge_id, ulid_of(NOON - age, f"{next(_numbers):016}"), shown)


def counted(folded: int, live: int, floor: int) -> Count:
    return Count(folded=folded, live=live, floor=floor)


def with_floor(table: Table, floor: int) -> None:
    """Another visitor's view was put, removed and folded; he saw one less than the floor."""
    other = view(OLD + 600, shown=floor - 1)
    assert storing.store([other], table, LIFETIME, NOON - OLD - 600, map) == {}
    table.write(Delete(keys.view(other.badge_id, other.ulid)))
    folding.fold([removal(1)], table, NOON)
    assert counting.read(table, "octocat") == counted(folded=1, live=0, floor=floor)


# ---- each row of the table


@pytest.mark.parametrize("age", [0, OLD, 86_400])
def test_a_view_that_is_in_the_table_is_counted_already(table: SqliteTable, age: float) -> None:
    there = view(age)
    assert storing.store([there], table, LIFETIME, NOON - age, map) == {}
    before = counting.read(table, "octocat")
    assert settled(table, there.to_message()) == ({Outcome.COUNTED: 1}, [])
    assert counting.read(table, "octocat") == before == counted(folded=0, live=1, floor=1)


def test_a_hot_view_that_is_counted_stays_counted_once(table: SqliteTable) -> None:
    view = View.taken("octocat", 0, NOON, hot=int(NOON) + 3_600)
    assert storing.store([view], table, LIFETIME, NOON, map) == {}
    letters = DeadLetters(lambda: NOON)
    letters.put(view.to_message())
    assert job(letters, table).run(lambda: NOON + 100) == {Outcome.COUNTED: 1}
    assert counting.read(table, "octocat").counted == 1
    assert number(table.get(keys.seen(view.ulid)) or {}, "ttl") == int(NOON) + 600


def test_a_hot_view_that_was_never_counted_is(table: SqliteTable) -> None:
    letters = DeadLetters(lambda: NOON)
    letters.put(View.taken("octocat", 0, NOON, hot=int(NOON) + 3_600).to_message())
    assert job(letters, table).run(lambda: NOON + 100) == {Outcome.STORED: 1}
    assert counting.read(table, "octocat") == Count(folded=1, live=0, floor=1)


def test_a_view_that_is_in_the_table_stays_as_long_as_one_just_put(table: SqliteTable) -> None:
    """Its message may come once more while it is being deleted.

    Put 400 s before noon its ttl is at noon, -400 + 300 up to a whole 300; put at noon, 300 later.
    """
    there = view(400)
    key = keys.view("octocat", there.ulid)
    assert storing.store([there], table, LIFETIME, NOON - 400, map) == {}
    assert table.get(key) == {"PK": key.pk, "SK": key.sk, "ttl": int(NOON)}
    settled(table, there.to_message())
    assert table.get(key) == {"PK": key.pk, "SK": key.sk, "ttl": int(NOON) + 300}


@pytest.mark.parametrize("age", [-30, 0, 1, OLD - 0.001])
def test_a_view_too_young_to_have_been_removed_was_never_stored(
    table: SqliteTable, age: float
) -> None:
    """Whatever the floor says: here it is raised far above what the visitor saw."""
    with_floor(table, 9)
    assert settled(table, view(age, shown=3).to_message()) == ({Outcome.STORED: 1}, [])
    assert counting.read(table, "octocat") == counted(folded=1, live=1, floor=9)


def test_the_youth_that_proves_it_ends_a_minute_before_the_shortest_life(
    table: SqliteTable,
) -> None:
    """300 s - 60 s: whoever took the view and whoever looks now have different clocks."""
    assert redrive.MARGIN_SECONDS == 60
    with_floor(table, 9)
    outcomes, _ = settled(table, view(OLD, 3).to_message(), view(OLD - 0.001, 3).to_message())
    assert outcomes == {Outcome.UNPROVEN: 1, Outcome.STORED: 1}


@pytest.mark.parametrize("shown", [9, 10])
def test_a_view_whose_visitor_saw_no_less_than_the_floor_was_never_stored(
    table: SqliteTable, shown: int
) -> None:
    """Its put would first have raised the floor to one above what he saw."""
    with_floor(table, 9)
    assert settled(table, view(86_400, shown).to_message()) == ({Outcome.STORED: 1}, [])
    assert counting.read(table, "octocat") == counted(folded=1, live=1, floor=shown + 1)


def test_a_view_of_a_badge_that_has_no_floor_was_never_stored(table: SqliteTable) -> None:
    assert settled(table, view(86_400).to_message()) == ({Outcome.STORED: 1}, [])
    assert counting.read(table, "octocat") == counted(folded=0, live=1, floor=1)


@pytest.mark.parametrize("shown", [0, 8])
def test_a_view_whose_visitor_saw_less_than_the_floor_may_have_been_counted_and_is_kept(
    table: SqliteTable, shown: int
) -> None:
    with_floor(table, 9)
    body = view(OLD, shown).to_message()
    assert settled(table, body) == ({Outcome.UNPROVEN: 1}, [body])
    assert counting.read(table, "octocat") == counted(folded=1, live=0, floor=9)


def test_a_view_that_was_put_removed_and_folded_is_kept(table: SqliteTable) -> None:
    """The whole way of it, as ten deliveries may have gone: put, and then the message not deleted.

    Counted once it is 1; a second put would make it 2.
    """
    gone = view(900)
    assert storing.store([gone], table, LIFETIME, NOON - 900, map) == {}
    table.write(Delete(keys.view("octocat", gone.ulid)))
    folding.fold([removal(1, NOON - 900)], table, NOON)
    body = gone.to_message()
    assert settled(table, body) == ({Outcome.UNPROVEN: 1}, [body])
    assert counting.read(table, "octocat") == counted(folded=1, live=0, floor=1)


def test_old_views_whose_visitors_saw_the_same_are_all_stored(table: SqliteTable) -> None:
    """The first, now stored, has itself raised the floor above what all of them saw."""
    bodies = [view(OLD).to_message() for _ in range(3)]
    assert settled(table, *bodies) == ({Outcome.STORED: 3}, [])


def test_a_view_of_a_count_that_began_anew_since_is_unproven(table: SqliteTable) -> None:
    """The floor of the new count says nothing of the old one."""
    old = view(OLD)
    reset = Put({"PK": f"USER#{old.badge_id}", "SK": "USER", "reset": 1})
    table.write(reset)
    assert settled(table, old.to_message()) == ({Outcome.UNPROVEN: 1}, [old.to_message()])


@pytest.mark.parametrize(
    "body",
    [
        None,
        "",
        "{",
        "null",
        '{"id": "octocat"}',
        '{"id": "octocat", "view": "no ULID", "shown": 0}',
        '{"id": "octocat", "view": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "shown": -1}',
    ],
)
def test_a_malformed_letter_is_kept_and_delays_nobody(table: SqliteTable, body: object) -> None:
    before, behind = view(0), view(0)
    outcomes, kept = settled(table, before.to_message(), body, behind.to_message())
    assert outcomes == {Outcome.MALFORMED: 1, Outcome.STORED: 2}
    assert kept == [body]
    assert counting.read(table, "octocat").live == 2


def test_a_view_that_was_stored_directly_removed_and_folded_is_kept(table: SqliteTable) -> None:
    """The queue had its message all the same, and none of ten deliveries put it."""
    gone = view(900)
    storing.store_one(gone, table, LIFETIME, NOON - 900)
    table.write(Delete(keys.view("octocat", gone.ulid)))
    folding.fold([removal(1, NOON - 900)], table, NOON)
    body = gone.to_message()
    assert settled(table, body) == ({Outcome.UNPROVEN: 1}, [body])
    assert counting.read(table, "octocat") == counted(folded=1, live=0, floor=1)


# ---- what the operator asks for


def test_told_to_count_it_stores_what_may_have_been_counted(table: SqliteTable) -> None:
    with_floor(table, 9)
    body = view(OLD, shown=3).to_message()
    assert settled(table, body, unproven="count") == ({Outcome.FORCED: 1}, [])
    assert counting.read(table, "octocat") == counted(folded=1, live=1, floor=9)


def test_told_to_drop_it_deletes_what_may_have_been_counted(table: SqliteTable) -> None:
    with_floor(table, 9)
    body = view(OLD, shown=3).to_message()
    assert settled(table, body, unproven="drop") == ({Outcome.DROPPED: 1}, [])
    assert counting.read(table, "octocat") == counted(folded=1, live=0, floor=9)


@pytest.mark.parametrize("unproven", ["count", "drop"])
def test_what_it_is_told_is_about_unproven_views_alone(table: SqliteTable, unproven: str) -> None:
    there = view(0)
    assert storing.store([there], table, LIFETIME, NOON, map) == {}
    outcomes, kept = settled(
        table, "{", there.to_message(), view(0).to_message(), unproven=unproven
    )
    assert outcomes == {Outcome.MALFORMED: 1, Outcome.COUNTED: 1, Outcome.STORED: 1}
    assert kept == ["{"]
    assert counting.read(table, "octocat").live == 2


def test_it_keeps_what_is_unproven_unless_it_is_told_otherwise() -> None:
    client: Any = None
    table: Any = None
    assert Redrive(client, URL, table, LIFETIME).on_unproven is Outcome.UNPROVEN
    assert set(ON_UNPROVEN) == {"keep", "count", "drop"}


# ---- the queue


def test_there_may_be_more_than_come_at_once(table: SqliteTable) -> None:
    """25 letters come by 10, 10 and 5; then there is none."""
    letters = DeadLetters(lambda: NOON)
    letters.put(*(view(0).to_message() for _ in range(25)))
    assert job(letters, table).run(lambda: NOON) == {Outcome.STORED: 25}
    assert letters.received == [10, 10, 5, 0]
    assert letters.letters == {}
    assert counting.read(table, "octocat").live == 25


def test_no_letters_are_no_outcomes(table: SqliteTable) -> None:
    assert settled(table) == ({}, [])


def test_what_is_kept_can_be_received_again_after_two_minutes(table: SqliteTable) -> None:
    now = [NOON]
    letters = DeadLetters(lambda: now[0])
    letters.put("{", "[]")
    for wait, seen in ((0, 2), (INVISIBLE_SECONDS - 1, 0), (1, 2)):
        now[0] += wait
        assert job(letters, table).run(lambda: now[0])[Outcome.MALFORMED] == seen


def test_a_run_longer_than_letters_stay_invisible_ends_and_settles_each_once(
    table: SqliteTable,
) -> None:
    """200 letters at 5 s each: the first are there again after 24, 176 before the end."""
    now = [NOON]
    letters = DeadLetters(lambda: now[0])
    letters.put(*["{"] * 200)

    def later() -> float:
        now[0] += 5.0
        return now[0]

    assert job(letters, table).run(later) == {Outcome.MALFORMED: 200}


@pytest.mark.parametrize("failure", [Unavailable("throttled"), StorageError("lost")])
def test_a_failure_of_the_storage_ends_the_run_and_leaves_the_rest(
    table: SqliteTable, failure: StorageError
) -> None:
    """The first of three is stored and deleted, at the second the floor can't be raised.

    A letter is two writes: the look whether its view is there, and the floor.
    """
    now = [NOON]
    letters = DeadLetters(lambda: now[0])
    bodies = [view(0).to_message() for _ in range(3)]
    letters.put(*bodies)
    faulty = FaultyTable(table, before_write=raising(None, None, None, failure))
    with pytest.raises(StorageError, match=str(failure)):
        job(letters, faulty).run(lambda: now[0])
    assert [letter.body for letter in letters.letters.values()] == bodies[1:]
    assert counting.read(table, "octocat").live == 1
    now[0] += INVISIBLE_SECONDS
    assert job(letters, table).run(lambda: now[0]) == {Outcome.STORED: 2}
    assert counting.read(table, "octocat").live == 3


def test_a_letter_whose_view_is_not_put_is_not_deleted(table: SqliteTable) -> None:
    letters = DeadLetters(lambda: NOON)
    letters.put(view(0).to_message())
    faulty = FaultyTable(table, before_put=raising(Unavailable("throttled")))
    with pytest.raises(Unavailable):
        job(letters, faulty).run(lambda: NOON)
    assert len(letters.letters) == 1


# ---- any history


@dataclass
class World:
    """One badge, its messages and dead letters; every view is known by its ULID."""

    table: SqliteTable
    now: float = NOON
    queue: dict[str, View] = field(default_factory=dict)
    put_at: dict[str, float] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    removed: list[str] = field(default_factory=list)
    folded: int = 0

    def __post_init__(self) -> None:
        self.letters = DeadLetters(lambda: self.now)

    def take(self, how: str) -> None:
        """A visitor sees the count, and his message is in the queue.

        Where the queue's answer is lost the GET stores the view itself as well.
        """
        shown = counting.read(self.table, "octocat").shown
        taken = View("octocat", ulid_of(self.now, f"{len(self.taken):016}"), shown)
        self.taken.add(taken.ulid)
        self.queue[taken.ulid] = taken
        if how == "answer lost":
            storing.store_one(taken, self.table, LIFETIME, self.now)
            self.put_at[taken.ulid] = self.now

    def deliver(self, how: str) -> None:
        """The oldest message that may come is delivered, and whatever comes of it, stays."""
        oldest = next(filter(self._may_come, self.queue.values()), None)
        if oldest is None:
            return
        faults: dict[str, FaultyTable] = {
            "no floor": FaultyTable(self.table, before_write=raising(Unavailable("throttled"))),
            "no put": FaultyTable(self.table, before_put=crash_at(1)),
            "lost answer": FaultyTable(self.table, before_put=self._put_and_lose),
        }
        with suppress(Crash):
            table = faults.get(how, FaultyTable(self.table))
            storing.store([oldest], table, LIFETIME, self.now, map)
            if how == "done":
                del self.queue[oldest.ulid]
        if self.table.get(keys.view("octocat", oldest.ulid)) is not None:
            self.put_at[oldest.ulid] = self.now

    def _may_come(self, view: View) -> bool:
        """The bound of law 4: a message comes again within REDELIVERY_SECONDS of its put."""
        return self.now - self.put_at.get(view.ulid, self.now) <= LIFETIME.redelivery

    def _put_and_lose(self, items: Sequence[Item]) -> None:
        self.table.put_all(items)
        raise Unavailable("the answer is lost")

    def bury(self) -> None:
        """The oldest message becomes a dead letter."""
        for ulid in list(self.queue)[:1]:
            self.letters.put(self.queue.pop(ulid).to_message())

    def wait(self, seconds: float) -> None:
        self.now += seconds

    def wait_for_a_mark(self) -> None:
        """A view put now lives 300 s, no longer; one put in two seconds lives 599."""
        self.now += LIFETIME.window - 1 - self.now % LIFETIME.window

    def expire(self) -> None:
        """TTL removes what is over; the stream has it."""
        for item in self.table.query("USER#octocat", first=keys.VIEW, limit=1_000):
            if number(item, "ttl") < self.now:
                key = Key(str(item["PK"]), str(item["SK"]))
                self.table.write(Delete(key))
                self.removed.append(key.sk.removeprefix(keys.VIEW))

    def fold(self) -> None:
        unfolded = [removal(n, NOON) for n in range(self.folded + 1, len(self.removed) + 1)]
        assert folding.fold(unfolded, self.table, self.now).failed == ()
        self.folded = len(self.removed)

    def redrive(self, skew: float, dies: str) -> None:
        """The operator's clock differs by less than the margin; his process may end anywhere."""
        before = {str(letter.body) for letter in self.letters.letters.values()}
        faults: Mapping[str, FaultyTable] = {
            "before the first write": FaultyTable(self.table, before_write=crash_at(1)),
            "before a floor": FaultyTable(self.table, before_write=crash_at(2)),
            "after a floor": FaultyTable(self.table, after_write=crash_at(1)),
            "before a put": FaultyTable(self.table, before_put=crash_at(1)),
            "no put": FaultyTable(self.table, before_put=raising(Unavailable("throttled"))),
            "lost answer": FaultyTable(self.table, before_put=self._put_and_lose),
        }
        self.letters.crashes = dies == "before a delete"
        with suppress(Crash, StorageError):
            table = faults.get(dies, FaultyTable(self.table))
            job(self.letters, table).run(lambda: self.now + skew)
        left = {str(letter.body) for letter in self.letters.letters.values()}
        self.settled |= {View.from_message(body).ulid for body in before - left}

    def end(self) -> None:
        """All is quiet, what may still come has come, and days later everything is folded."""
        while any(map(self._may_come, self.queue.values())):
            self.deliver("done")
        self.wait(10 * 86_400)
        self.expire()
        self.fold()


ENDS = [
    "well",
    "before the first write",
    "before a floor",
    "after a floor",
    "before a put",
    "no put",
    "lost answer",
    "before a delete",
]
Step: TypeAlias = tuple[Any, ...]


def step(name: str, *choices: Sequence[object]) -> st.SearchStrategy[list[Step]]:
    return st.tuples(st.just(name), *map(st.sampled_from, choices)).map(lambda step: [step])


def phrase(*steps: st.SearchStrategy[list[Step]]) -> st.SearchStrategy[list[Step]]:
    """Steps in a row, as they often come; steps alone would rarely make a dead letter at all."""
    return st.tuples(*steps).map(lambda parts: list(chain.from_iterable(parts)))


take = step("take", ["enqueued", "enqueued", "answer lost"])
bury, expire, fold = step("bury"), step("expire"), step("fold")
deliver = step("deliver", ["done", "not deleted", "no floor", "no put", "lost answer"])
wait = step("wait", [1, 130, OLD, 302, 601, 90_000])
run = step("redrive", [-59, 0, 59], ["well", "well", *ENDS])
short_lived = phrase(step("wait_for_a_mark"), take, deliver, bury)
letter = st.one_of(phrase(take, bury), phrase(take, deliver, bury), short_lived)
later = phrase(wait, expire, fold)
anything = st.one_of(take, deliver, bury, wait, expire, fold)
histories = st.lists(
    st.one_of(anything, letter, later, run, phrase(letter, later, run), phrase(run, later, run)),
    min_size=2,
    max_size=20,
)


WELL: Step = ("redrive", 0, "well")
LATER: list[Step] = [("wait", 90_000), ("expire",), ("fold",)]
SHORTEST_LIFE: list[Step] = [
    ("wait_for_a_mark",),
    ("take", "enqueued"),
    ("deliver", "not deleted"),
    ("bury",),
    ("wait", 302),
    ("expire",),
    ("fold",),
]


@settings(max_examples=100)
@given(histories)
@example([SHORTEST_LIFE, [WELL]])
@example([[("take", "enqueued"), ("bury",), ("redrive", 0, "no put")]])
@example([[("take", "enqueued"), ("bury",), ("redrive", 0, "before a delete")], LATER, [WELL]])
@example([[("take", "answer lost"), ("bury",)], LATER, [WELL]])
def test_in_any_history_no_view_counts_twice_and_none_that_left_the_queue_is_lost(
    history: list[list[Step]],
) -> None:
    """Each view is removed and so folded once, and those are all that the badge counts."""
    with sqlite_table() as table:
        world = World(table)
        for name, *how in chain.from_iterable(history):
            getattr(world, name)(*how)
            assert counting.read(table, "octocat").shown <= len(world.taken)
        world.end()
        at_the_end = counting.read(table, "octocat")
    assert len(set(world.removed)) == len(world.removed)
    assert (at_the_end.folded, at_the_end.live) == (len(world.removed), 0)
    assert at_the_end.shown <= len(world.taken)
    assert world.settled <= set(world.removed) <= world.taken
