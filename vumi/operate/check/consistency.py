"""Consistency across items: counts and histories, the change log, the queues."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.history.history import is_finished
from chalicelib.storage.items import Item, number, text
from vumi.operate.check.report import Finding, all_wrong, note, ok
from vumi.storage.queue import DEAD_LETTERS


@dataclass(slots=True)
class Badges:
    """The badges of the file. Items arrive by key, so a badge's days come before its summary.

    `wrong` has a message for each badge that is wrong.
    """

    wrong: dict[str, str] = field(default_factory=dict)
    _days: tuple[str, list[Item]] = ("", [])

    def add(self, kind: str, item: Item) -> None:
        """Add the next item."""
        partition = text(item, "PK")
        if kind == "day":
            if self._days[0] != partition:
                self._days = (partition, [])
            self._days[1].append(item)
        elif kind == "badge":
            self._add_badge(item, self._days[1] if self._days[0] == partition else [])

    def _add_badge(self, item: Item, days: Iterable[Item]) -> None:
        """Compare the count with the history: the finished days of this life, and today."""
        summary = Summary.of(text(item, "PK").removeprefix(keys.PARTITION), item)
        finished = sum(number(day, "views") for day in days if is_finished(day, summary))
        if finished + summary.today.views != summary.count:
            self.wrong[summary.badge_id] = (
                f"the badge {summary.badge_id} has {summary.count} views, but its history has"
                f" {finished + summary.today.views}"
            )


def latest_change(connection: sqlite3.Connection) -> int:
    """Return the highest sequence number that the change log has assigned."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    [(there,)] = connection.execute("SELECT coalesce(max(sequence), 0) FROM changes")
    return max(int(row[0]) if row else 0, int(there))


def check_change_log(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Check that each checkpoint is within the log, and that the log keeps no read change."""
    latest = latest_change(connection)
    checkpoints = dict(connection.execute("SELECT consumer, sequence FROM checkpoints"))
    messages = [
        f"the checkpoint of {consumer} is at change {at}, but the change log ends at {latest}:"
        " the next changes would be skipped"
        for consumer, at in checkpoints.items()
        if not 0 <= at <= latest
    ]
    lowest = min(checkpoints.values(), default=0)
    kept, first = connection.execute("SELECT count(*), min(sequence) FROM changes").fetchone()
    if kept and first <= lowest:
        messages.append(f"change {first} is kept, although every consumer has read up to {lowest}")
    if not messages:
        yield ok(f"the change log ends at {latest}; {kept:,} changes wait for their consumers")
    yield from all_wrong(messages)


MALFORMED_MESSAGES = (
    "SELECT id, queue FROM messages WHERE typeof(body) != 'text' OR receives < 0"
    " OR typeof(receives) != 'integer' OR typeof(sent_at) NOT IN ('real', 'integer')"
    " OR typeof(visible_at) NOT IN ('real', 'integer')"
    " OR typeof(timed_at) NOT IN ('real', 'integer')"
)


def check_queues(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Check that every message can be delivered, and note the dead letters."""
    messages = [
        f"message {number} of the queue {queue} is malformed"
        for number, queue in connection.execute(MALFORMED_MESSAGES)
    ]
    yield from all_wrong(messages)
    counted = connection.execute("SELECT queue, count(*) FROM messages GROUP BY queue").fetchall()
    dead = [(queue, count) for queue, count in counted if queue.endswith(DEAD_LETTERS)]
    waiting = sum(count for _, count in counted) - sum(count for _, count in dead)
    if not messages:
        yield ok(f"queues: {waiting:,} messages wait")
    for queue, count in dead:
        yield note(
            f"{count:,} dead letters of {queue.removesuffix(DEAD_LETTERS)}: see the log for the"
            " cause; `vumi redrive` sends those of views again"
        )
