"""The items of a table, collected for the checks across items. Both engines use it.

Items arrive by key: those of a partition one after the other, in the order of their sort keys.
A journal of a wallet consists of its entries in the table, in the change log and in the archive. An
entry may be in several of these, and more than once in the archive. It counts once.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import TypeAlias

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.history.history import is_finished
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Item, Key, number, text
from chalicelib.wallets.wallet import NONCE, PARTITION, Entry, Posting, PostingOutcome
from vumi.errors import plural
from vumi.journals import ArchivedObject, UnreadableObjectError
from vumi.operate import kinds
from vumi.operate.kinds import ItemKind, UnknownItemError, WrongItemError

EXAMPLES = 5
"""Findings of a kind that are reported one by one; the rest are only counted."""


class FindingKind(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WRONG = "wrong"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of a check."""

    kind: FindingKind
    message: str


ok = partial(Finding, FindingKind.OK)
"""Returns a finding about something that is correct."""
wrong = partial(Finding, FindingKind.WRONG)
"""Returns a finding about something that is wrong."""
note = partial(Finding, FindingKind.NOTE)
"""Returns a finding that the operator should know, although nothing is wrong."""


def all_wrong(messages: Iterable[str]) -> Iterator[Finding]:
    """Yield the first findings of a kind, then the number of the others."""
    left = iter(messages)
    yield from map(wrong, islice(left, EXAMPLES))
    if more := sum(1 for _ in left):
        yield wrong(f"and {more:,} more of this kind")


WrongWallet: TypeAlias = tuple[str, str]
"""The id of a wallet, and a message that says what is wrong with it."""


