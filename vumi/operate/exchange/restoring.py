"""The import of an export, into the file of one machine or into a stack.

A group is imported if its head is missing here, and its head is written last. A group that is here
stays as it is. So an import that was interrupted is completed when it is run again, and one that
is repeated writes no group twice.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import chain, groupby, islice
from typing import Any

from chalicelib.counting import keys
from chalicelib.counting.view import Windows, marker_item
from chalicelib.events import schedule
from chalicelib.events.event import Event, Status
from chalicelib.settings import Feature
from chalicelib.storage.conditions import attr
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from chalicelib.storage.items import Item, Key, check_item, key_of, number, text
from chalicelib.storage.ports import check_object_name
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import MAX_TRANSACTION_WRITES, Check, ConditionFailedError, Put
from chalicelib.ulids import milliseconds
from chalicelib.units import to_milliseconds
from chalicelib.wallets import wallet as wallets
from vumi.errors import ReportedError
from vumi.operate import kinds
from vumi.operate.admin.installation import PATIENCE, Installation, batched
from vumi.operate.exchange.files import OBJECT, QUEUED_EVENT, ExportFile
from vumi.operate.kinds import ItemKind, WrongItemError

LISTED_ITEMS = 1_000
"""The items of a group that are kept in memory; those of a larger group are read as needed."""
SMALL_ITEMS = MAX_TRANSACTION_WRITES - 3
"""The items of a group that is one transaction: with its head, a check, and an item made here."""
BATCH_ITEMS = 2_000
"""Items that are imported in common commits, or in parallel."""
PART_GROUPS = 10
"""Groups in one part of a batch: on one machine, a commit has 100 parts."""
CHUNK_ITEMS = 100
TRIES = 10
"""A try fails if another process has written the group meanwhile."""


class RestoreOutcome(StrEnum):
    """The outcome of a group; its value is printed for the operator."""

    IMPORTED = "imported"
    SAME = "here already"
    KEPT = "kept"
    LEFT_OUT = "left out: --tokens imports them"


@dataclass(frozen=True, slots=True)
class Restored:
    """A group or a line, its outcome, and the reason if it was kept; `line` is its first line."""

    kind: str
    name: str
    line: int
    outcome: RestoreOutcome = RestoreOutcome.IMPORTED
    reason: str = ""


@dataclass(frozen=True, slots=True)
class GivenGroup:
    """A group of the file: its first line and its number, its head, and its other items.

    A line that is no item has an empty head. `more` has the items that do not fit into memory, or
    is None. They can be read once.
    """

    line: int
    fields: Mapping[str, Any]
    kind: ItemKind = kinds.BADGE
    head: Item = field(default_factory=dict)
    rest: Sequence[Item] = ()
    more: Iterator[Item] | None = None

    @property
    def name(self) -> str:
        """Return the id of the badge, event or wallet, or what the token or ban has for one."""
        start = self.kind.sort if self.kind.is_alone else self.kind.partition
        return self.kind.group_of(self.head).removeprefix(start)


@dataclass(frozen=True, slots=True)
class Restore:
    """The job that imports an export, API tokens only with `tokens`; a `dry_run` writes nothing."""

    installation: Installation
    dry_run: bool = False
    tokens: bool = False
    patience: Retry = PATIENCE

    def run(self, file: ExportFile) -> Iterator[Restored]:
        """Import all lines in order; yield each group after it is imported.

        Raises `ReportedError` and `StorageError`; run it again to import the rest.
        """
        batch: list[GivenGroup] = []
        items = 0
        for one in read_groups(file):
            if one.head and one.more is None:
                batch.append(one)
                items += 1 + len(one.rest)
                if items < BATCH_ITEMS:
                    continue
            yield from self._restore_batch(batch)
            batch, items = [], 0
            if not one.head:
                yield self._restore_line(one)
            elif one.more is not None:
                yield self._restore(one)
        yield from self._restore_batch(batch)

    def _restore_batch(self, batch: Sequence[GivenGroup]) -> Iterator[Restored]:
        def restore(part: Sequence[GivenGroup]) -> list[Restored]:
            return [self._restore(given) for given in part]

        parts, map_parallel = list(batched(batch, PART_GROUPS)), self.installation.map_parallel
        yield from chain.from_iterable(
            self.patience.call(lambda: list(map_parallel(restore, parts)))
        )

    def _restore(self, given: GivenGroup) -> Restored:
        """Import a group; decide again if another process has written it meanwhile."""
        for _ in range(TRIES if given.more is None else 1):
            decided = self._decide(given)
            if self.dry_run or decided.outcome is not RestoreOutcome.IMPORTED:
                return decided
            try:
                self._write(given)
            except ConditionFailedError:
                continue
            except StorageRefusedError as error:
                raise ReportedError(f"the {given.kind.name} {given.name}: {error}") from error
            self._enqueue(given)
            return decided
        raise UnavailableError(f"{given.name} was changed by other writes during its import")

    def _decide(self, given: GivenGroup) -> Restored:
        decided = partial(Restored, given.kind.name, given.name, given.line)
        if given.kind is kinds.TOKEN and not self.tokens:
            return decided(RestoreOutcome.LEFT_OUT)
        there = self.installation.table.get(key_of(given.head))
        if there == given.head:
            return decided(RestoreOutcome.SAME)
        reason = "it is here with other content" if there else self._find_conflict(given)
        return decided(RestoreOutcome.KEPT, reason) if reason else decided()

    def _find_conflict(self, given: GivenGroup) -> str:
        """Return why a group can't be imported: its user has another wallet, or it is a cycle."""
        table = self.installation.table
        if alias := text(given.head, "alias"):
            place = given.head if alias == given.name else table.get(keys.summary(alias))
            return f"its alias {alias} is an alias itself" if text(place or {}, "alias") else ""
        if given.kind is not kinds.WALLET:
            return ""
        user = text(given.head, "user")
        here = text(table.get(wallets.owner(user)) or {}, "wallet")
        return "" if here in {"", given.name} else f"the user {user} has the wallet {here} here"

    def _write(self, given: GivenGroup) -> None:
        """Write a group, its head last. Raises `ConditionFailedError` and `StorageRefusedError`."""
        last: dict[Key, Item] = {}
        table, latest = self.installation.table, 0
        for chunk in batched(chain(given.rest, given.more or ()), CHUNK_ITEMS):
            latest = max([latest, *map(_taken_at, filter(_is_view, chunk))])
            items = together = [self._with_ttl(item) for item in chunk]
            if given.more or len(given.rest) > SMALL_ITEMS:
                together = [item for item in items if _goes_with_head(item)]
                table.put_all([item for item in items if not _goes_with_head(item)])
            last |= {key_of(item): item for item in together}
        self._keep_view_time(max(latest, number(given.head, "watermark")))
        made = self._make_items(given, latest, last.get(keys.owner(given.name), {}))
        table.write(*_head_writes(given), *map(Put, [*last.values(), *made]))

    def _make_items(self, given: GivenGroup, latest: int, owner: Item) -> Iterator[Item]:
        """Make what an export leaves out.

        That is the wallet of a user, the badge of a secret, and the marker of the latest view,
        whose removal folds all.
        """
        if digest := text(owner, "digest"):
            yield keys.owned(digest, given.name).item()
        if given.kind is kinds.WALLET:
            yield wallets.owner(text(given.head, "user")).item(wallet=given.name)
        if latest:
            mark = self._windows.mark(latest)
            ttl = self._windows.marker_ttl(max(mark, int(self.installation.clock())))
            yield marker_item(given.name, mark, ttl)

    def _with_ttl(self, item: Item) -> Item:
        """Keep a view for the retention from now on, because it must be folded here."""
        if not _is_view(item):
            return item
        now = to_milliseconds(self.installation.clock())
        return {**item, "ttl": self._windows.view_ttl(max(_taken_at(item), now))}

    def _keep_view_time(self, latest: int) -> None:
        """Raise the clock of views here, if that of the badge was ahead of this machine's."""
        if latest > to_milliseconds(self.installation.clock()):
            self.installation.keep_view_time((latest + 1) / 1000)

    @property
    def _windows(self) -> Windows:
        return Windows.of(self.installation.settings)

    def _enqueue(self, given: GivenGroup) -> None:
        """Enqueue an active event that is due soon, because the sweep may have passed its time."""
        features = self.installation.settings.features
        if given.kind is not kinds.EVENT or Feature.EVENTS not in features:
            return
        event = Event.of(given.head)
        if event.status is Status.ACTIVE:
            now = to_milliseconds(self.installation.clock())
            schedule.enqueue_soon([event], self.installation.delivery_queue, now)

    def _restore_line(self, given: GivenGroup) -> Restored:
        """Import an object of the archive, or an event that waits in a queue."""
        kind, name, content = given.fields.values()
        if kind == OBJECT:
            body = gzip.compress(content.encode(), mtime=0)
            write = partial(self.installation.archive.put, name, body)
        elif queue := self.installation.event_queue(name):
            write = partial(queue.send, content)
        else:
            reason = f"EVENT_QUEUES has no queue {name} here"
            return Restored(kind, name, given.line, RestoreOutcome.KEPT, reason)
        if not self.dry_run:
            self.patience.call(write)
        return Restored(kind, name, given.line)


