"""The checks across the items of a table, which a temporary file collects. Both engines use them.

A scan of a stack's table, which others write meanwhile, finds suspects: badges whose count differs
from their history, and wallets whose balance differs from their journal. Each is read again,
consistently by itself. Entries that TTL has removed reach the archive minutes later, so the check
waits for them before it reports a balance as wrong.

Items arrive by key: those of a partition one after the other, in the order of their sort keys.
A journal of a wallet consists of its entries in the table, in the change log and in the archive. An
entry may be in several of these, and more than once in the archive. It counts once.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import chain, islice
from typing import TypeAlias

from chalicelib.counting import keys
from chalicelib.counting.summary import Summary
from chalicelib.history.history import is_finished
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Item, Key, number, text
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.wallet import NONCE, PARTITION, Entry, PostingOutcome
from vumi.errors import ReportedError, plural
from vumi.journals import ArchivedObject, query_all, read_wallet
from vumi.operate import kinds
from vumi.operate.kinds import ItemKind, WrongItemError

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


SCHEMA = """
CREATE TABLE owned (badge TEXT PRIMARY KEY, digest TEXT) WITHOUT ROWID;
CREATE TABLE listed (badge TEXT, digest TEXT, PRIMARY KEY (badge, digest)) WITHOUT ROWID;
CREATE TABLE wallets (wallet TEXT PRIMARY KEY, balance INTEGER, last TEXT, user TEXT) WITHOUT ROWID;
CREATE TABLE users (user TEXT PRIMARY KEY, named TEXT) WITHOUT ROWID;
CREATE TABLE nonces (
    asker TEXT, nonce TEXT, id TEXT, request TEXT, PRIMARY KEY (asker, nonce)
) WITHOUT ROWID;
CREATE TABLE moved (
    wallet TEXT, id TEXT, change INTEGER, asker TEXT, nonce TEXT, request TEXT,
    PRIMARY KEY (wallet, id)
) WITHOUT ROWID;
BEGIN
"""
"""The owners by badge, the badges by secret, the wallets, and their users, nonces and entries."""
ADDITIONS = {
    kinds.OWNER.name: "INSERT OR REPLACE INTO owned SELECT :pk, :digest WHERE :digest != ''",
    kinds.BADGE_OF_A_SECRET.name: "INSERT OR REPLACE INTO listed VALUES (:sk, :pk)",
    kinds.WALLET.name: "INSERT OR REPLACE INTO wallets VALUES (:pk, :balance, :last, :user)",
    kinds.WALLET_OF_A_USER.name: "INSERT OR REPLACE INTO users VALUES (:pk, :wallet)",
    kinds.NONCE.name: "INSERT OR REPLACE INTO nonces SELECT :pk, :sk, :entry, :request"
    f" WHERE :outcome = '{PostingOutcome.DONE}'",
}
"""The statement that adds an item of a kind: `pk` and `sk` are its keys without their prefixes."""
ADD_ENTRY = "INSERT OR IGNORE INTO moved SELECT ?, ?, ?, ?, ?, ?"
ADD_EARLIER_ENTRY = f"{ADD_ENTRY} WHERE ?2 <= (SELECT last FROM wallets WHERE wallet = ?1)"  # noqa: S608  fixed texts


@dataclass(frozen=True, slots=True)
class Rule:
    """A query for what breaks a rule, with its id first, and the message about a row."""

    sql: str
    message: str


UNLISTED = Rule(
    "SELECT badge FROM (SELECT * FROM owned EXCEPT SELECT * FROM listed)"
    " UNION SELECT badge FROM (SELECT * FROM listed EXCEPT SELECT * FROM owned)",
    "the badge {} is not among the badges of its owner's secret, or is among another one's",
)
"""A badge is found by the secret of its owner, and by no other."""
MISNAMED = Rule(
    "SELECT wallet, user, named FROM wallets LEFT JOIN users USING (user)"
    " WHERE named IS NOT wallet",
    "the wallet {} is of {}, whose wallet is {}",
)
MISSING = Rule(
    "SELECT named, user FROM users WHERE named NOT IN (SELECT wallet FROM wallets)",
    "the wallet {} of user {} does not exist",
)
WITHOUT_NONCE = Rule(
    "SELECT wallet, moved.id, asker, nonce FROM moved LEFT JOIN nonces USING (asker, nonce)"
    " WHERE (moved.id, moved.request) IS NOT (nonces.id, nonces.request)",
    "the entry {1} of the wallet {0} differs from its nonce {3}",
)
"""Without its nonce, the same request would move the money again."""
DISORDERED = Rule(
    "SELECT wallet, max(id), last FROM moved JOIN wallets USING (wallet)"
    " GROUP BY wallet HAVING max(id) > last",
    "the last entry of the wallet {} is {}, not {!r}",
)


def compare_with_history(summary: Summary, days: Iterable[Item]) -> str:
    """Return a message if a count is not that of the finished days of this life, and of today."""
    finished = sum(number(day, "views") for day in days if is_finished(day, summary))
    if (history := finished + summary.today.views) == summary.count:
        return ""
    views = plural(summary.count, "view")
    return f"the badge {summary.badge_id} has {views}, but its history has {history}"


StoredItem: TypeAlias = tuple[str, Callable[[], Item]]
"""The key of an item, for messages, and a function that decodes it."""


class Items:
    """The items that were added, and the number of each kind.

    `wrong_badges` has a message for each badge whose count differs from its history.
    """

    def __init__(self, counted: Mapping[str, int] | None = None) -> None:
        self.kinds = Counter(counted)
        self.wrong_badges: dict[str, str] = {}
        self._days: dict[str, list[Item]] = {}
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.executescript(SCHEMA)

    def close(self) -> None:
        """Remove what was collected from the disk."""
        self._file.close()

    def add(self, kind: ItemKind, item: Item) -> None:
        """Add the next item: a badge's days come before its summary."""
        pk = text(item, "PK").removeprefix(kind.partition)
        if kind is kinds.DAY:
            if pk not in self._days:
                self._days = {pk: []}
            self._days[pk].append(item)
        elif kind is kinds.BADGE:
            if message := compare_with_history(Summary.of(pk, item), self._days.get(pk, ())):
                self.wrong_badges[pk] = message
        elif kind is kinds.ENTRY:
            self._add_entry(ADD_ENTRY, pk, Entry.of(item))
        elif addition := ADDITIONS.get(kind.name):
            key = {"pk": pk, "sk": text(item, "SK").removeprefix(kind.sort)}
            self._file.execute(addition, {"digest": "", "last": "", **item, **key})

    def _add_entry(self, addition: str, wallet_id: str, entry: Entry) -> None:
        posting = entry.posting
        change = -posting.amount if wallet_id == posting.source else posting.amount
        row = (wallet_id, entry.entry_id, change, posting.asker, posting.nonce, posting.digest)
        self._file.execute(addition, row)

    def add_archive(
        self, archived: Iterable[ArchivedObject], *, later_too: bool = True
    ) -> Iterator[str]:
        """Add the entries of the archive; yield a message for each object that can't be read.

        Without `later_too`, entries that are later than the last one of their wallet are left out:
        a restore of the table to an earlier time has undone them.
        """
        addition = ADD_ENTRY if later_too else ADD_EARLIER_ENTRY
        for archived_object in archived:
            try:
                for wallet_id, entry in archived_object.entries():
                    self._add_entry(addition, wallet_id, entry)
            except ReportedError as error:
                yield str(error)

    def forget_owner(self, badge_id: str) -> set[str]:
        """Forget who owns a badge, and return the digests that it was found by."""
        found = self._file.execute("SELECT digest FROM listed WHERE badge = ?", (badge_id,))
        digests = {digest for (digest,) in found}
        for table in ("owned", "listed"):
            self._file.execute(f"DELETE FROM {table} WHERE badge = ?", (badge_id,))  # noqa: S608  fixed names
        return digests

    def find(self, *rules: Rule) -> Iterator[tuple[str, str]]:
        """Yield the id of each item that breaks a rule, and the message about it."""
        for rule in rules:
            for row in self._file.execute(rule.sql):
                yield row[0], rule.message.format(*row)

    def missing_nonces(self) -> set[Key]:
        """Return the keys of the nonces that entries need."""
        rows = self._file.execute(WITHOUT_NONCE.sql)
        return {Key(PARTITION + asker, NONCE + nonce) for _, _, asker, nonce in rows}

    def differences(self) -> Iterator[tuple[str, str]]:
        """Yield the id of each wallet whose balance differs from its journal, and the message."""
        balances = dict(self._file.execute("SELECT wallet, balance FROM wallets"))
        sums = Counter(dict.fromkeys(balances, 0))
        for wallet_id, change in self._file.execute("SELECT wallet, change FROM moved"):
            sums[wallet_id] += change  # SQLite's sum could overflow
        for wallet_id, moved in sums.items():
            if wallet_id not in balances:
                yield wallet_id, f"the wallet {wallet_id} has a journal but does not exist"
            elif (balance := balances[wallet_id]) != moved:
                found = f"has {balance}, but its journal adds up to {moved}"
                yield wallet_id, f"the wallet {wallet_id} {found}"

    def collect(self, stored: Iterable[StoredItem]) -> Iterator[Finding]:
        """Collect the items; report those that are wrong, and the number of each kind."""
        yield from all_wrong(self._collect(stored))
        counts = (f"{kind} {count:,}" for kind, count in sorted(self.kinds.items()))
        yield ok(f"items: {', '.join(counts) or 'none'}")

    def _collect(self, stored: Iterable[StoredItem]) -> Iterator[str]:
        """Collect the items, and yield a message for each item that is wrong."""
        for key, decode in stored:
            try:
                item = decode()
                kind = kinds.check(item)
            except ReportedError as error:
                yield str(error)
            except (StorageRefusedError, WrongItemError) as error:
                yield f"{key}: {error}"
            else:
                self.kinds[kind.name] += 1
                self.add(kind, item)

    def check_badges(self) -> Iterator[Finding]:
        """Report the badges whose count differs from their history."""
        yield from all_wrong(self.wrong_badges.values())
        if not self.wrong_badges:
            yield ok("badges: each count equals the sum of its history")

    def check_owners(self) -> Iterator[Finding]:
        """Report the badges of the owners that can't be listed, or that others can list."""
        findings = list(all_wrong(message for _, message in self.find(UNLISTED)))
        [(owned,)] = self._file.execute("SELECT count(*) FROM owned")
        if owned and not findings:
            yield ok(f"owners: {plural(owned, 'badge')} can be listed by their secrets")
        yield from findings

    def check_wallets(self, *, has_archive: bool = True) -> Iterator[Finding]:
        """Report wrong users, nonces and orders of entries, and balances without their journal."""
        for rules in ((MISNAMED, MISSING), (WITHOUT_NONCE,), (DISORDERED,)):
            yield from all_wrong(message for _, message in self.find(*rules))
        differing = [message for _, message in self.differences()]
        if not differing:
            [(count,)] = self._file.execute("SELECT count(*) FROM wallets")
            yield ok(f"wallets: each balance equals its journal ({plural(count, 'wallet')})")
        elif has_archive:
            yield from all_wrong(differing)
        else:
            yield note(
                f"{plural(len(differing), 'balance')} can't be compared with the journals: there is"
                " no archive, which has the entries older than two days"
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
