"""The upkeep of the file: its size by day, its vacuum, and the removal of unseen badges.

An unseen badge is one that nobody owns and nobody saw for a long time. A step finds its badges and
removes them in one transaction, and a visitor's read, answer and view are in one, too. So a view
comes before the step, and the badge stays; or after it, and begins a new badge that shows no view
of the old one. No tombstone is needed, because no view of a pruned badge can come late: a badge
with a stored view, or a message in the queue of views, stays.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from chalicelib.counting import keys
from chalicelib.counting.view import View
from chalicelib.storage.messages import MalformedError
from chalicelib.units import Seconds, to_milliseconds
from vumi.storage.badges import Read
from vumi.storage.database import Database
from vumi.storage.file_format import WAL, beside
from vumi.storage.queue import SqliteQueue

STEP_BADGES = 100
"""Badges that one step looks at, because visitors wait for its commit."""
READ_BADGES = 2_000
ROW_BYTES = 8
"""The bytes that SQLite adds to the texts of a row, about (sqlite.org, "Record Format")."""
KEPT_DAYS = 400
SAMPLE_SECONDS = 3_600.0
FREE_SHARE = 0.2
"""The share of free pages that stays in the file, because new views take them."""
FREE_PAGES = 1_000
VACUUM_PAGES = 20
"""Pages in one commit, because visitors wait for it."""
VACUUM_SECONDS = 0.05
IDLE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class UnseenBadge:
    """A badge to prune: the day (UTC) of its last view, or of its creation without one."""

    partition: str
    shown: int
    seen: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Pruning:
    """The removal of unseen badges from a file, which a server may serve meanwhile.

    The last view of a badge to prune, and everything else, is before `since`. A badge stays from
    `below` views on, with the base.
    """

    database: Database
    views_queue: SqliteQueue
    since: Seconds
    below: int

    def find(self) -> Iterator[UnseenBadge]:
        """Yield the badges to prune, by id."""
        after = keys.PARTITION
        while after:
            found, after = self._find(after, READ_BADGES)
            yield from found

    def prune(
        self, stopwatch: Callable[[], Seconds], sleep: Callable[[Seconds], object]
    ) -> Iterator[UnseenBadge]:
        """Remove the badges, a step at a time, and yield them.

        A pause after each step lets others write for three times as long. Raises `StorageError`.
        """
        after = keys.PARTITION
        while after:
            began = stopwatch()
            found, after = self.database.in_one_commit(partial(self._step, after))
            yield from found
            sleep(3 * (stopwatch() - began))

    def _step(self, after: str) -> tuple[list[UnseenBadge], str]:
        found, last = self._find(after, STEP_BADGES)
        waiting = set(self._waiting()) if found else set()
        gone = [badge for badge in found if badge.partition not in waiting]
        partitions = [(badge.partition,) for badge in gone]
        delete = "DELETE FROM items WHERE pk = ?"
        self.database.write(lambda connection: connection.executemany(delete, partitions))
        return gone, last

    def _find(self, after: str, limit: int) -> tuple[list[UnseenBadge], str]:
        """Look at badges after a partition; return those to prune, and the last one or nothing."""
        day = f"{datetime.fromtimestamp(self.since, UTC):%Y-%m-%d}"
        since = int(self.since), to_milliseconds(self.since), day
        rows = self.database.read(_UNSEEN, (after, limit, self.below, *since))
        found = [UnseenBadge(*row) for row in rows if row[2]]
        return found, rows[-1][0] if len(rows) == limit else ""

    def _waiting(self) -> Iterator[str]:
        """Yield the partitions of views that are still messages."""
        for body in self.views_queue.bodies():
            with suppress(MalformedError):
                yield keys.partition(View.from_message(body).badge_id)


_UNSEEN = f"""
WITH page AS (
    SELECT pk, attributes FROM items
    WHERE pk > ?1 AND pk < 'USER$' AND sk = '{keys.SUMMARY}' ORDER BY pk LIMIT ?2
), badge AS (
    SELECT pk, coalesce(json_extract(attributes, '$.alias'),
            json_extract(attributes, '$.deleted')) IS NULL
            AND coalesce(json_extract(attributes, '$.frozen'), 0) = 0 AS is_plain,
        coalesce(json_extract(attributes, '$.base'), 0)
            + coalesce(json_extract(attributes, '$.count'), 0) AS shown,
        coalesce(json_extract(attributes, '$.created'), 0) AS created,
        coalesce(json_extract(attributes, '$.watermark'), 0) AS watermark,
        coalesce(json_extract(attributes, '$.today.day'), '') AS today
    FROM page
), judged AS (
    SELECT *, is_plain AND shown < ?3 AND created < ?4 AND watermark < ?5 AND today < ?6
        AND NOT EXISTS (SELECT 1 FROM viewed WHERE viewed.pk = badge.pk)
        AND NOT EXISTS (SELECT 1 FROM items WHERE items.pk = badge.pk
            AND sk != '{keys.SUMMARY}' AND NOT sk BETWEEN '{keys.DAY}' AND 'DAY$') AS is_unseen
    FROM badge
)
SELECT pk, shown,
    CASE WHEN is_unseen THEN max(today, date(max(created, watermark / 1000), 'unixepoch')) END,
    CASE WHEN is_unseen THEN
        (SELECT sum({ROW_BYTES} + length(CAST(items.pk || sk || attributes AS BLOB)))
        FROM items WHERE items.pk = judged.pk) END