@dataclass(slots=True)
class Wallets:
    """The wallets, with a temporary database of their nonces and entries."""

    balances: dict[str, int] = field(default_factory=dict)
    lasts: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    _file: sqlite3.Connection = field(
        default_factory=lambda: sqlite3.connect("", isolation_level=None)
    )

    def __post_init__(self) -> None:
        self._file.execute(
            "CREATE TABLE moved (wallet TEXT, id TEXT, change INTEGER, asker TEXT, nonce TEXT,"
            " request TEXT, PRIMARY KEY (wallet, id)) WITHOUT ROWID"
        )
        self._file.execute(
            "CREATE TABLE nonces (asker TEXT, nonce TEXT, id TEXT, request TEXT,"
            " PRIMARY KEY (asker, nonce)) WITHOUT ROWID"
        )
        self._file.execute("BEGIN")

    def add(self, kind: ItemKind, item: Item) -> None:
        """Add an item, if it is part of a wallet."""
        if kind is kinds.WALLET:
            wallet_id = text(item, "PK").removeprefix(PARTITION)
            self.balances[wallet_id] = number(item, "balance")
            self.lasts[wallet_id] = text(item, "last")
            self.owners[wallet_id] = text(item, "user")
        elif kind is kinds.WALLET_OF_A_USER:
            self.users[text(item, "PK").partition("#")[2]] = text(item, "wallet")
        elif kind is kinds.ENTRY:
            self._add_entry(item)
        elif kind is kinds.NONCE and item["outcome"] == PostingOutcome.DONE:
            key = text(item, "PK").removeprefix(PARTITION), text(item, "SK").removeprefix(NONCE)
            row = (*key, text(item, "entry"), text(item, "request"))
            self._file.execute("INSERT OR REPLACE INTO nonces VALUES (?, ?, ?, ?)", row)

    def _add_entry(self, item: Item) -> None:
        entry, wallet_id = Entry.of(item), text(item, "PK").removeprefix(PARTITION)
        self._insert(wallet_id, entry.entry_id, entry.posting)

    def _insert(self, wallet_id: str, entry_id: str, posting: Posting) -> None:
        change = -posting.amount if wallet_id == posting.source else posting.amount
        row = (wallet_id, entry_id, change, posting.asker, posting.nonce, posting.digest)
        self._file.execute("INSERT OR IGNORE INTO moved VALUES (?, ?, ?, ?, ?, ?)", row)

    def add_archive(
        self, archived: Iterable[ArchivedObject], *, later_too: bool = True
    ) -> Iterator[str]:
        """Add the entries of the archive; yield a message for each object that can't be read.

        Without `later_too`, entries that are later than the last one of their wallet are left out:
        a restore of the table to an earlier time has undone them.
        """
        for archived_object in archived:
            try:
                for one in archived_object.entries():
                    if later_too or one.entry.entry_id <= self.lasts.get(one.wallet_id, ""):
                        self._insert(one.wallet_id, one.entry.entry_id, one.entry.posting)
            except UnreadableObjectError as error:
                yield str(error)

    def differences(self) -> Iterator[WrongWallet]:
        """Find wallets whose balance differs from the sum of their journal."""
        sums = dict.fromkeys(self.balances, 0)
        for wallet_id, change in self._file.execute("SELECT wallet, change FROM moved"):
            sums[wallet_id] = sums.get(wallet_id, 0) + change
        for wallet_id, moved in sums.items():
            if wallet_id not in self.balances:
                yield wallet_id, f"the wallet {wallet_id} has a journal but does not exist"
            elif (balance := self.balances[wallet_id]) != moved:
                yield (
                    wallet_id,
                    f"the wallet {wallet_id} has {balance}, but its journal adds up to {moved}",
                )

    def without_nonce(self) -> Iterator[WrongWallet]:
        """Find entries whose nonce would let the same request move the money again."""
        for wallet_id, entry_id, _, nonce in self._join_nonces():
            message = f"the entry {entry_id} of the wallet {wallet_id} differs from its nonce"
            yield wallet_id, f"{message} {nonce}"

    def missing_nonces(self) -> set[Key]:
        """Return the keys of the nonces of such entries."""
        rows = self._join_nonces()
        return {Key(PARTITION + asker, NONCE + nonce) for _, _, asker, nonce in rows}

    def _join_nonces(self) -> Iterable[tuple[str, str, str, str]]:
        return self._file.execute(
            "SELECT wallet, moved.id, asker, nonce FROM moved LEFT JOIN nonces USING (asker, nonce)"
            " WHERE (moved.id, moved.request) IS NOT (nonces.id, nonces.request)"
        )

    def disordered(self) -> Iterator[WrongWallet]:
        """Find wallets with an entry that is later than their last one."""
        rows = self._file.execute("SELECT wallet, max(id) FROM moved GROUP BY wallet")
        for wallet_id, entry_id in rows:
            if entry_id > (last := self.lasts.get(wallet_id, entry_id)):
                message = f"the last entry of the wallet {wallet_id} is {entry_id}, not {last!r}"
                yield wallet_id, message

    def misassigned(self) -> Iterator[WrongWallet]:
        """Find wallets that their user's item does not name, and named wallets that don't exist."""
        for wallet_id, user in self.owners.items():
            if (named := self.users.get(user)) != wallet_id:
                yield wallet_id, f"the wallet {wallet_id} is of {user}, whose wallet is {named}"
        for user, wallet_id in self.users.items():
            if wallet_id not in self.balances:
                yield wallet_id, f"the wallet {wallet_id} of user {user} does not exist"

    def check(self, *, has_archive: bool = True) -> Iterator[Finding]:
        """Report wrong users, nonces and orders of entries, and balances without their journal."""
        for found in (self.misassigned(), self.without_nonce(), self.disordered()):
            yield from all_wrong(message for _, message in found)
        differing = [message for _, message in self.differences()]
        if not differing:
            yield ok(
                f"wallets: each balance equals its journal ({plural(len(self.balances), 'wallet')})"
            )
        elif has_archive:
            yield from all_wrong(differing)
        else:
            yield note(
                f"{plural(len(differing), 'balance')} can't be compared with the journals: there is"
                " no archive, which has the entries older than two days"
            )

    def close(self) -> None:
        self._file.close()


StoredItem: TypeAlias = tuple[str, Callable[[], Item]]
"""The key of an item, for messages, and a function that decodes it."""


