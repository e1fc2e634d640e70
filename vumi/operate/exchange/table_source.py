"""The content of a stack, whose table has no common moment, while others write.

A badge is read with all its names between two reads of their summaries, until both are the same. So
no fold, count or owner's request comes in between: each view is in the count that was read, or it
is later than the watermark that was read.

Wallets are read as of one moment, the cut. The entries of a wallet are committed in the order of
their ids, and both sides of a transfer have one id. So the entries up to the cut, without those
after it, are a state that the wallets had: a posting in it has all earlier ones of its wallets. The
cut is later than the start by the longest difference of clocks, so that a posting that was answered
before the start is before the cut. The wallets are read when no posting of before the cut can be
under way:

    start           cut                         wallets are read
    |---- clocks ---|---- clocks + a posting ---|----------------> time
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, islice
from tempfile import TemporaryFile

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.counting.view import earliest
from chalicelib.owners.finding import OwnedBadge
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Item, Key, key_of, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.retry import Retry
from chalicelib.units import Seconds, to_milliseconds
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.wallet import Entry
from vumi.journals import query_all
from vumi.operate.admin.importing import PATIENCE
from vumi.operate.admin.installation import Installation
from vumi.operate.admin.source import Group, QueuedEvent, StoredObject, new_summary
from vumi.operate.exchange import formats
from vumi.operate.exchange.formats import BADGE, ENTRY, HEADS, NONCE, WALLET

BATCH_PARTITIONS = 100
TRIES = 50
"""A try fails if another process has written the badge or the wallet meanwhile."""
UNLIMITED = 1_000_000
CLOCKS_SECONDS = 100
"""The maximum difference between the clocks of two processes that post."""
POSTING_SECONDS = 30
"""Longer than a posting takes, from its id to its commit."""
AFTER_EVERY_ID = "~"


class TableSource:
    """The `source.Source` of an installation, which reads each item by its table."""

    engine = "AWS"

    def __init__(
        self,
        installation: Installation,
        objects: Iterable[StoredObject] = (),
        sleep: Callable[[Seconds], None] = time.sleep,
        patience: Retry = PATIENCE,
    ) -> None:
        """Read an installation; `objects` are those of its archive."""
        self._installation = installation
        self._objects = objects
        self._sleep = sleep
        self._patience = patience
        self._cut_at = installation.clock() + CLOCKS_SECONDS

    def groups(self) -> Iterator[Group]:
        with closing(TemporaryFile("w+", encoding="utf-8")) as found:
            yield from self._read_all(lambda wallet_id: found.write(f"{wallet_id}\n"))
            found.seek(0)
            yield from self._read_wallets(line.rstrip("\n") for line in found)

    def objects(self) -> Iterator[StoredObject]:
        yield from self._objects

    def queued_events(self) -> Iterator[QueuedEvent]:
        """Yield nothing: a queue on AWS is the operator's own, and stays."""
        yield from ()

    def left_out(self) -> Sequence[str]:
        return ()

    def _read_all(self, add_wallet: Callable[[str], object]) -> Iterator[Group]:
        """Yield all groups but wallets, whose ids are added."""
        done: set[str] = set()
        left = groupby(self._installation.items(), lambda item: text(item, "PK"))
        partitions = (_find_head(items) for _, items in left)
        heads = (head for head in partitions if head is not None)
        while batch := list(islice(heads, BATCH_PARTITIONS)):
            others = []
            for key in batch:
                if key.pk.startswith(WALLET.partition):
                    add_wallet(key.pk.removeprefix(WALLET.partition))
                else:
                    others.append(key)
            for groups in self._map(self._read, others):
                yield from _take_new(groups, done)

    def _map(
        self, read: Callable[[Key], Sequence[Group]], heads: Sequence[Key]
    ) -> Iterable[Sequence[Group]]:
        def read_patiently(head: Key) -> Sequence[Group]:
            return self._patience.call(partial(read, head))

        return self._installation.map_parallel(read_patiently, heads)

    def _read(self, key: Key) -> Sequence[Group]:
        """Return the groups of a badge, one for each name, or the one of an event or token."""
        if key.pk.startswith(BADGE.partition):
            reader = BadgeReader(self._installation.table)
            return reader.read(key.pk.removeprefix(BADGE.partition))
        item = self._installation.table.get(key)
        return [Group(item)] if item else []

    def _read_wallets(self, wallet_ids: Iterator[str]) -> Iterator[Group]:
        reader = WalletReader(self._installation.table, earliest(to_milliseconds(self._cut_at)))
        while batch := [wallets.wallet(one) for one in islice(wallet_ids, BATCH_PARTITIONS)]:
            self._wait_for_wallets()
            for groups in self._map(reader.read, batch):
                yield from groups

    def _wait_for_wallets(self) -> None:
        wait = self._cut_at + CLOCKS_SECONDS + POSTING_SECONDS - self._installation.clock()
        if wait > 0:
            self._sleep(wait)


def _find_head(items: Iterator[Item]) -> Key | None:
    """Return the key of the head of a partition, or None if nothing of it moves."""
    for item in items:
        kind = formats.kind_of(item)
        if kind is None:
            return None
        head = next(one for one in HEADS if one.partition == kind.partition)
        return Key(text(item, "PK"), head.sort)
    return None


