"""The steps that stand in for AWS: messages, removals and changes reach their handlers."""

from __future__ import annotations

import logging
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from vumi.workers.delivery import (
    CHANGES_AT_ONCE,
    EXPIRY_SECONDS,
    IDLE_SECONDS,
    LEAST_CHANGES_AT_ONCE,
    LINGER_SECONDS,
    MESSAGES_AT_ONCE,
    REMOVALS_AT_ONCE,
    RETRY_SECONDS,
    STEP_SECONDS,
    SWEEP_SECONDS,
    DeliveryAtOnce,
    Expiry,
    MessageDelivery,
    StreamDelivery,
    Sweeping,
)

from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Key, key_of
from chalicelib.views import keys
from chalicelib.views.view import View, new_ulid
from chalicelib.views.windows import marker_item
from vumi.storage.database import Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import ChangeLog, SqliteTable, remove_expired

START = 1_000_000.0
VISIBILITY = 30.0
MAX_RECEIVES = 3
QUEUE = "views"

Answer = Callable[[list[str]], Any]
"""What a handler answers to the identifiers of a batch."""


@dataclass
class Clock:
    """Seconds since 1970, moved by hand."""

    now: float = START

    def __call__(self) -> float:
        return self.now


@dataclass
class Handler:
    """A handler that keeps the batches it was given and answers as told."""

    answer: Answer = lambda _: None
    batches: list[list[str]] = field(default_factory=list)
    contexts: list[object] = field(default_factory=list)

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        records = event["Records"]
        self.batches.append([_content(record) for record in records])
        self.contexts.append(context)
        return self.answer([_identifier(record) for record in records])


def _content(record: dict[str, Any]) -> str:
    return str(record["body"] if "body" in record else record["dynamodb"]["Keys"]["SK"]["S"])


def _identifier(record: dict[str, Any]) -> str:
    return str(record["messageId"] if "body" in record else record["dynamodb"]["SequenceNumber"])


def failing(*identifiers: object) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": each} for each in identifiers]}


def succeed(_: list[str]) -> None:
    return None


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "file.sqlite3")
    yield database
    database.close()


@pytest.fixture
def table(database: Database) -> SqliteTable:
    return SqliteTable(database)


@pytest.fixture
def queue(database: Database, clock: Clock) -> SqliteQueue:
    return SqliteQueue(
        database, QUEUE, clock, visibility_timeout=VISIBILITY, max_receives=MAX_RECEIVES
    )


Delivering = Callable[[Handler | Callable[..., None]], MessageDelivery]


@pytest.fixture
def delivering(database: Database, queue: SqliteQueue, clock: Clock) -> Delivering:
    """Deliver the messages of the queue to a handler, as the engine does."""
    return lambda handler: MessageDelivery(queue, handler, clock, database.in_one_commit)


def send(queue: SqliteQueue, *bodies: str) -> None:
    for body in bodies:
        queue.send(body)


ALL_WELL: dict[str, Answer] = {
    "None": succeed,
    "empty": lambda _: {},
    "an empty list": lambda _: failing(),
    "null": lambda _: {"batchItemFailures": None},
}


@pytest.mark.parametrize("answer", ALL_WELL.values(), ids=ALL_WELL.keys())
def test_messages_that_are_done_are_deleted(
    queue: SqliteQueue, delivering: Delivering, answer: Answer
) -> None:
    send(queue, "a", "b")
    handler = Handler(answer)

    delivering(handler).step()

    assert handler.batches == [["a", "b"]]
    assert handler.contexts == [None]
    assert (queue.size(), queue.dead_letters()) == (0, 0)


def test_a_message_that_failed_alone_comes_again_after_its_visibility_timeout(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    send(queue, "a", "bad", "c")
    handler = Handler(lambda batch: failing(batch[1]))
    delivery = delivering(handler)

    delivery.step()
    assert queue.size() == 1
    delivery.step()
    assert handler.batches == [["a", "bad", "c"]]

    clock.now += VISIBILITY
    handler.answer = succeed
    delivery.step()
    assert handler.batches == [["a", "bad", "c"], ["bad"]]
    assert queue.size() == 0


STRANGE: dict[str, Answer] = {
    "an unknown identifier": lambda batch: failing(batch[0], "no message of this batch"),
    "an empty identifier": lambda _: failing(""),
    "no identifier": lambda _: failing(None),
}


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE.keys())
def test_an_answer_that_names_no_message_of_the_batch_fails_all_of_it(
    queue: SqliteQueue, delivering: Delivering, clock: Clock, answer: Answer
) -> None:
    send(queue, "a", "b")
    handler = Handler(answer)
    delivery = delivering(handler)
    delivery.step()
    assert queue.size() == 2

    clock.now += VISIBILITY
    delivery.step()

    assert handler.batches == [["a", "b"], ["a", "b"]]


