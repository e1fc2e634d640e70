"""The journals of wallets in the table and in the archive, on both engines."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from chalicelib.storage.items import Item, text
from chalicelib.storage.ports import Table
from chalicelib.units import to_milliseconds
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.archive import PREFIX
from chalicelib.wallets.wallet import Entry, Posting
from vumi.errors import ReportedError

PAGE = 1_000
MALFORMED = f"{PREFIX}/malformed/"
"""The beginning of the names of objects whose records can't be read."""


@dataclass(frozen=True, slots=True)
class ArchivedObject:
    """An object with entries of one day."""

    name: str
    open: Callable[[], BinaryIO]

    def entries(self, text: str = "") -> Iterator[tuple[str, Entry]]:
        """Yield the entries whose lines contain a text, each with the id of its wallet.

        Raises `ReportedError` with the name if the object is damaged.
        """
        try:
            with closing(self.open()) as body, gzip.open(body, "rt", encoding="utf-8") as lines:
                for line in lines:
                    if text in line:
                        yield _read_entry(json.loads(line))
        except (OSError, EOFError, zlib.error, KeyError, TypeError, ValueError) as error:
            raise ReportedError(f"{self.name} can't be read: {error}") from error


def _read_entry(fields: dict[str, Any]) -> tuple[str, Entry]:
    posting = Posting(fields["nonce"], int(fields["amount"]), fields["to"], fields["from"])
    at = to_milliseconds(datetime.fromisoformat(fields["at"]).timestamp())
    return fields["wallet"], Entry(fields["id"], posting, at)


def first_name(day: date | None) -> str:
    """Return a text that sorts before all objects of a day and later, or before all objects."""
    return f"{PREFIX}/{day:%Y/%m/%d}" if day else f"{PREFIX}/"


def in_folder(folder: Path, since: date | None = None) -> Iterator[ArchivedObject]:
    """Yield the objects of an archive in a folder, from a day on, in the order of their names."""
    for path in sorted((folder / PREFIX).rglob("*.jsonl.gz")):
        name = path.relative_to(folder).as_posix()
        if name >= first_name(since) and not name.startswith(MALFORMED):
            yield ArchivedObject(str(path), partial(_open, path))


def _open(path: Path) -> BinaryIO:
    return path.open("rb")


def read_wallet(table: Table, wallet_id: str, add: Callable[[Item], None]) -> Item | None:
    """Return a wallet, and add the entries of the table that its balance contains.

    A posting writes its entry and `last` in one transaction, and later ones have higher ids. So the
    entries up to `last` are those of the moment at which the wallet was read.
    """
    wallet = table.get(wallets.wallet(wallet_id))
    if wallet is not None:
        last = wallets.entry(wallet_id, text(wallet, "last")).sk
        for entry in query_all(table, wallets.PARTITION + wallet_id, wallets.ENTRY, last):
            add(entry)
    return wallet


def query_all(table: Table, partition: str, first: str, last: str) -> Iterator[Item]:
    """Yield all items of a partition with a sort key from `first` to `last`, in their order."""
    while page := table.query(partition, limit=PAGE, first=first, last=last):
        yield from page
        first = text(page[-1], "SK") + "\0"