def _take_new(groups: Sequence[Group], done: set[str]) -> Iterator[Group]:
    """Yield the groups of a badge unless another name of it had them; remember several names."""
    names = {group.key.pk for group in groups}
    if names & done:
        return
    if len(names) > 1:
        done |= names
    yield from groups


@dataclass(frozen=True, slots=True)
class BadgeReader:
    """The reader of badges with all their names."""

    table: Table

    def read(self, badge_id: str) -> list[Group]:
        """Return the groups of all names of a badge. Raises `StorageError`."""
        for _ in range(TRIES):
            names = self._find_names(badge_id)
            before = self._read_summaries(names)
            if badge_id not in names or not _is_one_badge(before, names):
                continue
            groups = [self._read_name(before.get(keys.summary(name)), name) for name in names]
            if self._find_names(badge_id) == names and self._read_summaries(names) == before:
                return [group for group in groups if group]
        raise Unavailable(f"{badge_id} was changed by {TRIES} other writes; try again")

    def _find_names(self, badge_id: str) -> list[str]:
        """Return the names of the badge that has this name, its partition first."""
        own = self.table.get(keys.summary(badge_id)) or {}
        place = text(own, "alias") or badge_id
        owner = self.table.get(keys.owner(place))
        return [place, *OwnedBadge.of(place, owner).aliases] if owner else [place]

    def _read_summaries(self, names: Sequence[str]) -> dict[Key, Item]:
        found = self.table.get_all([keys.summary(name) for name in names])
        return {key_of(item): item for item in found}

    def _read_name(self, head: Item | None, name: str) -> Group | None:
        """Read the live views of a name, its owner and its days."""
        partition, watermark = keys.partition(name), Summary.of(name, head or {}).watermark
        views = self.table.query(
            partition,
            first=keys.VIEW + earliest(watermark + 1),
            last=keys.VIEW + AFTER_EVERY_ID,
            limit=UNLIMITED,
            attributes=("PK", "SK"),
        )
        others = self.table.query(partition, last=keys.OWNER, limit=UNLIMITED)
        if not (head or views or others):
            return None
        first = text(views[0], "SK").removeprefix(keys.VIEW) if views else ""
        return Group(head or new_summary(name, first), [*others, *views])


def _is_one_badge(summaries: Mapping[Key, Item], names: Sequence[str]) -> bool:
    """Return whether all names but the first are aliases of the first."""
    place, *aliases = names
    found = [summaries.get(keys.summary(name), {}) for name in aliases]
    is_place = not text(summaries.get(keys.summary(place), {}), "alias")
    return is_place and all(text(item, "alias") == place for item in found)


@dataclass(frozen=True, slots=True)
class WalletReader:
    """The reader of wallets as they were at the cut, a ULID."""

    table: Table
    cut: str

    def read(self, key: Key) -> list[Group]:
        """Return the group of a wallet. Raises `StorageError`."""
        for _ in range(TRIES):
            head = self.table.get(key)
            if head is None:
                return []
            later = self._read_later(key.pk)
            if self.table.get(key) == head and _is_complete(head, later, self.cut):
                rest = chain(self._read_kept(key.pk, NONCE), self._read_kept(key.pk, ENTRY))
                return [Group(self._undo(head, later), rest)]
        raise Unavailable(f"{key.pk} was changed by {TRIES} other writes; try again")

    def _read_later(self, pk: str) -> dict[str, Entry]:
        """Return the entries of after the cut by their ids."""
        items = self.table.query(
            pk,
            first=ENTRY.sort + self.cut,
            last=ENTRY.sort + AFTER_EVERY_ID,
            limit=UNLIMITED,
        )
        entries = [Entry.of(item) for item in items]
        return {entry.entry_id: entry for entry in entries}

    def _undo(self, head: Item, later: Mapping[str, Entry]) -> Item:
        """Return a wallet as it was before the later entries."""
        last, wallet_id = text(head, "last"), text(head, "PK").removeprefix(WALLET.partition)
        applied = [entry.posting for entry_id, entry in later.items() if entry_id <= last]
        change = sum(-one.amount if one.source == wallet_id else one.amount for one in applied)
        return {
            **head,
            "balance": number(head, "balance") - change,
            "last": min(self.cut, last),
        }

    def _read_kept(self, pk: str, kind: formats.ItemKind) -> Iterator[Item]:
        """Return the nonces or the entries of before the cut, a page at a time.

        They do not change, so they need not be read together with the wallet.
        """
        items = query_all(self.table, pk, kind.sort, kind.sort + "\U0010ffff")
        return (item for item in items if _entry_id(item) < self.cut)


def _entry_id(item: Item) -> str:
    """Return the id of the entry that an item is, or that a nonce made or refused."""
    return text(item, "entry") or text(item, "SK").removeprefix(ENTRY.sort)


def _is_complete(head: Item, later: Mapping[str, Entry], cut: str) -> bool:
    """Return whether the last entry was read: a transaction is visible item by item."""
    last = text(head, "last")
    return last < cut or last in later