def _head_writes(given: GivenGroup) -> Iterator[Put | Check]:
    """Write a head, if its alias is no alias: so no order of imports makes a cycle."""
    yield Put(given.head, attr("SK").missing())
    if alias := text(given.head, "alias"):
        yield Check(keys.summary(alias), attr("alias").missing())


def _is_view(item: Item) -> bool:
    return text(item, "SK").startswith(kinds.VIEW.sort)


def _taken_at(view: Item) -> int:
    return milliseconds(text(view, "SK").removeprefix(kinds.VIEW.sort))


def _goes_with_head(item: Item) -> bool:
    """Return whether an item is written together with the head, because it acts on its own."""
    return text(item, "SK") in {kinds.OWNER.sort, kinds.MILESTONES.sort}


def read_groups(file: ExportFile) -> Iterator[GivenGroup]:
    """Yield the groups of a file, and its other lines. Raises `ReportedError`.

    The items of a large group are read when they are needed, and must be before the next group.
    """
    decoded = (_decode(number, line) for number, line in file.lines())
    for group, members in groupby(decoded, lambda one: one.head and one.kind.group_of(one.head)):
        if not group:
            yield from members
            continue
        first = next(members)
        if first.kind not in kinds.HEADS:
            raise ReportedError(
                f"line {first.line}: the {first.kind.name} is of no badge or wallet before it"
            )
        items = (member.head for member in members)  # noqa: B031  the rest of the same members
        rest = list(islice(items, LISTED_ITEMS))
        more = items if len(rest) == LISTED_ITEMS else None
        yield replace(first, rest=rest, more=more)


def _decode(number: int, line: dict[str, Any]) -> GivenGroup:
    try:
        if line.get("type") in _TEXTS:
            return GivenGroup(number, _check_texts(line, _TEXTS[line["type"]]))
        kind, item = kinds.item_of(line)
        check_item(item)
        f"{item.get('alias')}{item.get('user')}".encode()  # SQLite looks up keys as UTF-8
        kinds.check(item)
    except (StorageError, WrongItemError, ReportedError, ValueError) as error:
        raise ReportedError(f"line {number} can't be imported: {error}") from error
    return GivenGroup(number, line, kind, item)


_TEXTS = {OBJECT: ("name", "text"), QUEUED_EVENT: ("queue", "body")}
"""The texts of the lines that are no items."""


def _check_texts(line: Mapping[str, Any], names: Sequence[str]) -> dict[str, str]:
    """Return a line of texts with its type first. Raises `ReportedError` and `ValueError`."""
    if line.keys() != {"type", *names} or not all(isinstance(line[name], str) for name in names):
        raise ReportedError(f"it needs the texts {' and '.join(names)}, and no other field")
    "".join(line.values()).encode()
    if line["type"] == OBJECT:
        check_object_name(line["name"])
    return {name: line[name] for name in ("type", *names)}
