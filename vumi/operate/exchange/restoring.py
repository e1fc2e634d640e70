"""The import of an export, into the file of one machine or into a stack.

A group is imported if its head is missing, and its head is written last. So an interrupted import
continues where it stopped when it is run again, and one that is repeated changes nothing. A group
that is here with other content is kept, unless `replace` is set. One that has moved on here since
its import is always kept, because it has what the file has, and more.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import chain, groupby, islice
from typing import Any, TypeVar

from chalicelib.counting import keys
from chalicelib.counting.view import milliseconds
from chalicelib.counting.windows import Windows, marker_item
from chalicelib.events import schedule
from chalicelib.events.event import Event, Status
from chalicelib.settings import Feature
from chalicelib.storage.conditions import Condition, attr
from chalicelib.storage.errors import Refused, StorageError, Unavailable
from chalicelib.storage.items import Item, Key, check_item, key_of, number, text
from chalicelib.storage.ports import Table, check_object_name
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import (
    MAX_TRANSACTION_WRITES,
    Check,
    ConditionFailed,
    Delete,
    Put,
)
from chalicelib.units import Milliseconds, WholeSeconds, to_milliseconds
from chalicelib.wallets import wallet as wallets
from vumi.errors import ReportedError
from vumi.operate.admin.importing import PATIENCE
from vumi.operate.admin.installation import Installation
from vumi.operate.check import rows
from vumi.operate.check.rows import WrongItemError
from vumi.operate.exchange import formats
from vumi.operate.exchange.files import ExportFile
from vumi.operate.exchange.formats import (
    BADGE,
    EVENT,
    HEADS,
    MILESTONES,
    OBJECT,
    OWNER,
    QUEUED_EVENT,
    TOKEN,
    VIEW,
    WALLET,
    ItemKind,
    WrongLineError,
)

Result = TypeVar("Result")

LISTED_ITEMS = 1_000
"""The items of a group that are kept in memory; those of a larger group are read as needed."""
MAX_MARKERS = 10
"""Markers of one badge; the latest is enough, because a fold covers all views before it."""
SMALL_ITEMS = MAX_TRANSACTION_WRITES - MAX_MARKERS - 2
"""The items of a group that is one transaction, with its head and the items that are made here."""
BATCH_ITEMS = 2_000
"""Items that are imported in common commits, or in parallel."""
PART_GROUPS = 10
"""Groups in one part of a batch: on one machine, a commit has 100 parts."""
CHUNK_ITEMS = 100
TRIES = 10
"""A try fails if another process has written the group meanwhile."""
OTHER_CONTENT = "it is here with other content"
TOO_LARGE = "it is here with other items, and too large to replace: delete it first"
EVERY_KEY = 1_000_000


class RestoreError(ReportedError):
    """A line of the file can't be imported. The message names it."""


class RestoreOutcome(Enum):
    """The outcome of a group; its value is printed for the operator."""

    IMPORTED = "imported"
    SAME = "unchanged"
    NEWER = "newer here, kept"
    REPLACED = "replaced"
    KEPT = "kept"
    LEFT_OUT = "left out: --tokens imports them"


@dataclass(frozen=True, slots=True)
class Restored:
    """A group or a line, its outcome, and the reason if it was kept; `lines` are its lines."""

    kind: str
    name: str
    outcome: RestoreOutcome
    lines: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GivenGroup:
    """A group of the file: its head, and its other items.

    `more` has those that do not fit into memory, or is None. They can be read once.
    """

    kind: ItemKind
    head: Item
    rest: Sequence[Item] = ()
    more: Iterator[Item] | None = None

    @property
    def key(self) -> Key:
        """Return the key of the head."""
        return key_of(self.head)

    @property
    def name(self) -> str:
        """Return the id of the badge, event or wallet, or the digest of the token."""
        return self.key.pk.removeprefix(self.kind.partition)

    @property
    def is_small(self) -> bool:
        """Return whether one transaction can write the group."""
        return self.more is None and len(self.rest) <= SMALL_ITEMS