FROM judged ORDER BY pk"""  # noqa: S608  fixed names
"""`$` is the character after `#`. A badge with anything but a summary and days stays: an owner,
other names, milestones, and whatever comes later."""


def sample_size(database: Database, clock: Callable[[], Seconds]) -> Seconds:
    """Store the size of today, forget old days; return the time until the next sample.

    A day (UTC) keeps its last sample.
    """
    today = datetime.fromtimestamp(clock(), UTC)
    oldest = today - timedelta(days=KEPT_DAYS)
    size = measure(database.path)

    def store(connection: sqlite3.Connection) -> None:
        connection.execute(
            "INSERT INTO file_sizes (day, bytes) VALUES (?, ?)"
            " ON CONFLICT (day) DO UPDATE SET bytes = excluded.bytes",
            (f"{today:%Y-%m-%d}", size),
        )
        connection.execute("DELETE FROM file_sizes WHERE day < ?", (f"{oldest:%Y-%m-%d}",))

    database.write(store)
    return SAMPLE_SECONDS


def vacuum(database: Database) -> Seconds:
    """Release pages that removed items leave, if many are free; return the time until the next.

    Source: sqlite.org, "PRAGMA incremental_vacuum".
    """
    counts = "SELECT freelist_count, page_count FROM pragma_freelist_count, pragma_page_count"
    [(free, pages)] = database.read(counts)
    if free <= max(FREE_PAGES, pages * FREE_SHARE):
        return IDLE_SECONDS
    database.write(_release)
    return VACUUM_SECONDS


def _release(connection: sqlite3.Connection) -> None:
    for _ in range(VACUUM_PAGES):  # Python takes one step of a pragma without columns
        connection.execute("PRAGMA incremental_vacuum(1)")


def measure(path: Path) -> int:
    """Return the bytes of the file and of its WAL."""
    wal = beside(path, WAL)
    return path.stat().st_size + (wal.stat().st_size if wal.exists() else 0)


def read_sizes(read: Read, days: int) -> list[tuple[str, int]]:
    """Return the latest samples, each a day (yyyy-mm-dd) and its bytes, the oldest first."""
    rows = read("SELECT day, bytes FROM file_sizes ORDER BY day DESC LIMIT ?", (days,))
    return [(day, size) for day, size in reversed(rows)]
