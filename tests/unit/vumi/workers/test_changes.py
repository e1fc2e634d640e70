"""The delivery of changes: in order, and again from the lowest failed one."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import pytest

from chalicelib.storage.errors import Unavailable
from chalicelib.wallets.wallet import Entry, Posting
from simulation.archives import FakeArchive
from simulation.clocks import NOON, ulid_of
from simulation.resources import GivenResources
from vumi.storage.database import Database
from vumi.storage.table import Change, SqliteTable, remove_expired
from vumi.workers.changes import (
    MAX_BATCH_CHANGES,
    MIN_BATCH_CHANGES,
    RETRY_SECONDS,
    STEP_SECONDS,
    ChangeDelivery,
    archive_changes,
)
from vumi.workers.messages import IDLE_SECONDS

START = 1_000_000.0


def succeed(_: Sequence[Change]) -> Collection[Change]:
    return ()


@dataclass
class Handler:
    """A handler that keeps its batches and fails at the given changes."""

    failed: Callable[[Sequence[Change]], Collection[Change]] = succeed
    batches: list[list[str]] = field(default_factory=list)

    def __call__(self, changes: Sequence[Change]) -> Collection[Change]:
        self.batches.append([str(change.item["SK"]) for change in changes])
        return self.failed(changes)


def remove(database: Database, *sort_keys: str) -> None:
    """Let items expire in this order."""

    def job(connection: sqlite3.Connection) -> None:
        remove_expired(connection, START, len(sort_keys), lambda _: True, lambda _: True)

    SqliteTable(database).put_all(
        [{"PK": "p", "SK": sk, "ttl": place + 1} for place, sk in enumerate(sort_keys)]
    )
    database.write(job)


def test_changes_that_are_handled_are_not_delivered_again(database: Database) -> None:
    handler = Handler()
    delivery = ChangeDelivery(database, "fold", handler)
    remove(database, "a", "b")

    assert delivery.step() == 0.0
    assert delivery.step() == IDLE_SECONDS

    assert handler.batches == [["a", "b"]]


def test_the_handler_is_not_called_without_changes(database: Database) -> None:
    handler = Handler()

    assert ChangeDelivery(database, "fold", handler).step() == IDLE_SECONDS
    assert handler.batches == []


def test_changes_are_delivered_again_from_the_lowest_failed_one(database: Database) -> None:
    handler = Handler(lambda batch: [batch[3], batch[1]])
    delivery = ChangeDelivery(database, "fold", handler)
    remove(database, "a", "b", "c", "d", "e")

    assert delivery.step() == RETRY_SECONDS
    handler.failed = succeed
    assert delivery.step() == 0.0

    assert handler.batches == [["a", "b", "c", "d", "e"], ["b", "c", "d", "e"]]
    assert delivery.step() == IDLE_SECONDS


def test_while_the_first_change_fails_the_checkpoint_stays(database: Database) -> None:
    handler = Handler(lambda batch: [batch[0]])
    delivery = ChangeDelivery(database, "fold", handler)
    remove(database, "a", "b")

    assert [delivery.step() for _ in range(3)] == [RETRY_SECONDS] * 3
    assert handler.batches == [["a", "b"]] * 3


def test_when_a_handler_raises_all_its_changes_are_delivered_again(database: Database) -> None:
    def fall(_: Sequence[Change]) -> Collection[Change]:
        raise ZeroDivisionError

    handler = Handler(fall)
    delivery = ChangeDelivery(database, "fold", handler)
    remove(database, "a", "b")
    with pytest.raises(ZeroDivisionError):
        delivery.step()

    handler.failed = succeed
    delivery.step()

    assert handler.batches == [["a", "b"], ["a", "b"]]


def test_a_new_consumer_continues_from_the_checkpoint(database: Database) -> None:
    remove(database, "a", "b")
    ChangeDelivery(database, "fold", Handler(lambda batch: [batch[1]])).step()

    handler = Handler()
    ChangeDelivery(database, "fold", handler).step()

    assert handler.batches == [["b"]]


class Stopwatch:
    """A clock that reports a given duration for each batch.

    The last duration is for all later ones.
    """

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
    """Return the number of changes in each batch, if the batches take these durations."""
    handler = Handler()
    delivery = ChangeDelivery(database, "fold", handler, stopwatch=Stopwatch(*seconds))
    remove(database, *(f"{place:05}" for place in range(4 * MAX_BATCH_CHANGES)))
    for _ in range(steps):
        assert delivery.step() == 0.0
    return [len(batch) for batch in handler.batches]


def test_quick_batches_of_changes_double_up_to_the_limit_of_lambda(
    database: Database,
) -> None:
    assert sizes(database, 7, 0.0) == [50, 100, 200, 400, 800, 1_000, 1_000]


def test_a_batch_of_changes_is_as_large_as_fits_into_a_step(database: Database) -> None:
    """If 50 take 8 ms, 62 fit into 10 ms.

    If those take 20 ms, 31 would fit, but 50 is the minimum.
    """
    assert STEP_SECONDS == 0.01
    assert sizes(database, 4, 0.008, 0.02, 0.01) == [50, 62, 50, 50]


def test_a_partial_batch_does_not_change_the_size_of_the_next(database: Database) -> None:
    handler = Handler()
    delivery = ChangeDelivery(database, "fold", handler, stopwatch=Stopwatch(0.0))
    for place in range(3):
        remove(database, f"first {place}")
        delivery.step()
    remove(database, *(f"{place:05}" for place in range(MIN_BATCH_CHANGES + 1)))

    assert [delivery.step() for _ in range(3)] == [0.0, 0.0, IDLE_SECONDS]
    assert [len(batch) for batch in handler.batches] == [1, 1, 1, MIN_BATCH_CHANGES, 1]


def left(database: Database) -> list[int]:
    return [sequence for (sequence,) in database.read("SELECT sequence FROM changes")]


def test_a_consumer_of_some_items_gets_no_others_and_skips_them(database: Database) -> None:
    handler = Handler()
    delivery = ChangeDelivery(database, "archive", handler, sort="TX#")
    remove(database, "VIEW#1", "TX#1", "VIEW#2", "TX#2", "VIEW#3")

    assert delivery.step() == 0.0
    assert delivery.step() == IDLE_SECONDS

    assert handler.batches == [["TX#1", "TX#2"]]
    assert left(database) == []


def test_a_consumer_is_not_called_for_a_batch_without_its_items(database: Database) -> None:
    handler = Handler()
    delivery = ChangeDelivery(database, "archive", handler, sort="TX#")
    remove(database, "VIEW#1", "VIEW#2")

    assert [delivery.step() for _ in range(2)] == [0.0, IDLE_SECONDS]

    assert handler.batches == []
    assert left(database) == []


def test_changes_after_a_failed_one_are_delivered_again_with_it(
    database: Database,
) -> None:
    """Of 1 to 5 only 2 and 4 are for it, and 4 fails: 4 and 5 are delivered again."""
    handler = Handler(lambda batch: [batch[1]])
    delivery = ChangeDelivery(database, "archive", handler, sort="TX#")
    remove(database, "VIEW#1", "TX#2", "VIEW#3", "TX#4", "VIEW#5")

    assert delivery.step() == RETRY_SECONDS
    assert left(database) == [4, 5]
    handler.failed = succeed
    assert delivery.step() == 0.0

    assert handler.batches == [["TX#2", "TX#4"], ["TX#4"]]
    assert left(database) == []


def test_a_change_is_kept_until_both_consumers_are_done_with_it(database: Database) -> None:
    fold = ChangeDelivery(database, "fold", Handler())
    handler = Handler(lambda batch: batch)
    archive = ChangeDelivery(database, "archive", handler, sort="TX#")
    remove(database, "VIEW#1", "TX#2", "VIEW#3")

    assert (fold.step(), archive.step()) == (0.0, RETRY_SECONDS)
    assert left(database) == [2, 3]
    handler.failed = succeed
    archive.step()

    assert left(database) == []


ALICE = ulid_of(NOON, "A" * 16)


def change(sequence: int, days: int = 0) -> Change:
    """Return the removal of an entry that was made some days before noon."""
    at = int(NOON - days * 86_400) * 1000
    entry = Entry(ulid_of(NOON, f"{sequence:016}"), Posting(f"n{sequence}", 1, ALICE), at)
    return Change(sequence, NOON, entry.item(ALICE))


def test_entries_are_archived_by_their_sequence_and_failed_ones_are_delivered_again() -> None:
    archive = FakeArchive(Unavailable("no room"), "/13/")
    changes = [change(8), change(9, days=1), change(10)]
    assert archive_changes(changes, GivenResources(archive=archive)) == [changes[1]]
    assert [line["nonce"] for line in archive.lines()] == ["n8", "n10"]
    [name] = archive.objects
    assert name.startswith(f"journal/2026/03/14/{8:040}-")


def test_a_malformed_change_is_archived_completely() -> None:
    archive = FakeArchive()
    malformed = Change(1, NOON, {"PK": f"WALLET#{ALICE}", "SK": "TX#1"})
    assert archive_changes([malformed], GivenResources(archive=archive)) == []
    [(name, body)] = archive.objects.items()
    assert name.startswith("journal/malformed/")
    assert json.loads(gzip.decompress(body)) == {
        "sequence": 1,
        "removed_at": NOON,
        "item": malformed.item,
    }
