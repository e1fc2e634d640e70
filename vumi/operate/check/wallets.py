"""The check of wallets: their balances, nonces and journals agree.

A wallet's journal consists of its entries in the table, in the change log and in the archive. An
entry may be in several of these, and more than once in the archive. It counts once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from chalicelib.storage.items import Item, Key, number, text
from chalicelib.wallets.wallet import ENTRY, NONCE, PARTITION, Entry, Posting, PostingOutcome
from vumi.errors import plural
from vumi.journals import ArchivedObject, UnreadableObjectError
from vumi.operate import kinds
from vumi.operate.check.report import Finding, all_wrong, note, ok
from vumi.operate.check.rows import decode
from vumi.operate.kinds import WALLET, WALLET_OF_A_USER, ItemKind, WrongItemError

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
        if kind is WALLET:
            wallet_id = text(item, "PK").removeprefix(PARTITION)
            self.balances[wallet_id] = number(item, "balance")
            self.lasts[wallet_id] = text(item, "last")
            self.owners[wallet_id] = text(item, "user")
        elif kind is WALLET_OF_A_USER:
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

    def add_changes(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Add entries that wait in the change log; yield a message for each malformed one."""
        rows = connection.execute("SELECT sequence, pk, sk, attributes FROM changes")
        for sequence, pk, sk, attributes in rows:
            try:
                item = decode(pk, sk, attributes)
                if sk.startswith(ENTRY):
                    self._add_entry(item)
            except (WrongItemError, TypeError, ValueError) as error:
                yield f"change {sequence} ({pk} {sk}): {error}"

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