@dataclass(frozen=True, slots=True)
class Restore:
    """The job that imports an export, API tokens only with `tokens`; a `dry_run` writes nothing."""

    installation: Installation
    replace: bool = False
    dry_run: bool = False
    tokens: bool = False
    patience: Retry = PATIENCE

    @property
    def _table(self) -> Table:
        return self.installation.table

    def run(self, file: ExportFile) -> Iterator[Restored]:
        """Import all lines in order; yield each group after it is imported.

        Raises `RestoreError` and `StorageError`; run it again to import the rest.
        """
        batch: list[GivenGroup] = []
        items = 0
        for one in read_groups(file):
            if isinstance(one, GivenGroup) and one.more is None:
                batch.append(one)
                items += 1 + len(one.rest)
                if items < BATCH_ITEMS:
                    continue
            yield from self._restore_batch(batch)
            batch, items = [], 0
            if not isinstance(one, GivenGroup):
                yield self._restore_line(one)
            elif one.more is not None:
                yield self._restore(one)
        yield from self._restore_batch(batch)

    def _restore_batch(self, batch: Sequence[GivenGroup]) -> Iterator[Restored]:
        parts = [batch[at : at + PART_GROUPS] for at in range(0, len(batch), PART_GROUPS)]
        map_parallel = self.installation.map_parallel
        for part in self.patience.call(lambda: list(map_parallel(self._restore_part, parts))):
            yield from part

    def _restore_part(self, part: Sequence[GivenGroup]) -> list[Restored]:
        return [self._restore(given) for given in part]

    def _restore(self, given: GivenGroup) -> Restored:
        """Import a group; read it again if another process has written it."""
        for _ in range(TRIES if given.more is None else 1):
            decision = self._decide(given, self._table.get(given.key))
            if self.dry_run or decision.write is None:
                return decision.result(given)
            try:
                lines = decision.write()
            except ConditionFailed:
                continue
            except Refused as error:
                raise RestoreError(f"the {given.kind.name} {given.name}: {error}") from error
            self._enqueue(given)
            return decision.result(given, lines)
        raise Unavailable(f"{given.name} was changed by other writes during its import")

    def _decide(self, given: GivenGroup, there: Item | None) -> Decision:
        if given.kind is TOKEN and not self.tokens:
            return Decision(RestoreOutcome.LEFT_OUT)
        if reason := self._find_conflict(given):
            return Decision(RestoreOutcome.KEPT, reason=reason)
        if there is None:
            write = partial(self._write, given, attr("SK").missing())
            return Decision(RestoreOutcome.IMPORTED, write)
        if there == given.head:
            return self._decide_same(given, there)
        if is_newer(given.kind, there, given.head):
            return Decision(RestoreOutcome.NEWER)
        return self._decide_other(given, there)

    def _decide_same(self, given: GivenGroup, there: Item) -> Decision:
        """Decide about a group whose head is the same: the rest may have grown since an import."""
        missing: list[Item] = []
        for chunk in _chunks(chain(given.rest, given.more or ())):
            here = {key_of(item): item for item in self._table.get_all([*map(key_of, chunk)])}
            if any(_differs(here.get(key_of(item), item), item) for item in chunk):
                return self._decide_other(given, there)
            missing += [item for item in chunk if key_of(item) not in here]
        if not missing:
            return Decision(RestoreOutcome.SAME)
        write = partial(self._add, given, missing, _as_read(given.kind, there))
        return Decision(RestoreOutcome.IMPORTED, write)

    def _decide_other(self, given: GivenGroup, there: Item) -> Decision:
        if not self.replace:
            return Decision(RestoreOutcome.KEPT, reason=OTHER_CONTENT)
        if given.more is not None and there == given.head:  # its items were read to compare them
            return Decision(RestoreOutcome.KEPT, reason=TOO_LARGE)
        write = partial(self._replace, given, _as_read(given.kind, there))
        return Decision(RestoreOutcome.REPLACED, write)

    def _find_conflict(self, given: GivenGroup) -> str:
        """Return why a group can't be imported: its user has another wallet, or it is a cycle."""
        if alias := text(given.head, "alias"):
            place = given.head if alias == given.name else self._table.get(keys.summary(alias))
            return f"its alias {alias} is an alias itself" if text(place or {}, "alias") else ""
        if given.kind is not WALLET:
            return ""
        user = text(given.head, "user")
        here = text(self._table.get(wallets.owner(user)) or {}, "wallet")
        return "" if here in {"", given.name} else f"the user {user} has the wallet {here} here"

    def _write(self, given: GivenGroup, condition: Condition) -> int:
        """Write a group, its head last; return the number of its lines."""
        head = _head_writes(given, condition)
        if given.is_small:
            self._table.write(*head, *map(Put, self._finish(given, given.rest)))
            return 1 + len(given.rest)
        lines = 1
        last: dict[Key, Item] = {}
        for chunk in _chunks(chain(given.rest, given.more or ())):
            lines += len(chunk)
            finished = self._finish(given, chunk)
            last |= {key_of(item): item for item in finished if _goes_with_head(item)}
            self._table.put_all([item for item in finished if not _goes_with_head(item)])
        self._table.write(*head, *map(Put, _limit_markers(last.values())))
        return lines

    def _replace(self, given: GivenGroup, condition: Condition) -> int:
        """Replace all that is here of a group by the group."""
        found = self._table.query(given.key.pk, limit=EVERY_KEY, attributes=("PK", "SK"))
        others = [key for key in map(key_of, found) if key != given.key]
        if not given.is_small or len(others) > SMALL_ITEMS - len(given.rest):
            for chunk in _chunks(others):
                self._table.write(*map(Delete, chunk))
            return self._write(given, condition)
        finished = self._finish(given, given.rest)
        deletes = map(Delete, set(others) - {key_of(item) for item in finished})
        self._table.write(*_head_writes(given, condition), *map(Put, finished), *deletes)
        return 1 + len(given.rest)

    def _add(self, given: GivenGroup, missing: Sequence[Item], condition: Condition) -> int:
        """Add items to a group whose head has not changed."""
        check = Check(given.key, condition)
        for start in range(0, len(missing), SMALL_ITEMS):
            finished = self._finish(given, missing[start : start + SMALL_ITEMS])
            self._table.write(check, *map(Put, finished))
        return 1 + len(given.rest)

    def _finish(self, given: GivenGroup, rest: Iterable[Item]) -> list[Item]:
        """Return items as this installation stores them, with those that an import makes."""
        now = int(self.installation.clock())
        items = [self._with_ttl(item, now) for item in rest]
        if given.kind is BADGE:
            times = [*map(_taken_at, filter(_is_view, items))]
            self._keep_view_time(given.head, times)
            return [*items, *self._make_markers(given.name, times, now)]
        if given.kind is WALLET:
            key = wallets.owner(text(given.head, "user"))
            items.append({"PK": key.pk, "SK": key.sk, "wallet": given.name})
        return items

    def _with_ttl(self, item: Item, now: WholeSeconds) -> Item:
        """Keep a view for the retention from now on, because it must be folded here."""
        if not _is_view(item):
            return item
        return {**item, "ttl": self._windows.view_ttl(max(_taken_at(item), to_milliseconds(now)))}

    def _keep_view_time(self, head: Item, times: Iterable[Milliseconds]) -> None:
        """Raise the clock of views here, if that of the badge was ahead of this machine's."""
        latest = max([number(head, "watermark"), *times])
        if latest > to_milliseconds(self.installation.clock()):
            self.installation.keep_view_time((latest + 1) / 1000)

    def _make_markers(
        self, badge_id: str, times: Iterable[Milliseconds], now: WholeSeconds
    ) -> Iterator[Item]:
        """Make the markers of the windows of live views, whose removals fold the badge."""
        for mark in sorted({self._windows.mark(at) for at in times}, reverse=True)[:MAX_MARKERS]:
            yield marker_item(badge_id, mark, self._windows.marker_ttl(max(mark, now)))

    @property
    def _windows(self) -> Windows:
        return Windows.of(self.installation.settings)

    def _enqueue(self, given: GivenGroup) -> None:
        """Enqueue an active event that is due soon, because the sweep may have passed its time."""
        if given.kind is not EVENT or Feature.EVENTS not in self.installation.settings.features:
            return
        event = Event.of(given.head)
        if event.status is Status.ACTIVE:
            now = to_milliseconds(self.installation.clock())
            schedule.enqueue_soon([event], self.installation.delivery_queue, now)

    def _restore_line(self, line: dict[str, Any]) -> Restored:
        """Import an object of the archive, or an event that waits in a queue."""
        if line["type"] == OBJECT:
            body = gzip.compress(line["text"].encode(), mtime=0)
            if not self.dry_run:
                self.patience.call(partial(self.installation.archive.put, line["name"], body))
            return Restored(OBJECT, line["name"], RestoreOutcome.IMPORTED, 1)
        queue = self.installation.event_queue(line["queue"])
        if queue is None:
            reason = f"EVENT_QUEUES has no queue {line['queue']} here"
            return Restored(QUEUED_EVENT, line["queue"], RestoreOutcome.KEPT, 1, reason)
        if not self.dry_run:
            self.patience.call(partial(queue.send, line["body"]))
        return Restored(QUEUED_EVENT, line["queue"], RestoreOutcome.IMPORTED, 1)


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcome of a group, and the function that makes it true, if it writes."""

    outcome: RestoreOutcome
    write: Callable[[], int] | None = None
    reason: str = ""

    def result(self, given: GivenGroup, lines: int | None = None) -> Restored:
        """Return what is reported; without a write, the lines of a large group are counted here."""
        count = lines or 1 + len(given.rest) + sum(1 for _ in given.more or ())
        return Restored(given.kind.name, given.name, self.outcome, count, self.reason)


def is_newer(kind: ItemKind, there: Item, head: Item) -> bool:
    """Return whether what is here is a later state of the same badge, wallet or event."""
    if kind is BADGE:
        is_same = number(head, "created") in {0, number(there, "created")}
        return is_same and number(there, "version") > number(head, "version")
    if kind is WALLET:
        return text(there, "last") > text(head, "last")
    if kind is EVENT:
        is_same = all(there.get(name) == head.get(name) for name in ("request", "created"))
        return is_same and _progress(there) >= _progress(head)
    return False


def _progress(event: Item) -> tuple[int, int, bool]:
    """Return a value that grows with each redrive, each try, and with the end of an event."""
    is_done = text(event, "status") != Status.ACTIVE
    return number(event, "round"), number(event, "tries"), is_done


def _head_writes(given: GivenGroup, condition: Condition) -> Iterator[Put | Check]:
    """Write a head, if its alias is no alias: so no order of imports makes a cycle."""
    yield Put(given.head, condition)
    if alias := text(given.head, "alias"):
        yield Check(keys.summary(alias), attr("alias").missing())


VERSIONS = {BADGE.name: "version", WALLET.name: "last", EVENT.name: "tries"}
"""The attribute of a head that every change of the group changes."""


def _as_read(kind: ItemKind, there: Item) -> Condition:
    """Return the condition that a group has not changed since its head was read."""
    name = VERSIONS.get(kind.name, "created")
    is_same = attr(name) == there[name] if name in there else attr(name).missing()
    return attr("SK").exists() & is_same


def _differs(here: Item, given: Item) -> bool:
    """Return whether an item has other content; views have none."""
    return here != given and not _is_view(given)


def _is_view(item: Item) -> bool:
    return text(item, "SK").startswith(VIEW.sort)


def _taken_at(view: Item) -> Milliseconds:
    return milliseconds(text(view, "SK").removeprefix(VIEW.sort))


def _goes_with_head(item: Item) -> bool:
    """Return whether an item is written together with the head, because it acts on its own."""
    is_of_user = text(item, "PK").startswith(wallets.OWNERS)
    return is_of_user or text(item, "SK") in {OWNER.sort, MILESTONES.sort, keys.WINDOW}


def _limit_markers(items: Iterable[Item]) -> list[Item]:
    """Return items with the latest markers of windows alone, so that one transaction fits."""
    markers = [item for item in items if item["SK"] == keys.WINDOW]
    latest = sorted(markers, key=lambda item: number(item, "ttl"))[-MAX_MARKERS:]
    return [*(item for item in items if item["SK"] != keys.WINDOW), *latest]


def _chunks(items: Iterable[Result]) -> Iterator[list[Result]]:
    left = iter(items)
    while chunk := list(islice(left, CHUNK_ITEMS)):
        yield chunk


def read_groups(file: ExportFile) -> Iterator[GivenGroup | dict[str, Any]]:
    """Yield the groups of a file, and its other lines as they are. Raises `RestoreError`.

    The items of a large group are read when they are needed, and must be before the next group.
    """
    decoded = (_decode(number, line) for number, line in file.lines())
    for pk, members in groupby(decoded, lambda one: one.pk):
        if not pk:
            yield from (member.line for member in members)
            continue
        first = next(members)
        if first.kind not in HEADS:
            raise RestoreError(
                f"line {first.number}: the {first.kind.name} is of no badge or wallet before it"
            )
        yield _make_group(first, members)  # noqa: B031  the rest of the same members


def _make_group(first: _Decoded, members: Iterator[_Decoded]) -> GivenGroup:
    items = (member.item for member in members)
    rest = list(islice(items, LISTED_ITEMS))
    more = items if len(rest) == LISTED_ITEMS else None
    return GivenGroup(first.kind, first.item, rest, more)


@dataclass(frozen=True, slots=True)
class _Decoded:
    """A line of a file, and the item in it; `pk` is empty if it has none."""

    number: int
    line: dict[str, Any]
    kind: ItemKind = BADGE
    item: Item = None  # type: ignore[assignment]
    pk: str = ""


def _decode(line_number: int, line: dict[str, Any]) -> _Decoded:
    try:
        if line.get("type") in _TEXTS:
            _check_texts(line, _TEXTS[line["type"]])
            return _Decoded(line_number, line)
        kind, item = formats.item_of(line)
        check_item(item)
        str(item.get("alias", "")).encode()  # SQLite looks up keys as UTF-8
        rows.kind_of(item)
    except (StorageError, WrongItemError, WrongLineError, ValueError) as error:
        raise RestoreError(f"line {line_number} can't be imported: {error}") from error
    return _Decoded(line_number, line, kind, item, text(item, "PK"))


_TEXTS = {OBJECT: ("name", "text"), QUEUED_EVENT: ("queue", "body")}
"""The texts of the lines that are no items."""


def _check_texts(line: dict[str, Any], names: Sequence[str]) -> None:
    if line.keys() != {"type", *names} or not all(isinstance(line[name], str) for name in names):
        raise WrongLineError(f"it needs the texts {' and '.join(names)}, and no other field")
    "".join(line.values()).encode()
    if line["type"] == OBJECT:
        check_object_name(line["name"])
