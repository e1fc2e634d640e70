"""Checks of the wallets: their balances, nonces and journals agree.

The journal of a wallet is its entries in the archive, in the change log and in the table. An entry
may be in several of these, and more than once in the archive; a wallet has it once.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from chalicelib.storage.items import Item, number, text
from chalicelib.wallets.wallet import ENTRY, NONCE, PARTITION, Entry, Outcome, Posting
from vumi.check.report import Finding, all_wrong, note, ok
from vumi.check.rows import Wrong, decoded
from vumi.storage.archive import FOLDER

MALFORMED = "malformed"


@dataclass(slots=True)
class Wallets:
    """The wallets, and a temporary file with the nonces and what moved."""

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

    def take(self, kind: str, item: Item) -> None:
        """Gather what an item says."""
        if kind == "wallet":
            wallet_id = text(item, "PK").removeprefix(PARTITION)
            self.balances[wallet_id] = number(item, "balance")
            self.lasts[wallet_id] = text(item, "last")
            self.owners[wallet_id] = text(item, "user")
        elif kind == "wallet of a user":
            self.users[text(item, "PK").partition("#")[2]] = text(item, "wallet")
        elif kind == "entry":
            self._take_entry(item)
        elif kind == "nonce" and item["outcome"] == Outcome.DONE:
            key = text(item, "PK").removeprefix(PARTITION), text(item, "SK").removeprefix(NONCE)
            row = (*key, text(item, "entry"), text(item, "request"))
            self._file.execute("INSERT INTO nonces VALUES (?, ?, ?, ?)", row)

    def _take_entry(self, item: Item) -> None:
        entry, wallet_id = Entry.of(item), text(item, "PK").removeprefix(PARTITION)
        self._add(wallet_id, entry.entry_id, entry.posting)

    def _add(self, wallet_id: str, entry_id: str, posting: Posting) -> None:
        change = -posting.amount if wallet_id == posting.source else posting.amount
        row = (wallet_id, entry_id, change, posting.asker, posting.nonce, posting.digest)
        self._file.execute("INSERT OR IGNORE INTO moved VALUES (?, ?, ?, ?, ?, ?)", row)

    def take_changes(self, connection: sqlite3.Connection) -> Iterator[str]:
        """Entries that were removed and may not be archived yet; returns what does not decode."""
        rows = connection.execute("SELECT sequence, pk, sk, attributes FROM changes")
        for sequence, pk, sk, attributes in rows:
            try:
                item = decoded(pk, sk, attributes)
                if sk.startswith(ENTRY):
                    self._take_entry(item)
            except (Wrong, TypeError, ValueError) as error:
                yield f"change {sequence} ({pk} {sk}): {error}"

    def take_archive(self, folder: Path) -> Iterator[str]:
        """Every line of every object; returns the objects that can't be read."""
        for path in sorted(folder.rglob("*.jsonl.gz")):
            if path.parent.name != MALFORMED:
                try:
                    self._take_object(path)
                except (OSError, EOFError, zlib.error, KeyError, TypeError, ValueError) as error:
                    yield f"{path} can't be read: {error}"

    def _take_object(self, path: Path) -> None:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                told = json.loads(line)
                amount = int(told["amount"])
                posting = Posting(told["nonce"], amount, told["to"], told["from"])
                self._add(told["wallet"], told["id"], posting)

    def differences(self) -> Iterator[str]:
        """Wallets whose balance is not what moved."""
        sums = dict.fromkeys(self.balances, 0)
        for wallet_id, change in self._file.execute("SELECT wallet, change FROM moved"):
            sums[wallet_id] = sums.get(wallet_id, 0) + change
        for wallet_id, moved in sums.items():
            if wallet_id not in self.balances:
                yield f"there is no wallet {wallet_id}, but it has a journal"
            elif (balance := self.balances[wallet_id]) != moved:
                yield f"the wallet {wallet_id} has {balance}, by its journal {moved}"

    def without_nonce(self) -> Iterator[str]:
        """Find entries whose nonce would let the same request move the money again."""
        rows = self._file.execute(
            "SELECT wallet, moved.id, nonce FROM moved LEFT JOIN nonces USING (asker, nonce)"
            " WHERE (moved.id, moved.request) IS NOT (nonces.id, nonces.request)"
        )
        for wallet_id, entry_id, nonce in rows:
            yield f"the entry {entry_id} of the wallet {wallet_id} is not that of its nonce {nonce}"

    def disordered(self) -> Iterator[str]:
        """Find wallets with an entry that is later than their last one."""
        rows = self._file.execute("SELECT wallet, max(id) FROM moved GROUP BY wallet")
        for wallet_id, entry_id in rows:
            if entry_id > (last := self.lasts.get(wallet_id, entry_id)):
                yield f"the last entry of the wallet {wallet_id} is {entry_id}, it says {last!r}"

    def strangers(self) -> Iterator[str]:
        """Wallets that their users do not find."""
        for wallet_id, user in self.owners.items():
            if self.users.get(user) != wallet_id:
                yield f"the wallet {wallet_id} is of user {user}, who has {self.users.get(user)}"
        for user, wallet_id in self.users.items():
            if wallet_id not in self.balances:
                yield f"there is no wallet {wallet_id}, the one of user {user}"

    def close(self) -> None:
        self._file.close()


def check(connection: sqlite3.Connection, wallets: Wallets, folder: Path) -> Iterator[Finding]:
    """Hold the balances against all that is told of postings."""
    with closing(wallets):
        yield from all_wrong(wallets.take_changes(connection))
        archive = folder / FOLDER
        yield from all_wrong(wallets.take_archive(archive))
        yield from all_wrong(wallets.strangers())
        yield from all_wrong(wallets.without_nonce())
        yield from all_wrong(wallets.disordered())
        different = list(wallets.differences())
        if different and not archive.exists():
            yield note(
                f"{len(different):,} balances can't be held against their journals: there is no"
                f" {archive}, where entries are after two days"
            )
        else:
            yield from all_wrong(different)
            if not different:
                yield ok(f"wallets: {len(wallets.balances):,} balances are what moved")
        if malformed := sum(1 for _ in (archive / "journal" / MALFORMED).glob("*.jsonl.gz")):
            yield note(
                f"{malformed:,} objects of {archive}/journal/{MALFORMED} are for you to read"
            )