@dataclass(slots=True)
class Badges:
    """The badges of the file. Items arrive by key, so a badge's days come before its summary.

    `wrong` has a message for each badge that is wrong.
    """

    wrong: dict[str, str] = field(default_factory=dict)
    _days: tuple[str, list[Item]] = ("", [])

    def add(self, kind: ItemKind, item: Item) -> None:
        """Add the next item."""
        partition = text(item, "PK")
        if kind is kinds.DAY:
            if self._days[0] != partition:
                self._days = (partition, [])
            self._days[1].append(item)
        elif kind is kinds.BADGE:
            self._add_badge(item, self._days[1] if self._days[0] == partition else [])

    def _add_badge(self, item: Item, days: Iterable[Item]) -> None:
        """Compare the count with the history: the finished days of this life, and today."""
        summary = Summary.of(text(item, "PK").removeprefix(keys.PARTITION), item)
        finished = sum(number(day, "views") for day in days if is_finished(day, summary))
        if finished + summary.today.views != summary.count:
            self.wrong[summary.badge_id] = (
                f"the badge {summary.badge_id} has {plural(summary.count, 'view')}, but its history"
                f" has {finished + summary.today.views}"
            )


@dataclass(slots=True)
class Owners:
    """The digests of owners' secrets by badge, and the badges that are found by a digest."""

    digests: dict[str, str] = field(default_factory=dict)
    found: set[tuple[str, str]] = field(default_factory=set)

    def add(self, kind: ItemKind, item: Item) -> None:
        """Add an item, if it is about an owner."""
        pk, sk = text(item, "PK"), text(item, "SK")
        if kind is kinds.OWNER and (digest := text(item, "digest")):
            self.digests[pk.removeprefix(keys.PARTITION)] = digest
        elif kind is kinds.BADGE_OF_A_SECRET:
            self.found.add((pk.removeprefix(keys.KEY), sk.removeprefix(keys.OWNED)))

    def differing(self) -> list[str]:
        """Return the badges that are not found by the secret of their owner alone."""
        wanted = {(digest, badge_id) for badge_id, digest in self.digests.items()}
        return sorted({badge_id for _, badge_id in wanted ^ self.found})

    def forget(self, badge_id: str) -> set[str]:
        """Forget what was added about a badge, and return the digests that it was found by."""
        self.digests.pop(badge_id, None)
        found = {(digest, one) for digest, one in self.found if one == badge_id}
        self.found -= found
        return {digest for digest, _ in found}

    def check(self) -> Iterator[Finding]:
        """Report the badges of the owners that can't be listed, or that others can list."""
        yield from all_wrong(
            f"the badge {badge_id} is not among the badges of its owner's secret, or is among"
            " another one's"
            for badge_id in self.differing()
        )
        if self.digests and not self.differing():
            yield ok(f"owners: {plural(len(self.digests), 'badge')} can be listed by their secrets")


@dataclass(frozen=True, slots=True)
class Items:
    """The badges, owners and wallets among the items, and the number of items of each kind."""

    badges: Badges = field(default_factory=Badges)
    owners: Owners = field(default_factory=Owners)
    wallets: Wallets = field(default_factory=Wallets)
    kinds: Counter[str] = field(default_factory=Counter)

    def close(self) -> None:
        """Remove what was collected from the disk."""
        self.wallets.close()

    def check(self, stored: Iterable[StoredItem]) -> Iterator[Finding]:
        """Collect the items; report those that are wrong, and the counts of badges."""
        yield from self.collect(stored)
        yield from self.check_badges()
        yield from self.owners.check()

    def collect(self, stored: Iterable[StoredItem]) -> Iterator[Finding]:
        """Collect the items; report those that are wrong, and the number of each kind."""
        yield from all_wrong(self._collect(stored))
        counts = (f"{kind} {count:,}" for kind, count in sorted(self.kinds.items()))
        yield ok(f"items: {', '.join(counts) or 'none'}")

    def check_badges(self) -> Iterator[Finding]:
        """Report the badges whose count differs from their history."""
        yield from all_wrong(self.badges.wrong.values())
        if not self.badges.wrong:
            yield ok("badges: each count equals the sum of its history")

    def _collect(self, stored: Iterable[StoredItem]) -> Iterator[str]:
        """Collect the items, and yield a message for each item that is wrong."""
        for key, decode in stored:
            try:
                item = decode()
                kind = kinds.check(item)
            except UnknownItemError as error:
                yield str(error)
                continue
            except (StorageRefusedError, WrongItemError) as error:
                yield f"{key}: {error}"
                continue
            self.kinds[kind.name] += 1
            self.badges.add(kind, item)
            self.owners.add(kind, item)
            self.wallets.add(kind, item)