def test_when_a_handler_raises_all_its_messages_come_again(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    def fall(_: list[str]) -> None:
        raise ZeroDivisionError

    send(queue, "a", "b")
    handler = Handler(fall)
    delivery = delivering(handler)
    with pytest.raises(ZeroDivisionError):
        delivery.step()
    assert queue.size() == 2

    clock.now += VISIBILITY
    handler.answer = succeed
    delivery.step()

    assert handler.batches == [["a", "b"], ["a", "b"]]
    assert queue.size() == 0


def test_a_message_that_always_fails_becomes_a_dead_letter_and_delays_nobody(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    send(queue, "bad")
    handler = Handler(lambda batch: failing("1") if "1" in batch else None)  # the first id is 1
    delivery = delivering(handler)
    for turn in range(MAX_RECEIVES + 2):
        send(queue, f"good {turn}")
        delivery.step()
        clock.now += VISIBILITY

    assert sum("bad" in batch for batch in handler.batches) == MAX_RECEIVES
    assert (queue.size(), queue.dead_letters()) == (0, 1)


def test_the_handler_is_not_called_without_messages(delivering: Delivering) -> None:
    handler = Handler()

    assert delivering(handler).step() == IDLE_SECONDS
    assert handler.batches == []


def test_messages_come_from_the_queue_of_their_name(
    queue: SqliteQueue, delivering: Delivering
) -> None:
    arns: list[str] = []

    def handler(event: dict[str, Any], _: object) -> None:
        arns.extend(record["eventSourceARN"] for record in event["Records"])

    send(queue, "a")
    delivering(handler).step()

    [arn] = arns
    assert arn.endswith(f":{QUEUE}")


def test_a_sweep_is_called_once_a_minute_as_a_schedule_calls_it() -> None:
    calls: list[tuple[str, object]] = []

    def handler(event: dict[str, Any], context: object) -> None:
        calls.append((event["detail-type"], context))

    assert Sweeping(handler).step() == SWEEP_SECONDS
    assert calls == [("Scheduled Event", None)]


def test_a_full_batch_is_followed_by_the_next_at_once(
    queue: SqliteQueue, delivering: Delivering
) -> None:
    bodies = [str(number) for number in range(MESSAGES_AT_ONCE + 1)]
    send(queue, *bodies)
    handler = Handler()
    delivery = delivering(handler)

    assert delivery.step() == 0.0
    assert delivery.step() == IDLE_SECONDS

    assert handler.batches == [bodies[:MESSAGES_AT_ONCE], bodies[MESSAGES_AT_ONCE:]]


def test_the_rest_ends_when_the_next_message_becomes_visible(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    send(queue, "bad")
    delivery = delivering(Handler(lambda batch: failing(*batch)))

    assert delivery.step() == IDLE_SECONDS
    clock.now += VISIBILITY - 1
    assert delivery.step() == 1.0


def test_what_another_program_puts_in_is_found_soon_though_nothing_woke_the_loop(
    delivering: Delivering,
) -> None:
    """As the command does that redrives dead letters."""
    delivery = delivering(Handler())
    assert delivery.step() <= 5.0


def test_a_message_that_came_meanwhile_is_lingered_for(
    queue: SqliteQueue, delivering: Delivering, clock: Clock
) -> None:
    send(queue, "a")

    def slow(_: list[str]) -> None:
        send(queue, "b")
        clock.now += 5

    assert delivering(Handler(slow)).step() == LINGER_SECONDS


def test_what_a_handler_wrote_before_it_raised_is_undone(
    queue: SqliteQueue, delivering: Delivering, clock: Clock, table: SqliteTable
) -> None:
    def handler(_: object, __: object) -> None:
        table.put_all([{"PK": "p", "SK": "half"}])
        raise ZeroDivisionError

    send(queue, "a")
    with pytest.raises(ZeroDivisionError):
        delivering(handler).step()

    assert table.get(Key("p", "half")) is None
    clock.now += VISIBILITY
    assert [message.body for message in queue.receive(10)] == ["a"]


DELIVER_UNTIL_KILLED = """
import os, signal, sys
from pathlib import Path
from chalicelib.storage.items import Key
from chalicelib.storage.writes import Update
from vumi.storage.database import Database
from vumi.workers.delivery import MessageDelivery
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable

database = Database(Path(sys.argv[1]))
table, queue = SqliteTable(database), SqliteQueue(database, "views", lambda: 1_000_000.0)
left = int(sys.argv[2])


def note(statement):
    global left
    if statement.startswith(("BEGIN", "UPDATE", "INSERT", "DELETE", "COMMIT")):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)


def handler(event, _):
    for record in event["Records"]:
        table.write(Update(Key("p", record["body"]), add={"handled": 1}))


queue.release()
database.write(lambda connection: connection.set_trace_callback(note))
MessageDelivery(queue, handler, lambda: 1_000_000.0, database.in_one_commit).step()
"""


def test_killed_at_any_statement_a_message_is_handled_and_deleted_or_neither(
    tmp_path: Path,
) -> None:
    """Killed at its first statement, its second and so on, until a run comes to its end."""
    path = tmp_path / "killed.sqlite3"
    with closing(Database(path)) as database:
        send(SqliteQueue(database, QUEUE, lambda: START), "a", "b")
    for statement in count(1):
        done = subprocess.run(  # noqa: S603  the text above
            [sys.executable, "-c", DELIVER_UNTIL_KILLED, path, str(statement)], check=False
        )
        with closing(Database(path)) as database:
            handled = SqliteTable(database).query("p", limit=9)
            left = SqliteQueue(database, QUEUE, lambda: START).size()
        assert (len(handled), left) in ((0, 2), (2, 0))
        assert all(item["handled"] == 1 for item in handled)
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert statement > 5
    assert len(handled) == 2


@dataclass
class Life:
    """A table and an expiry over it, as the engine has them."""

    database: Database
    table: SqliteTable
    clock: Clock
    removals: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.log = ChangeLog(self.database, "reader")
        self.queue = SqliteQueue(self.database, "views", self.clock)
        self.expiry = self.expiry_of(lambda: self.removals.append(self.clock.now))

    def expiry_of(self, on_removal: Callable[[], None]) -> Expiry:
        return Expiry(self.database, self.queue, self.clock, on_removal)

    def view(self, badge_id: str = "badge", at: float = START) -> Key:
        """Store a view that is kept for an hour."""
        key = keys.view(badge_id, new_ulid(int(at * 1000)))
        self.table.put_all([{"PK": key.pk, "SK": key.sk, "ttl": int(at) + 3_600}])
        return key

    def fold(self, badge_id: str, upto: float) -> None:
        """Move the watermark of a badge."""
        pk, sk = keys.summary(badge_id)
        self.table.put_all([{"PK": pk, "SK": sk, "watermark": int(upto * 1000)}])

    def there(self, key: Key) -> bool:
        return self.table.get(key) is not None

    @property
    def changes(self) -> list[Key]:
        return [key_of(change.item) for change in self.log.read(10)]


@pytest.fixture
def life(database: Database, table: SqliteTable, clock: Clock) -> Life:
    return Life(database, table, clock)


def test_expiry_removes_what_is_over_and_says_so(life: Life) -> None:
    key = Key("p", "s")
    life.table.put_all([{"PK": "p", "SK": "s", "ttl": int(START)}])
    assert life.expiry.step() == EXPIRY_SECONDS
    assert life.removals == []

    life.clock.now += 1
    assert life.expiry.step() == 0.0  # there may be more
    assert life.expiry.step() == EXPIRY_SECONDS

    assert not life.there(key)
    assert life.removals == [START + 1]


@pytest.mark.parametrize("dead", [False, True])
def test_what_shows_that_a_view_is_counted_stays_while_the_queue_has_its_message(
    life: Life, *, dead: bool
) -> None:
    """Its message would count it again."""
    ulid = new_ulid(int(START * 1000))
    view, seen = keys.view("badge", ulid), keys.seen(ulid)
    for key in (view, seen):
        life.table.put_all([{"PK": key.pk, "SK": key.sk, "ttl": int(START)}])
    life.fold("badge", START + 1)
    life.queue.send(View("badge", ulid).to_message())
    if dead:
        life.database.write(
            lambda connection: connection.execute(
                "UPDATE messages SET queue = 'views-dead-letters'"
            )
        )
    life.clock.now += 1
    assert life.expiry.step() == EXPIRY_SECONDS
    assert life.there(view)
    assert life.there(seen)

    life.database.write(lambda connection: connection.execute("DELETE FROM messages"))
    assert life.expiry.step() == 0.0
    assert not life.there(view)
    assert not life.there(seen)


def test_expiry_says_so_only_once_the_removal_can_be_read(life: Life) -> None:
    marker = marker_item("badge", int(START) - 600, int(START))
    life.table.put_all([marker])
    life.clock.now += 1
    read: list[Key] = []

    life.expiry_of(lambda: read.extend(life.changes)).step()

    assert read == [key_of(marker)]


def test_expiry_removes_a_folded_view_an_hour_after_it_was_taken(life: Life) -> None:
    view = life.view()
    life.fold("badge", START + 300)
    life.clock.now += 3_600
    assert life.expiry.step() == EXPIRY_SECONDS
    assert life.there(view)

    life.clock.now += 1
    assert life.expiry.step() == 0.0
    assert not life.there(view)
    assert life.changes == []


def test_expiry_holds_a_view_until_the_watermark_of_its_badge_has_passed_it(life: Life) -> None:
    view, earlier = life.view(), life.view(at=START - 0.001)
    life.fold("badge", START - 0.001)
    life.clock.now += 30 * 86_400

    assert life.expiry.step() == 0.0
    assert life.expiry.step() == EXPIRY_SECONDS
    assert (life.there(earlier), life.there(view)) == (False, True)

    life.fold("badge", START)
    assert life.expiry.step() == 0.0
    assert not life.there(view)


def test_expiry_holds_the_view_of_a_badge_that_was_never_folded(life: Life) -> None:
    view = life.view()
    life.clock.now += 30 * 86_400

    assert life.expiry.step() == EXPIRY_SECONDS
    assert life.there(view)
    assert life.removals == []


def test_expiry_goes_by_the_watermark_of_each_badge(life: Life) -> None:
    held, free = life.view("a"), life.view("b")
    life.fold("b", START)
    life.clock.now += 3_601

    life.expiry.step()

    assert (life.there(held), life.there(free)) == (True, False)


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

    assert life.expiry.step() == 0.0

    assert not life.there(key)
    assert life.changes == ([key] if is_told else [])


def test_expiry_works_in_batches(life: Life) -> None:
    number = REMOVALS_AT_ONCE + 1
    life.table.put_all([{"PK": "p", "SK": f"{place:05}", "ttl": 1} for place in range(number)])

    steps = [life.expiry.step() for _ in range(3)]

    assert steps == [0.0, 0.0, EXPIRY_SECONDS]
    assert len(life.removals) == 2
    assert life.table.count("p", limit=number) == 0


def remove(database: Database, *sort_keys: str) -> list[str]:
    """Let items expire in this order; returns their sequence numbers."""

    def job(connection: sqlite3.Connection) -> None:
        remove_expired(connection, START, len(sort_keys), lambda _: True, lambda _: True)

    SqliteTable(database).put_all(
        [{"PK": "p", "SK": sk, "ttl": place + 1} for place, sk in enumerate(sort_keys)]
    )
    database.write(job)
    rows = database.read("SELECT sequence FROM changes ORDER BY sequence")
    return [str(sequence) for (sequence,) in rows[-len(sort_keys) :]]


@pytest.mark.parametrize("answer", ALL_WELL.values(), ids=ALL_WELL.keys())
def test_changes_that_are_done_are_not_delivered_again(database: Database, answer: Answer) -> None:
    handler = Handler(answer)
    delivery = StreamDelivery(database, "fold", handler)
    remove(database, "a", "b")

    assert delivery.step() == 0.0
    assert delivery.step() == IDLE_SECONDS

    assert handler.batches == [["a", "b"]]
    assert handler.contexts == [None]


def test_the_handler_is_not_called_without_changes(database: Database) -> None:
    handler = Handler()

    assert StreamDelivery(database, "fold", handler).step() == IDLE_SECONDS
    assert handler.batches == []


def test_changes_come_with_the_label_of_the_file(database: Database) -> None:
    arns: list[str] = []

    def handler(event: dict[str, Any], _: object) -> None:
        arns.extend(record["eventSourceARN"] for record in event["Records"])

    delivery = StreamDelivery(database, "fold", handler)
    remove(database, "a")
    delivery.step()

    [arn] = arns
    assert arn.endswith(f"/stream/{database.stream_label}")


def test_changes_come_again_from_the_lowest_failed_one_on(database: Database) -> None:
    handler = Handler(lambda batch: failing(batch[3], batch[1]))
    delivery = StreamDelivery(database, "fold", handler)
    remove(database, "a", "b", "c", "d", "e")

    assert delivery.step() == RETRY_SECONDS
    handler.answer = succeed
    assert delivery.step() == 0.0

    assert handler.batches == [["a", "b", "c", "d", "e"], ["b", "c", "d", "e"]]
    assert delivery.step() == IDLE_SECONDS


def test_the_lowest_failed_one_is_the_lowest_number_not_text(database: Database) -> None:
    """As texts "10" sorts before "9"; the change before both is done, neither of them is."""
    delivery = StreamDelivery(database, "fold", Handler())
    remove(database, *"abcdefg")
    delivery.step()
    handler = Handler(lambda _: failing("9", "10"))
    delivery = StreamDelivery(database, "fold", handler)
    assert remove(database, "h", "i", "j") == ["8", "9", "10"]

    delivery.step()
    delivery.step()

    assert handler.batches == [["h", "i", "j"], ["i", "j"]]


def test_while_the_first_change_fails_the_checkpoint_stays(database: Database) -> None:
    handler = Handler(lambda batch: failing(batch[0]))
    delivery = StreamDelivery(database, "fold", handler)
    remove(database, "a", "b")

    assert [delivery.step() for _ in range(3)] == [RETRY_SECONDS] * 3
    assert handler.batches == [["a", "b"]] * 3


@pytest.mark.parametrize("answer", STRANGE.values(), ids=STRANGE.keys())
def test_an_answer_that_names_no_change_of_the_batch_fails_all_of_it(
    database: Database, answer: Answer
) -> None:
    handler = Handler(answer)
    delivery = StreamDelivery(database, "fold", handler)
    remove(database, "a", "b")

    assert delivery.step() == RETRY_SECONDS
    delivery.step()

    assert handler.batches == [["a", "b"], ["a", "b"]]


def test_when_a_handler_raises_all_its_changes_come_again(database: Database) -> None:
    def fall(_: list[str]) -> None:
        raise ZeroDivisionError

    handler = Handler(fall)
    delivery = StreamDelivery(database, "fold", handler)
    remove(database, "a", "b")
    with pytest.raises(ZeroDivisionError):
        delivery.step()

    handler.answer = succeed
    delivery.step()

    assert handler.batches == [["a", "b"], ["a", "b"]]


def test_a_consumer_made_anew_goes_on_where_the_last_one_was(database: Database) -> None:
    remove(database, "a", "b")
    StreamDelivery(database, "fold", Handler(lambda batch: failing(batch[1]))).step()

    handler = Handler()
    StreamDelivery(database, "fold", handler).step()

    assert handler.batches == [["b"]]


class Stopwatch:
    """Says of each batch that it took so many seconds, the last for all after it."""

    def __init__(self, *seconds: float) -> None:
        self._seconds = list(seconds)
        self._now = 1_000.0  # a stopwatch may begin anywhere
        self._begun = False

    def __call__(self) -> float:
        if self._begun:
            self._now += self._seconds[0]
            del self._seconds[: len(self._seconds) > 1]
        self._begun = not self._begun
        return self._now


def sizes(database: Database, steps: int, *seconds: float) -> list[int]:
    """How many changes are in each batch, where the batches take so long."""
    handler = Handler()
    delivery = StreamDelivery(database, "fold", handler, stopwatch=Stopwatch(*seconds))
    remove(database, *(f"{place:05}" for place in range(4 * CHANGES_AT_ONCE)))
    for _ in range(steps):
        assert delivery.step() == 0.0
    return [len(batch) for batch in handler.batches]


def test_a_batch_of_changes_doubles_while_it_is_quick_up_to_what_lambda_takes(
    database: Database,
) -> None:
    assert sizes(database, 7, 0.0) == [50, 100, 200, 400, 800, 1_000, 1_000]


def test_a_batch_of_changes_is_as_large_as_fits_into_a_step(database: Database) -> None:
    """Of 50 in 8 ms, 62 fit into 10; of those in 20 ms 31, and 50 are the least."""
    assert STEP_SECONDS == 0.01
    assert sizes(database, 4, 0.008, 0.02, 0.01) == [50, 62, 50, 50]


def test_a_last_batch_that_is_not_full_says_nothing_of_the_next(database: Database) -> None:
    handler = Handler()
    delivery = StreamDelivery(database, "fold", handler, stopwatch=Stopwatch(0.0))
    for place in range(3):
        remove(database, f"first {place}")
        delivery.step()
    remove(database, *(f"{place:05}" for place in range(LEAST_CHANGES_AT_ONCE + 1)))

    assert [delivery.step() for _ in range(3)] == [0.0, 0.0, IDLE_SECONDS]
    assert [len(batch) for batch in handler.batches] == [1, 1, 1, LEAST_CHANGES_AT_ONCE, 1]


def deliver_at_once(queue: SqliteQueue, handler: Handler, clock: Clock, *bodies: str) -> str:
    """What a function answers that sends so much within a commit."""

    def function() -> str:
        send(queue, *bodies)
        return "answered"

    delivery = DeliveryAtOnce(queue, handler, clock)
    return queue._database.in_one_commit(lambda: delivery(function))  # noqa: SLF001  as an engine does


def test_what_is_sent_in_a_commit_is_delivered_in_it_and_never_written(
    queue: SqliteQueue, clock: Clock
) -> None:
    handler = Handler()

    assert deliver_at_once(queue, handler, clock, "a", "b") == "answered"

    assert handler.batches == [["a", "b"]]
    assert handler.contexts == [None]
    assert queue.size() == 0
    send(queue, "c")
    assert [message.id for message in queue.receive(10)] == [1]


def test_where_nothing_is_sent_in_a_commit_no_handler_is_called(
    queue: SqliteQueue, clock: Clock
) -> None:
    handler = Handler()
    assert deliver_at_once(queue, handler, clock) == "answered"
    assert handler.batches == []


def test_what_failed_in_its_commit_comes_again_as_delivered_before(
    queue: SqliteQueue, clock: Clock
) -> None:
    woken: list[bool] = []
    queue.on_send = lambda: woken.append(True)
    handler = Handler(lambda batch: failing(batch[1]))

    assert deliver_at_once(queue, handler, clock, "a", "bad", "c") == "answered"

    assert (queue.size(), woken) == (1, [True])
    assert queue.receive(10) == []
    clock.now += VISIBILITY
    [message] = queue.receive(10)
    assert (message.body, message.receives) == ("bad", 2)
    assert (message.sent_at, message.first_received_at) == (START, START)


@pytest.mark.parametrize("error", [ZeroDivisionError(), KeyError("views")])
def test_when_a_handler_raises_in_a_commit_it_is_logged_and_all_it_was_given_comes_again(
    queue: SqliteQueue, clock: Clock, error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    def fall(_: list[str]) -> None:
        raise error

    with caplog.at_level(logging.ERROR):
        assert deliver_at_once(queue, Handler(fall), clock, "a", "b") == "answered"

    [record] = caplog.records
    assert (record.levelname, record.getMessage()) == ("ERROR", "a handler failed")
    assert record.__dict__["fields"]["queue"] == QUEUE

    clock.now += VISIBILITY
    assert [message.body for message in queue.receive(10)] == ["a", "b"]


def test_where_the_storage_fails_a_handler_the_commit_fails(
    queue: SqliteQueue, clock: Clock
) -> None:
    def fall(_: list[str]) -> None:
        raise Unavailable("the disk is full")

    with pytest.raises(Unavailable):
        deliver_at_once(queue, Handler(fall), clock, "a")

    clock.now += VISIBILITY
    assert queue.receive(10) == []


def test_what_is_sent_with_a_delay_waits_for_it_in_the_file(
    queue: SqliteQueue, clock: Clock
) -> None:
    handler = Handler()
    delivery = DeliveryAtOnce(queue, handler, clock)

    delivery(lambda: queue.send("later", delay=5))

    assert handler.batches == []
    clock.now += 5
    assert [message.body for message in queue.receive(10)] == ["later"]


def test_what_another_thread_sends_meanwhile_is_not_held_back(
    queue: SqliteQueue, clock: Clock
) -> None:
    handler = Handler()

    def function() -> None:
        other = threading.Thread(target=queue.send, args=("elsewhere",))
        other.start()
        other.join()

    DeliveryAtOnce(queue, handler, clock)(function)

    assert handler.batches == []
    assert queue.size() == 1


def test_what_is_sent_in_a_commit_comes_from_the_queue_of_its_name(
    queue: SqliteQueue, clock: Clock
) -> None:
    arns: list[str] = []

    def handler(event: dict[str, Any], _: object) -> None:
        arns.extend(record["eventSourceARN"] for record in event["Records"])

    DeliveryAtOnce(queue, handler, clock)(lambda: queue.send("a"))

    [arn] = arns
    assert arn.endswith(f":{QUEUE}")


def test_a_function_that_fails_delivers_nothing_and_holds_back_no_more(
    queue: SqliteQueue, clock: Clock
) -> None:
    handler = Handler()

    def function() -> None:
        queue.send("a")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        DeliveryAtOnce(queue, handler, clock)(function)
    queue.send("b")

    assert handler.batches == []
    assert [message.body for message in queue.receive(10)] == ["b"]


def left(database: Database) -> list[int]:
    return [sequence for (sequence,) in database.read("SELECT sequence FROM changes")]


def test_a_consumer_of_some_items_gets_no_others_and_passes_them_by(database: Database) -> None:
    handler = Handler()
    delivery = StreamDelivery(database, "archive", handler, sort="TX#")
    remove(database, "VIEW#1", "TX#1", "VIEW#2", "TX#2", "VIEW#3")

    assert delivery.step() == 0.0
    assert delivery.step() == IDLE_SECONDS

    assert handler.batches == [["TX#1", "TX#2"]]
    assert left(database) == []


def test_a_consumer_that_none_of_a_batch_is_for_is_not_called(database: Database) -> None:
    handler = Handler()
    delivery = StreamDelivery(database, "archive", handler, sort="TX#")
    remove(database, "VIEW#1", "VIEW#2")

    assert [delivery.step() for _ in range(2)] == [0.0, IDLE_SECONDS]

    assert handler.batches == []
    assert left(database) == []


def test_what_lies_behind_a_failed_change_of_some_items_comes_again_with_it(
    database: Database,
) -> None:
    """Of 1 to 5 only 2 and 4 are for it, and 4 fails: 4 comes again, and 5 is not passed yet."""
    handler = Handler(lambda batch: failing(batch[1]))
    delivery = StreamDelivery(database, "archive", handler, sort="TX#")
    remove(database, "VIEW#1", "TX#2", "VIEW#3", "TX#4", "VIEW#5")

    assert delivery.step() == RETRY_SECONDS
    assert left(database) == [4, 5]
    handler.answer = succeed
    assert delivery.step() == 0.0

    assert handler.batches == [["TX#2", "TX#4"], ["TX#4"]]
    assert left(database) == []


def test_a_change_is_kept_until_both_consumers_are_done_with_it(database: Database) -> None:
    fold = StreamDelivery(database, "fold", Handler())
    handler = Handler(lambda batch: failing(*batch))
    archive = StreamDelivery(database, "archive", handler, sort="TX#")
    remove(database, "VIEW#1", "TX#2", "VIEW#3")

    assert (fold.step(), archive.step()) == (0.0, RETRY_SECONDS)
    assert left(database) == [2, 3]
    handler.answer = succeed
    archive.step()

    assert left(database) == []
