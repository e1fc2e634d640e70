"""Consistency of the items together: counts and histories, the change log, the queues."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from chalicelib.storage.items import Item, number, text
from chalicelib.views import keys
from chalicelib.views.summary import Summary
from vumi.check.report import Finding, all_wrong, note, ok
from vumi.storage.queue import DEAD_LETTERS


@dataclass(slots=True)
class Badges:
    """The badges that a pass over all items gathers: the days of each come before its summary."""

    wrong: list[str] = field(default_factory=list)
    _days: tuple[str, list[Item]] = ("", [])

    def take(self, kind: str, item: Item) -> None:
        """Take the next item into account."""
        partition = text(item, "PK")
        if kind == "day":
            if self._days[0] != partition:
                self._days = (partition, [])
            self._days[1].append(item)
        elif kind == "badge":
            self._take_badge(item, self._days[1] if self._days[0] == partition else [])

    def _take_badge(self, item: Item, days: Iterable[Item]) -> None:
        """Compare the count with the history: the finished days of this life, and today."""
        summary = Summary.of(text(item, "PK").removeprefix(keys.PARTITION), item)
        last = keys.DAY + summary.today.day
        finished = sum(
            number(day, "views")
            for day in days
            if number(day, "reset") == summary.reset and text(day, "SK") < last
        )
        if finished + summary.today.views != summary.count:
            self.wrong.append(
                f"the badge {summary.badge_id} has {summary.count} views, its history has"
                f" {finished + summary.today.views}"
            )


def latest_change(connection: sqlite3.Connection) -> int:
    """The highest sequence number that the change log has given out."""
    row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'changes'").fetchone()
    [(there,)] = connection.execute("SELECT coalesce(max(sequence), 0) FROM changes")
    return max(int(row[0]) if row else 0, int(there))


def change_log(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Each consumer stands within the log, and the log keeps what the slowest has yet to see."""
    latest = latest_change(connection)
    checkpoints = dict(connection.execute("SELECT consumer, sequence FROM checkpoints"))
    messages = [
        f"{consumer} has come to change {at}, the change log ends at {latest}: what comes next"
        " would be passed over"
        for consumer, at in checkpoints.items()
        if not 0 <= at <= latest
    ]
    lowest = min(checkpoints.values(), default=0)
    kept, first = connection.execute("SELECT count(*), min(sequence) FROM changes").fetchone()
    if kept and first <= lowest:
        messages.append(f"change {first} is kept, though every consumer has come to {lowest}")
    if not messages:
        behind = f"{kept:,} changes wait for their consumers"
        yield ok(f"the change log ends at {latest}, {behind}")
    yield from all_wrong(messages)


ROUGH_MESSAGES = (
    "SELECT id, queue FROM messages WHERE typeof(body) != 'text' OR receives < 0"
    " OR typeof(receives) != 'integer' OR typeof(sent_at) NOT IN ('real', 'integer')"
    " OR typeof(visible_at) NOT IN ('real', 'integer')"
    " OR typeof(timed_at) NOT IN ('real', 'integer')"
)


def queues(connection: sqlite3.Connection) -> Iterator[Finding]:
    """Every message can be delivered; those that were given up are told."""
    messages = [
        f"message {number} of the queue {queue} is malformed"
        for number, queue in connection.execute(ROUGH_MESSAGES)
    ]
    yield from all_wrong(messages)
    counted = connection.execute("SELECT queue, count(*) FROM messages GROUP BY queue").fetchall()
    dead = [(queue, count) for queue, count in counted if queue.endswith(DEAD_LETTERS)]
    waiting = sum(count for _, count in counted) - sum(count for _, count in dead)
    if not messages:
        yield ok(f"queues: {waiting:,} messages wait")
    for queue, count in dead:
        yield note(
            f"{count:,} dead letters of {queue.removesuffix(DEAD_LETTERS)}: look in the log why;"
            " `python -m vumi redrive` sends those of views on their way again"
        )
