"""The check of a table that others write meanwhile, which no scan reads at one moment.

The scan finds suspects: badges whose count differs from their history, and wallets whose balance
differs from their journal. Each is read again, consistently by itself. Entries that TTL has removed
reach the archive minutes later, so the check waits for them before it reports a balance as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.storage.items import number, text
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds
from chalicelib.wallets import wallet as wallets
from vumi.errors import plural
from vumi.journals import ArchivedObject, query_all, read_wallet
from vumi.operate import kinds
from vumi.operate.check.items import (
    DISORDERED,
    MISNAMED,
    MISSING,
    UNLISTED,
    Finding,
    Items,
    StoredItem,
    all_wrong,
    compare_with_history,
    note,
)

MAX_READS = 10
"""Attempts to read a badge between two of its writes."""
PAUSE: Seconds = 30.0
PAUSES = 30
"""Together 15 minutes, which is longer than an entry takes from the table to the archive."""


@dataclass(frozen=True, slots=True)
class LiveCheck:
    """The check of a table; `archived` lists the objects of the archive, if it has one."""

    table: Table
    archived: Callable[[], Iterable[ArchivedObject]] | None
    pause: Callable[[Seconds], None]
    _read: set[str] = field(default_factory=set)

    def check(self, stored: Iterable[StoredItem]) -> Iterator[Finding]:
        """Check the items of a scan. Raises `StorageError`."""
        with closing(Items()) as items:
            yield from items.collect(stored)
            yield from self._check_badges(items)
            yield from self._check_owners(items)
            yield from self._check_wallets(items)

    def _check_badges(self, items: Items) -> Iterator[Finding]:
        for badge_id in list(items.wrong_badges):
            message = read_badge(self.table, badge_id)
            if message:
                items.wrong_badges[badge_id] = message
                continue
            del items.wrong_badges[badge_id]
            if message is None:
                yield note(f"the badge {badge_id} changes too fast to be checked")
        yield from items.check_badges()

    def _check_owners(self, items: Items) -> Iterator[Finding]:
        for badge_id, _ in list(items.find(UNLISTED)):
            seen = items.forget_owner(badge_id)
            if owner := self.table.get(keys.owner(badge_id)):
                items.add(kinds.OWNER, owner)
                seen.add(text(owner, "digest"))
            for one in self.table.get_all([keys.owned(digest, badge_id) for digest in seen]):
                items.add(kinds.BADGE_OF_A_SECRET, one)
        yield from items.check_owners()

    def _check_wallets(self, items: Items) -> Iterator[Finding]:
        yield from all_wrong(self._add_archive(items))
        self._read_suspects(items)
        differing = len(list(items.differences()))
        if differing and self.archived is not None:
            yield note(f"entries of {plural(differing, 'balance')} are on their way to the archive")
            for _ in range(PAUSES):
                self.pause(PAUSE)
                yield from all_wrong(self._add_archive(items))
                if not any(items.differences()):
                    break
        yield from items.check_wallets(has_archive=self.archived is not None)

    def _add_archive(self, items: Items) -> Iterator[str]:
        """Add the objects that were not read before."""
        for one in self.archived() if self.archived else ():
            if one.name not in self._read:
                self._read.add(one.name)
                yield from items.add_archive([one], later_too=False)

    def _read_suspects(self, items: Items) -> None:
        """Read again the wallets that seem wrong, their users, and nonces that seem missing."""
        suspects = chain(items.differences(), items.find(DISORDERED, MISNAMED, MISSING))
        for wallet_id in {wallet_id for wallet_id, _ in suspects}:
            wallet = read_wallet(self.table, wallet_id, partial(items.add, kinds.ENTRY))
            if wallet is not None:
                items.add(kinds.WALLET, wallet)
                user = self.table.get(wallets.owner(text(wallet, "user")))
                if user is not None:
                    items.add(kinds.WALLET_OF_A_USER, user)
        for nonce in self.table.get_all(list(items.missing_nonces())):
            items.add(kinds.NONCE, nonce)


def read_badge(table: Table, badge_id: str) -> str | None:
    """Return what is wrong with a badge, "" if nothing is, or None if it changes too fast.

    Every write of a summary increments its version, and a finished day is written before it.
    """
    for _ in range(MAX_READS):
        before = table.get(keys.summary(badge_id)) or {}
        days = list(query_all(table, keys.partition(badge_id), keys.DAY, f"{keys.DAY}~"))
        if number(table.get(keys.summary(badge_id)) or {}, "version") == number(before, "version"):
            return compare_with_history(Summary.of(badge_id, before), days) if before else ""
    return None
