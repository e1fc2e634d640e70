"""The statement of a wallet: all entries of its journal, oldest first, with the balance after each.

Entries are in the table for two days, then in the archive, whose objects have the entries of all
wallets by day. So a statement reads all objects since the wallet was opened, and keeps the entries
of the wallet in a temporary file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain

from chalicelib.storage.items import Item, number, text
from chalicelib.wallets.ledger import unknown
from chalicelib.wallets.wallet import ID, PARTITION, Entry
from vumi.errors import ReportedError
from vumi.journals import first_day, read_wallet
from vumi.operate.admin.installation import Installation


class StatementError(ReportedError):
    """There is no statement. The message says why."""


@dataclass(frozen=True, slots=True)
class StatementLine:
    """An entry, the change of the balance by it, and the balance after it."""

    entry: Entry
    change: int
    balance: int


@dataclass(frozen=True, slots=True)
class Statement:
    """The journal of a wallet, up to the moment at which its balance was read."""

    wallet_id: str
    balance: int
    last: str
    _entries: sqlite3.Connection

    def lines(self) -> Iterator[StatementLine]:
        """Yield the entries in the order in which they were posted."""
        balance = 0
        rows = self._entries.execute(
            "SELECT item FROM entries WHERE id <= ? ORDER BY id", (self.last,)
        )
        for (item,) in rows:
            entry = Entry.of(json.loads(item))
            amount = entry.posting.amount
            change = -amount if entry.posting.source == self.wallet_id else amount
            balance += change
            yield StatementLine(entry, change, balance)


@contextmanager
def open_statement(installation: Installation, wallet_id: str) -> Iterator[Statement]:
    """Collect the journal of a wallet.

    Raises `StatementError`, `StorageError` and `vumi.journals.UnreadableObjectError`.

    An entry moves from the table over the change log to the archive. They are read in this order,
    so each entry is found in one of them.
    """
    if ID.fullmatch(wallet_id) is None:
        raise StatementError(unknown(wallet_id))
    with closing(sqlite3.connect("", isolation_level=None)) as entries:
        entries.execute("CREATE TABLE entries (id TEXT PRIMARY KEY, item TEXT) WITHOUT ROWID")
        entries.execute("BEGIN")

        def add(item: Item) -> None:
            row = (Entry.of(item).entry_id, json.dumps(item))
            entries.execute("INSERT OR IGNORE INTO entries VALUES (?, ?)", row)

        wallet = read_wallet(installation.table, wallet_id, add)
        if wallet is None:
            raise StatementError(unknown(wallet_id))
        for item in _read_older(installation, wallet):
            add(item)
        yield Statement(wallet_id, number(wallet, "balance"), text(wallet, "last"), entries)


def _read_older(installation: Installation, wallet: Item) -> Iterator[Item]:
    """Yield the entries of a wallet that have left the table, some of them more than once."""
    wallet_id = text(wallet, "PK").removeprefix(PARTITION)
    yield from installation.removed_entries(wallet_id)
    objects = installation.archived(first_day(wallet))
    found = chain.from_iterable(one.entries(wallet_id) for one in objects)
    yield from (entry.item for entry in found if entry.wallet_id == wallet_id)
