"""The content of the file of one machine, as one read transaction sees it while others write.

A partition is read from its last sort key on, so that the summary or the wallet comes first.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, groupby
from operator import itemgetter

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.counting.view import View
from chalicelib.storage.items import Item, text
from chalicelib.storage.messages import MalformedError
from chalicelib.wallets.archive import EntryRemoval, make_object
from chalicelib.wallets.wallet import ENTRY
from vumi.operate.admin.installation import Group, is_live, later, new_summary
from vumi.operate.kinds import BADGE, HEADS, STAYING, VIEW, WrongLineError, kind_of
from vumi.storage.archive import FolderArchive
from vumi.storage.queue import DEAD_LETTERS
from vumi.storage.table import ALL_ITEMS, fetch, item_of

ITEMS = f"{ALL_ITEMS} ORDER BY pk DESC, sk DESC"
FIRST_VIEW = (
    "SELECT sk FROM viewed CROSS JOIN views ON badge = number WHERE pk = ? ORDER BY sk LIMIT 1"
)
MESSAGES = "SELECT id, queue, body FROM messages WHERE queue IN (?, ?)"
QUEUED_EVENTS = "SELECT queue, body FROM messages WHERE substr(queue, 1, ?) = ? ORDER BY id"
CHANGES = (
    "SELECT sequence, removed_at, pk, sk, attributes FROM changes"
    " WHERE substr(sk, 1, 3) = ? ORDER BY sequence"
)


class FileSource:
    """The `installation.Source` of a file; the connection has begun a read transaction."""

    engine = "one machine"

    def __init__(
        self,
        connection: sqlite3.Connection,
        archive: FolderArchive,
        views_queue: str,
        event_queues: str,
    ) -> None:
        """Read the queue of views; `event_queues` begins the names of the operator's queues."""
        self._connection = connection
        self._archive = archive
        self._event_queues = event_queues
        self._left_out: list[str] = []
        self._waiting = self._read_waiting(views_queue)

    def groups(self) -> Iterator[Group]:
        rows = self._connection.execute(ITEMS)
        for pk, partition in groupby(rows, itemgetter(0)):
            yield from self._read_partition(pk, partition)
        for badge_id in list(self._waiting):
            yield from self._read_badge(badge_id, iter(()))

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """Yield the objects of the archive, and those of entries that wait to be archived."""
        yield from self._archive.read_all()
        for sequence, removed_at, *row in self._connection.execute(CHANGES, (ENTRY,)):
            try:
                removal = EntryRemoval.of(item_of(*row), sequence, removed_at)
            except MalformedError as error:
                self._left_out.append(f"change {sequence}: {error}")
                continue
            yield make_object([removal])

    def queued_events(self) -> Iterator[tuple[str, str]]:
        start = self._event_queues
        for name, body in self._connection.execute(QUEUED_EVENTS, (len(start), start)):
            yield name.removeprefix(start).removesuffix(DEAD_LETTERS), body

    def left_out(self) -> Sequence[str]:
        return self._left_out

    def _read_waiting(self, queue: str) -> defaultdict[str, list[str]]:
        """Return the ULIDs of the views that wait in the queue, by the ids of their badges."""
        waiting: defaultdict[str, list[str]] = defaultdict(list)
        for number, name, body in self._connection.execute(MESSAGES, (queue, queue + DEAD_LETTERS)):
            try:
                view = View.from_message(body)
            except MalformedError as error:
                self._left_out.append(f"message {number} of {name}: {error}")
                continue
            waiting[view.badge_id].append(view.ulid)
        return waiting

    def _read_partition(self, pk: str, rows: Iterator[tuple[str, str, str]]) -> Iterator[Group]:
        if pk.startswith(BADGE.partition):
            yield from self._read_badge(pk.removeprefix(BADGE.partition), rows)
            return
        first = next(rows)
        kind = kind_of(item_of(*first))
        if kind in STAYING:
            return
        if kind not in HEADS:
            raise WrongLineError(f"{pk} has no item {kind.partition} of its own; run vumi check")
        if kind.is_alone:
            yield from (Group(item_of(*row)) for row in chain([first], rows))
            return
        yield Group(item_of(*first), (item_of(*row) for row in rows))

    def _read_badge(self, badge_id: str, rows: Iterator[tuple[str, str, str]]) -> Iterator[Group]:
        """Yield a badge with its live views, and with its views that wait in the queue."""
        first = next(rows, None)
        has_summary = first is not None and first[1] == keys.SUMMARY
        head = item_of(*first) if first and has_summary else None
        summary = Summary.of(badge_id, head or {})
        views = list(self._find_uncounted(summary, self._waiting.pop(badge_id, [])))
        if head is None and (first or views):
            head = self._make_head(badge_id, views)
        rest = rows if has_summary or first is None else chain([first], rows)
        moving = filter(partial(_moves, summary=summary), (item_of(*row) for row in rest))
        if head is not None:
            yield Group(head, chain(views, moving))

    def _make_head(self, badge_id: str, waiting: Sequence[Item]) -> Item:
        """Return the head of a badge without a summary."""
        rows = self._connection.execute(FIRST_VIEW, (keys.partition(badge_id),)).fetchall()
        found = sorted([*(sk for (sk,) in rows), *(text(view, "SK") for view in waiting)])
        return new_summary(badge_id, found[0].removeprefix(VIEW.sort) if found else "")

    def _find_uncounted(self, summary: Summary, ulids: Sequence[str]) -> Iterator[Item]:
        """Yield an item for each waiting view that is not counted or stored."""
        target = self._read_summary(summary.alias) if summary.alias else summary
        ended = max(summary.reset, target.reset)
        for ulid in dict.fromkeys(ulids):
            stored, seen = keys.view(summary.badge_id, ulid), keys.seen(ulid)
            if fetch(self._connection, stored) or fetch(self._connection, seen):
                continue
            if View(summary.badge_id, ulid).milliseconds > ended:
                key = keys.view(summary.badge_id, later(ulid, summary.watermark))
                yield {"PK": key.pk, "SK": key.sk}

    def _read_summary(self, badge_id: str) -> Summary:
        return Summary.of(badge_id, fetch(self._connection, keys.summary(badge_id)) or {})


def _moves(item: Item, summary: Summary) -> bool:
    """Return whether an item of a badge moves: all but the views that are counted."""
    sk = text(item, "SK")
    return not sk.startswith(VIEW.sort) or is_live(item, summary)
