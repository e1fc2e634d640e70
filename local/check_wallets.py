"""Checking the wallets: the archive, the change log and the hot journal give every balance.

An entry may be in several of these, and more than once in the archive; a wallet has it once.
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

from chalicelib.ports import Item, number, text
from chalicelib.wallets.wallet import ENTRY, PARTITION, Entry, Outcome
from local.archive import FOLDER
from local.check_rows import Wrong, decoded
from local.findings import Finding, all_wrong, note, ok

MALFORMED = "malformed"


@dataclass(slots=True)
class Wallets:
    """The balances, and what moved: that in a file of SQLite's own, gone when it is closed."""

    balances: dict[str, int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    users: dict[str, str] = field(default_factory=dict)
    _moved: sqlite3.Connection = field(
        default_factory=lambda: sqlite3.connect("", isolation_level=None)
    )

    def __post_init__(self) -> None:
        self._moved.execute(
            "CREATE TABLE moved (wallet TEXT, id TEXT, change INTEGER,"
            " PRIMARY KEY (wallet, id)) WITHOUT ROWID"
        )
        self._moved.execute("BEGIN")

    def take(self, kind: str, item: Item) -> None:
        """Gather what an item says."""
        if kind == "wallet":
            wallet_id = text(item, "PK").removeprefix(PARTITION)
            self.balances[wallet_id] = number(item, "balance")
            self.owners[wallet_id] = text(item, "user")
        elif kind == "wallet of a user":
            self.users[text(item, "PK").partition("#")[2]] = text(item, "wallet")
        elif kind == "entry":
            self._take_entry(item)

    def _take_entry(self, item: Item) -> None:
        entry, wallet_id = Entry.of(item), text(item, "PK").removeprefix(PARTITION)
        if entry.outcome is Outcome.DONE:
            movement = entry.movement
            self._add(wallet_id, entry.entry_id, movement.amount, movement.source)

    def _add(self, wallet_id: str, entry_id: str, amount: int, source: str) -> None:
        change = -amount if wallet_id == source else amount
        self._moved.execute(
            "INSERT OR IGNORE INTO moved VALUES (?, ?, ?)", (wallet_id, entry_id, change)
        )

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
                if told["outcome"] == Outcome.DONE:
                    self._add(told["wallet"], told["id"], int(told["amount"]), told["from"])

    def differences(self) -> Iterator[str]:
        """Wallets whose balance is not what moved."""
        sums = dict.fromkeys(self.balances, 0)
        for wallet_id, change in self._moved.execute("SELECT wallet, change FROM moved"):
            sums[wallet_id] = sums.get(wallet_id, 0) + change
        for wallet_id, moved in sums.items():
            if wallet_id not in self.balances:
                yield f"there is no wallet {wallet_id}, but it has a journal"
            elif (balance := self.balances[wallet_id]) != moved:
                yield f"the wallet {wallet_id} has {balance}, by its journal {moved}"

    def strangers(self) -> Iterator[str]:
        """Wallets that their users do not find."""
        for wallet_id, user in self.owners.items():
            if self.users.get(user) != wallet_id:
                yield f"the wallet {wallet_id} is of user {user}, who has {self.users.get(user)}"
        for user, wallet_id in self.users.items():
            if wallet_id not in self.balances:
                yield f"there is no wallet {wallet_id}, the one of user {user}"

    def close(self) -> None:
        self._moved.close()


def check(connection: sqlite3.Connection, wallets: Wallets, folder: Path) -> Iterator[Finding]:
    """Hold the balances against all that is told of movements."""
    with closing(wallets):
        yield from all_wrong(wallets.take_changes(connection))
        archive = folder / FOLDER
        yield from all_wrong(wallets.take_archive(archive))
        yield from all_wrong(wallets.strangers())
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
