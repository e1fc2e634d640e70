"""Checking what the items say together: counts, floors and days, the change log, the queues.

What is said of a badge is held against all that its views can be: in its count, live, removed and
waiting for the fold, or on their way in a message.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from chalicelib.ports import Item, number, text
from chalicelib.views import keys
from chalicelib.views.view import MalformedError, View, earliest
from local.check_rows import POSITION
from local.findings import Finding, all_wrong, note, ok
from local.queue import DEAD_LETTERS

VIEWS_CONSUMER = "fold_views"


@dataclass(slots=True)
class Badges:
    """What a pass over all items gathers of the badges: their days come right before them.

    `short` has those whose floor is above their count, with how much is missing and their reset.
    """

    label: str
    latest: int
    short: dict[str, tuple[int, int]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    without_days: int = 0
    _days: tuple[str, list[tuple[str, int]]] = ("", [])

    def take(self, kind: str, item: Item) -> None:
        """Gather what the next item says."""
        partition = text(item, "PK")
        if kind in ("badge", "day"):
            self._check_folded(item)
        if kind == "day":
            if self._days[0] != partition:
                self._days = (partition, [])
            self._days[1].append((text(item, "SK"), number(item, "views")))
        elif kind == "badge":
            self._take_badge(item, self._days[1] if self._days[0] == partition else [])

    def _take_badge(self, item: Item, days: list[tuple[str, int]]) -> None:
        """Days before a reset are no part of the count: they may wait for the next one."""
        badge_id = text(item, "PK").removeprefix(keys.PARTITION)
        count, floor, reset = (number(item, name) for name in ("count", "floor", "reset"))
        if alias := text(item, "alias"):
            self.aliases[badge_id] = alias
        if floor > count:
            self.short[badge_id] = floor - count, reset
        first = f"{keys.DAY}{datetime.fromtimestamp(reset / 1000, UTC):%Y-%m-%d}"
        of_days = sum(views for day, views in days if day >= first)
        if of_days > count:
            self.wrong.append(f"the badge {badge_id} has {count} views, its days have {of_days}")
        self.without_days += of_days < count

    def _check_folded(self, item: Item) -> None:
        """A place ahead of the change log: views behind it would be taken for counted."""
        found = POSITION.fullmatch(text(item, "folded"))
        if found and found[1] == self.label and int(found[2]) > self.latest:
            self.wrong.append(
                f"{item['PK']} {item['SK']} is folded up to {int(found[2])}, the change log ends at"
                f" {self.latest}: views would not be counted"
            )


def floors(connection: sqlite3.Connection, badges: Badges) -> Iterator[str]:
    """Badges that promised more views than there are anywhere."""
    short = {
        badge_id: missing - live
        for badge_id, (missing, reset) in badges.short.items()
        if (live := _live(connection, badge_id, reset)) < missing
    }
    if not short:
        return
    waiting = _waiting(connection, badges.aliases)
    for badge_id, missing in short.items():
        if (lost := missing - waiting[badge_id]) > 0:
            yield f"the badge {badge_id} has shown {lost} more views than there are: they are lost"


def _live(connection: sqlite3.Connection, badge_id: str, reset: int) -> int:
    first = keys.VIEW + (earliest(reset) if reset else "")
    [(found,)] = connection.execute(
        "SELECT count(*) FROM items WHERE pk = ? AND sk >= ?", (keys.partition(badge_id), first)
    )
    return int(found)


def _waiting(connection: sqlite3.Connection, aliases: dict[str, str]) -> Counter[str]:
    """The views of each badge that wait for the fold, or in a message."""
    found: Counter[str] = Counter()
    for (pk,) in connection.execute(
        "SELECT pk FROM changes WHERE sk LIKE 'VIEW#%' AND sequence >"
        " coalesce((SELECT sequence FROM checkpoints WHERE consumer = ?), 0)",
        (VIEWS_CONSUMER,),
    ):
        found[pk.removeprefix(keys.PARTITION)] += 1
    for (body,) in connection.execute("SELECT body FROM messages WHERE queue LIKE '%-views%'"):
        try:
            view = View.from_message(body)
        except MalformedError:
            continue
        found[aliases.get(view.badge_id, view.badge_id)] += 1
    return found


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
            " `python -m local redrive` sends those of views on their way again"
        )
