"""The check of wallets: their balances, nonces and journals agree.

A wallet's journal consists of its entries in the table, in the change log and in the archive. An
entry may be in several of these, and more than once in the archive. It counts once.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from chalicelib.storage.items import Item, number, text
from chalicelib.wallets.wallet import ENTRY, NONCE, PARTITION, Entry, Posting, PostingOutcome
from vumi.check.report import Finding, all_wrong, note, ok
from vumi.check.rows import WrongItemError, decode
from vumi.storage.archive import FOLDER

MALFORMED = "malformed"


def _is_never_later(_wallet_id: str, _entry_id: str) -> bool:
    return False


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

    def add(self, kind: str, item: Item) -> None:
        """Add an item, if it is part of a wallet."""
        if kind == "wallet":
            wallet_id = text(item, "PK").removeprefix(PARTITION)
            self.balances[wallet_id] = number(item, "balance")
            self.lasts[wallet_id] = text(item, "last")
            self.owners[wallet_id] = text(item, "user")
        elif kind == "wallet of a user":
            self.users[text(item, "PK").partition("#")[2]] = text(item, "wallet")
        elif kind == "entry":
            self._add_entry(item)
        elif kind == "nonce" and item["outcome"] == PostingOutcome.DONE:
            key = text(item, "PK").removeprefix(PARTITION), text(item, "SK").removeprefix(NONCE)
            row = (*key, text(item, "entry"), text(item, "request"))
            self._file.execute("INSERT INTO nonces VALUES (?, ?, ?, ?)", row)

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

    def add_archive(self, folder: Path) -> Iterator[str]:
        """Add the entries of the archive; yield a message for each object that can't be read."""
        for path in sorted(folder.rglob("*.jsonl.gz")):
            if path.parent.name != MALFORMED:
                yield from self.add_object(str(path), path.open("rb"))

    def add_object(
        self, name: str, body: BinaryIO, *, is_later: Callable[[str, str], bool] = _is_never_later
    ) -> Iterator[str]:
        """Add the entries of an object of the archive; yield a message if it can't be read.

        `is_later` tells by its wallet and its id whether an entry is later than the table.
        """
        try:
            with closing(body), gzip.open(body, "rt", encoding="utf-8") as lines:
                for line in lines:
                    entry = json.loads(line)
                    amount = int(entry["amount"])
                    posting = Posting(entry["nonce"], amount, entry["to"], entry["from"])
                    if not is_later(entry["wallet"], entry["id"]):
                        self._insert(entry["wallet"], entry["id"], posting)
        except (OSError, EOFError, zlib.error, KeyError, TypeError, ValueError) as error:
            yield f"{name} can't be read: {error}"

    def differences(self) -> Iterator[str]:
        """Find wallets whose balance differs from the sum of their journal."""
        sums = dict.fromkeys(self.balances, 0)
        for wallet_id, change in self._file.execute("SELECT wallet, change FROM moved"):
            sums[wallet_id] = sums.get(wallet_id, 0) + change
        for wallet_id, moved in sums.items():
            if wallet_id not in self.balances:
                yield f"the wallet {wallet_id} has a journal but does not exist"
            elif (balance := self.balances[wallet_id]) != moved:
                yield f"the wallet {wallet_id} has {balance}, but its journal adds up to {moved}"

    def without_nonce(self) -> Iterator[str]:
        """Find entries whose nonce would let the same request move the money again."""
        rows = self._file.execute(
            "SELECT wallet, moved.id, nonce FROM moved LEFT JOIN nonces USING (asker, nonce)"
            " WHERE (moved.id, moved.request) IS NOT (nonces.id, nonces.request)"
        )
        for wallet_id, entry_id, nonce in rows:
            yield f"the entry {entry_id} of the wallet {wallet_id} differs from its nonce {nonce}"

    def disordered(self) -> Iterator[str]:
        """Find wallets with an entry that is later than their last one."""
        rows = self._file.execute("SELECT wallet, max(id) FROM moved GROUP BY wallet")
        for wallet_id, entry_id in rows:
            if entry_id > (last := self.lasts.get(wallet_id, entry_id)):
                yield f"the last entry of the wallet {wallet_id} is {entry_id}, not {last!r}"

    def misassigned(self) -> Iterator[str]:
        """Find wallets that their user's item does not name, and named wallets that don't exist."""
        for wallet_id, user in self.owners.items():
            if self.users.get(user) != wallet_id:
                yield f"the wallet {wallet_id} is of {user}, whose wallet is {self.users.get(user)}"
        for user, wallet_id in self.users.items():
            if wallet_id not in self.balances:
                yield f"the wallet {wallet_id} of user {user} does not exist"

    def check_entries(self) -> Iterator[Finding]:
        """Check the users, nonces and order of the entries."""
        yield from all_wrong(self.misassigned())
        yield from all_wrong(self.without_nonce())
        yield from all_wrong(self.disordered())

    def check_balances(self, differing: Sequence[str]) -> Iterator[Finding]:
        """Report the `differences` of balances and journals, or that there are none."""
        yield from all_wrong(differing)
        if not differing:
            yield ok(f"wallets: {len(self.balances):,} balances equal their journals")

    def close(self) -> None:
        self._file.close()


def check(connection: sqlite3.Connection, wallets: Wallets, folder: Path) -> Iterator[Finding]:
    """Compare the balances with all journals."""
    with closing(wallets):
        yield from all_wrong(wallets.add_changes(connection))
        archive = folder / FOLDER
        yield from all_wrong(wallets.add_archive(archive))
        yield from wallets.check_entries()
        differing = list(wallets.differences())
        if differing and not archive.exists():
            yield note(
                f"{len(differing):,} balances can't be compared with their journals: there is no"
                f" {archive}, which has the entries older than two days"
            )
        else:
            yield from wallets.check_balances(differing)
        if malformed := sum(1 for _ in (archive / "journal" / MALFORMED).glob("*.jsonl.gz")):
            yield note(
                f"{malformed:,} objects in {archive}/journal/{MALFORMED} are malformed; read them"
            )
