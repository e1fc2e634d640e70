"""The delivery of changes: in order, and again from the lowest failed one."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import pytest

from chalicelib.storage.errors import UnavailableError
from chalicelib.wallets.wallet import Entry, Posting
from simulation.archives import FakeArchive
from simulation.clocks import NOON, ulid_of
from simulation.resources import GivenResources
from vumi.storage.database import Database
from vumi.storage.removals import Change, remove_expired
from vumi.storage.table import SqliteTable
from vumi.workers.changes import (
    MAX_BATCH_CHANGES,
    RETRY_SECONDS,
    STEP_SECONDS,
    ChangeDelivery,
    archive_changes,
)
from vumi.workers.messages import IDLE_SECONDS

START = 1_000_000.0


class Handler:
    """A handler that keeps its batches of sort keys; each call fails at those of one text."""

    def __init__(self, *fails: str) -> None:
        self.batches: list[str] = []
        self._fails = list(fails)

    def __call__(self, changes: Sequence[Change]) -> Collection[Change]:
        found = [str(change.item["SK"]) for change in changes]
        self.batches.append(" ".join(found))
        failed = self._fails.pop(0).split() if self._fails else []
        if failed == ["all"]:
            raise ZeroDivisionError
        return [changes[found.index(one)] for one in failed]


def remove(database: Database, sort_keys: Iterable[str]) -> None:
    """Let items expire in this order."""
    keys = list(sort_keys)

    def job(connection: sqlite3.Connection) -> None:
        remove_expired(connection, START, len(keys), lambda _: True, lambda _: True)

    SqliteTable(database).put_all(
        [{"PK": "p", "SK": sk, "ttl": place + 1} for place, sk in enumerate(keys)]
    )
    database.write(job)


def left(database: Database) -> list[int]:
    return [sequence for (sequence,) in database.read("SELECT sequence FROM changes")]


@dataclass
class Case:
    """Removed items, those at which each call fails, and what steps of a consumer then do."""

    removed: str
    fails: tuple[str, ...]
    rests: list[float]
    batches: list[str]
    left: list[int]
    sort: str = ""


CASES = {
    "nothing": Case("", (), [IDLE_SECONDS], [], []),
    "handled once": Case("a b", (), [0.0, IDLE_SECONDS], ["a b"], []),
    "again from the lowest failed one": Case(
        "a b c d e", ("d b",), [RETRY_SECONDS, 0.0, IDLE_SECONDS], ["a b c d e", "b c d e"], []
    ),
    "while the first one fails": Case(
        "a b", ("a", "a", "a"), [RETRY_SECONDS] * 3, ["a b"] * 3, [1, 2]
    ),
    "some items": Case("V1 T1 V2 T2 V3", (), [0.0, IDLE_SECONDS], ["T1 T2"], [], "T"),
    "none of its items": Case("V1 V2", (), [0.0, IDLE_SECONDS], [], [], "T"),
    "after a failed one": Case("V1 T2 V3 T4 V5", ("T4",), [RETRY_SECONDS], ["T2 T4"], [4, 5], "T"),
    "with a failed one": Case(
        "V1 T2 V3 T4 V5", ("T4",), [RETRY_SECONDS, 0.0], ["T2 T4", "T4"], [], "T"
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_changes_are_delivered_in_order_until_they_are_handled(
    database: Database, case: Case
) -> None:
    handler = Handler(*case.fails)
    delivery = ChangeDelivery(database, "consumer", handler, sort=case.sort)
    remove(database, case.removed.split())
    assert [delivery.step() for _ in case.rests] == case.rests
    assert handler.batches == case.batches
    assert left(database) == case.left


def test_when_a_handler_raises_all_its_changes_are_delivered_again(database: Database) -> None:
    handler = Handler("all")
    delivery = ChangeDelivery(database, "fold", handler)
    remove(database, "ab")
    with pytest.raises(ZeroDivisionError):
        delivery.step()
    delivery.step()
    assert handler.batches == ["a b", "a b"]


class Stopwatch:
    """A clock that reports a duration for each batch; the last one is for all later ones."""

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


@pytest.mark.parametrize(
    ("seconds", "sizes"),
    [
        ((0.0,), [50, 100, 200, 400, 800, 1_000, 1_000]),
        ((0.008, 0.02, 0.01), [50, 62, 50, 50]),
    ],
    ids=["quick ones double up to the limit of Lambda", "the minimum is 50"],
)
def test_a_batch_of_changes_is_as_large_as_fits_into_a_step(
    database: Database, seconds: tuple[float, ...], sizes: list[int]
) -> None:
    """If 50 take 8 ms, 62 fit into 10 ms."""
    assert STEP_SECONDS == 0.01
    handler = Handler()
    delivery = ChangeDelivery(database, "fold", handler, stopwatch=Stopwatch(*seconds))
    remove(database, (f"{place:05}" for place in range(4 * MAX_BATCH_CHANGES)))
    assert {delivery.step() for _ in sizes} == {0.0}
    assert [len(batch.split()) for batch in handler.batches] == sizes


ALICE = ulid_of(NOON, "A" * 16)


def change(sequence: int, days: int = 0) -> Change:
    """Return the removal of an entry that was made some days before noon."""
    at = int(NOON - days * 86_400) * 1000
    entry = Entry(ulid_of(NOON, f"{sequence:016}"), Posting(f"n{sequence}", 1, ALICE), at)
    return Change(sequence, NOON, entry.item(ALICE))


def test_entries_are_archived_by_their_sequence_and_failed_ones_are_delivered_again() -> None:
    archive = FakeArchive(UnavailableError("no room"), "/13/")
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
