"""The command `statement`: all entries of a wallet, oldest first, with the balance after each.

Entries are in the table for two days, then in the archive, whose objects have the entries of all
wallets by day. So a statement reads all objects since the wallet was opened, and keeps the entries
of the wallet in a temporary file.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import TypeAlias

import click

from chalicelib.storage.items import Item, number, text
from chalicelib.units import Milliseconds, to_iso8601, to_milliseconds
from chalicelib.wallets.wallet import ID, Entry, unknown
from vumi.cli.options import Parsed, examples, on_installation
from vumi.cli.output import as_json, print_json, wants_json
from vumi.errors import ReportedError
from vumi.journals import read_wallet
from vumi.operate.admin.installation import Installation

HEADER = f"{'time':24}  {'kind':8}  {'change':>20}  {'balance':>20}  other wallet"


Line: TypeAlias = tuple[Entry, int, int]
"""An entry with its change of the balance, and the new balance."""


@contextmanager
def open_statement(
    installation: Installation, wallet_id: str
) -> Iterator[tuple[int, Iterator[Line]]]:
    """Collect the journal of a wallet up to the moment at which its balance is read.

    Yield the balance, and the lines of the journal in their order. Raises `ReportedError` and
    `StorageError`.

    An entry moves from the table over the change log to the archive. They are read in this order,
    so each entry is found in one of them.
    """
    with closing(sqlite3.connect("", isolation_level=None)) as entries:
        entries.execute("CREATE TABLE entries (id TEXT PRIMARY KEY, item TEXT) WITHOUT ROWID")
        entries.execute("BEGIN")

        def add(item: Item) -> None:
            row = (Entry.of(item).entry_id, json.dumps(item))
            entries.execute("INSERT OR IGNORE INTO entries VALUES (?, ?)", row)

        is_id = ID.fullmatch(wallet_id)
        wallet = read_wallet(installation.table, wallet_id, add) if is_id else None
        if wallet is None:
            raise ReportedError(str(unknown(wallet_id)))
        opened = datetime.fromtimestamp(number(wallet, "created") / 1000, UTC).date()
        for archived in installation.archived(opened):
            for owner, entry in archived.entries(wallet_id):
                if owner == wallet_id:
                    add(entry.item(wallet_id))
        rows = entries.execute(
            "SELECT item FROM entries WHERE id <= ? ORDER BY id", (text(wallet, "last"),)
        )
        journal = (Entry.of(json.loads(item)) for (item,) in rows)
        yield number(wallet, "balance"), _add_balances(wallet_id, journal)


def _add_balances(wallet_id: str, journal: Iterable[Entry]) -> Iterator[Line]:
    balance = 0
    for entry in journal:
        amount = entry.posting.amount
        change = -amount if entry.posting.source == wallet_id else amount
        balance += change
        yield entry, change, balance


def _parse_bound(value: str) -> Milliseconds:
    """Return a day or a time, in UTC unless it has an offset, in milliseconds since 1970."""
    try:
        given = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"give 2026-11-22 or 2026-11-22T17:15:00Z, not {value!r}") from None
    aware = given if given.tzinfo else given.replace(tzinfo=UTC)
    return to_milliseconds(aware.timestamp())


BOUND = Parsed("time", _parse_bound)


@click.command(
    epilog=examples(
        "vumi statement 01K5C8V9R2M3N4P5Q6R7S8T9VW",
        "vumi statement 01K5C8V9R2M3N4P5Q6R7S8T9VW --since 2026-11-01 --until 2026-12-01 --json",
        "vumi statement 01K5C8V9R2M3N4P5Q6R7S8T9VW --stack vu-mi-prod",
    )
)
@click.argument("wallet_id")
@click.option("--since", type=BOUND, default="1970-01-01", help="Leave out earlier entries.")
@click.option("--until", type=BOUND, default="9999-12-31", help="Leave out this and later times.")
@as_json
@on_installation
def statement(
    installation: Installation, wallet_id: str, since: Milliseconds, until: Milliseconds
) -> None:
    """Print all entries of a wallet, with the balance after each.

    Amounts are in millionths, the oldest entry is first. They come from the table and from the
    archive. The exit status is 3 if the balance differs from their sum.
    """
    with open_statement(installation, wallet_id) as (balance, lines):
        if not wants_json():
            click.echo(HEADER)
        found = 0
        for entry, change, found in lines:
            if since <= entry.at < until:
                _print_line(wallet_id, entry, change, found)
    if wants_json():
        print_json({"wallet": wallet_id, "balance": str(balance), "journal": str(found)})
    if found != balance:
        raise ReportedError(
            f"the wallet {wallet_id} has {balance}, but its journal adds up to"
            f" {found}; entries reach the archive some minutes after they leave the table, so run"
            " it again in 15 minutes",
            status=3,
        )
    if not wants_json():
        click.echo(f"The balance is {balance}, and the journal adds up to it.")


def _print_line(wallet_id: str, entry: Entry, change: int, balance: int) -> None:
    posting = entry.posting
    if wants_json():
        fields = {"id": entry.entry_id, "at": to_iso8601(entry.at), "kind": str(posting.kind)}
        amounts = {"change": str(change), "balance": str(balance)}
        sides = {"from": posting.source, "to": posting.target, "nonce": posting.nonce}
        print_json(fields | amounts | sides)
        return
    other = posting.target if wallet_id == posting.source else posting.source
    click.echo(
        f"{to_iso8601(entry.at):24}  {posting.kind:8}  {change:>+20}  {balance:>20}"
        f"  {other}".rstrip()
    )
