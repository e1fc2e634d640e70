"""A statement has every entry of a wallet once, in order, wherever it is stored."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from chalicelib.storage.items import Item, key_of
from chalicelib.storage.ports import Archive, Table
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.archive import EntryRemoval, batches, make_object
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import ENTRY, Posting
from simulation.installation import MemoryInstallation
from simulation.storage import MemoryTable
from tests.unit.vumi.commands import Vumi
from vumi.cli.statement import HEADER, open_statement
from vumi.errors import ReportedError
from vumi.journals import PAGE, query_all
from vumi.operate.admin.installation import Installation
from vumi.operate.installations.file import open_installation
from vumi.settings import StandaloneSettings
from vumi.storage.database import FILE, Database
from vumi.storage.queue import SqliteQueue
from vumi.workers.expiry import remove_expired

NOW = 1_800_000_000.0
DAY = 86_400.0


class Bank:
    """Two wallets, whose postings are one day apart."""

    def __init__(self, table: Table) -> None:
        self.table, self.now = table, NOW
        self.a, self.b = (
            wallets.open_wallet(table, user, int(NOW * 1000)).wallet_id for user in ("u-1", "u-2")
        )
        self.ledger = Ledger(table, lambda: self.now)

    def post(self, amount: int, target: str, source: str = "") -> None:
        self.ledger.post(Posting(f"nonce-{self.now}", amount, target, source))
        self.now += DAY

    def entries(self, wallet_id: str) -> list[Item]:
        return self.table.query(wallets.PARTITION + wallet_id, limit=9, first=ENTRY, last="TX#~")


def read(installation: Installation, wallet_id: str) -> list[tuple[int, int]]:
    with open_statement(installation, wallet_id) as (balance, lines):
        found = [line[1:] for line in lines]
        assert balance == (found[-1][1] if found else 0)
        return found


def archive_all(entries: list[Item], archive: Archive) -> None:
    for batch in batches(EntryRemoval.of(entry, 1, NOW) for entry in entries):
        archive.put(*make_object(batch))


def test_entries_of_the_table_and_of_the_archive_are_in_one_order() -> None:
    """The archive repeats one that is still in the table, and has those of another wallet."""
    installation = MemoryInstallation()
    bank = Bank(installation.table)
    for amount in (5, 6):
        bank.post(amount, bank.a)
    bank.post(3, bank.b, bank.a)
    bank.post(1, bank.a)
    entries = [*bank.entries(bank.a), *bank.entries(bank.b)]
    archive_all(entries[1:], installation.archive)
    archive_all(entries[2:3], installation.archive)
    for entry in entries[2:]:
        installation.memory.remove(key_of(entry))
    assert read(installation, bank.a) == [(5, 5), (6, 11), (-3, 8), (1, 9)]
    assert read(installation, bank.b) == [(3, 3)]


def test_an_entry_that_is_posted_meanwhile_is_left_out() -> None:
    """The balance was read before it."""
    installation = MemoryInstallation()
    bank = Bank(installation.table)
    bank.post(5, bank.a)
    with open_statement(installation, bank.a) as (balance, lines):
        bank.post(6, bank.a)
        assert [line[2] for line in lines] == [5] == [balance]
    with open_statement(installation, bank.a) as (_, lines):
        archive_all(bank.entries(bank.a), installation.archive)
        assert [line[2] for line in lines] == [5, 11]


def test_entries_that_a_restore_has_undone_or_that_name_the_wallet_are_left_out() -> None:
    """The second is of another wallet, and has the id of this one as a part of its nonce."""
    installation = MemoryInstallation()
    bank = Bank(installation.table)
    bank.post(5, bank.a)
    undone: Item = {**bank.entries(bank.a)[0], "SK": f"{ENTRY}7{'Z' * 25}"}
    bank.ledger.post(Posting(f"for-{bank.a}", 5, bank.b))
    archive_all([undone, *bank.entries(bank.b)], installation.archive)
    assert read(installation, bank.a) == [(5, 5)]


def test_only_the_days_since_the_wallet_was_opened_are_read() -> None:
    installation = MemoryInstallation()
    bank = Bank(installation.table)
    installation.archive.put("journal/2027/01/14/a.jsonl.gz", b"no gzip")
    installation.archive.put("journal/malformed/a.jsonl.gz", b"no gzip")
    assert read(installation, bank.a) == []
    installation.archive.put("journal/2027/01/15/a.jsonl.gz", b"no gzip")
    with pytest.raises(ReportedError, match=r"15/a.jsonl.gz can't be read: Not a gzipped"):
        read(installation, bank.a)


def test_entries_that_wait_for_the_archive_are_in_the_statement_of_a_file(tmp_path: Path) -> None:
    settings = StandaloneSettings.from_environment({"DATA": str(tmp_path)})
    with closing(Database(tmp_path / FILE)):
        pass
    with open_installation(settings, lambda: NOW) as installation:
        bank = Bank(installation.table)
        bank.post(5, bank.a)
        bank.post(6, bank.a)
        archive_all(bank.entries(bank.a)[:1], installation.archive)
        installation.archive.put("journal/2027/01/14/a.jsonl.gz", b"no gzip, but too old")
        queue = SqliteQueue(installation.database, "views", lambda: NOW)
        remove_expired(installation.database, queue, lambda: NOW + 9 * DAY, lambda: None)
        assert bank.entries(bank.a) == []
        assert read(installation, bank.a) == [(5, 5), (6, 11)]
        assert read(installation, bank.b) == []


@pytest.mark.parametrize("wallet_id", ["7" * 26, "eva", ""])
def test_an_unknown_wallet_is_reported(wallet_id: str) -> None:
    with pytest.raises(ReportedError, match=f"there is no wallet {wallet_id}"):
        read(MemoryInstallation(), wallet_id)


def test_every_item_between_the_bounds_is_read_once() -> None:
    """The last key of a page is the beginning of the first key of the next one."""
    table = MemoryTable()
    keys = [*(f"b{number:04}" for number in range(PAGE)), f"b{PAGE - 1:04}a", "c"]
    items: list[Item] = [{"PK": "p", "SK": key} for key in ("a", *keys, "d")]
    table.put_all([*items, {"PK": "q", "SK": "c"}])
    assert [item["SK"] for item in query_all(table, "p", "b", "c")] == keys


# ---- the command


@pytest.fixture
def bank(vumi: Vumi) -> Bank:
    """Return wallets with a deposit on each of two days, and a transfer on the third."""
    bank = Bank(vumi.table)
    for amount in (5, 6):
        bank.post(amount, bank.a)
    bank.post(3, bank.b, bank.a)
    return bank


def test_the_entries_are_a_table(vumi: Vumi, bank: Bank) -> None:
    assert vumi("statement", bank.a) == 0
    assert vumi.out.splitlines() == [
        HEADER,
        "2027-01-15T08:00:00.000Z  deposit                     +5                     5",
        "2027-01-16T08:00:00.000Z  deposit                     +6                    11",
        f"2027-01-17T08:00:00.000Z  transfer                    -3                     8  {bank.b}",
        "The balance is 8, and the journal adds up to it.",
    ]


def test_json_has_an_entry_per_line_and_the_balance(vumi: Vumi, bank: Bank) -> None:
    entry, end = vumi.json("statement", bank.b)
    assert entry.pop("id") == bank.entries(bank.b)[0]["SK"].removeprefix("TX#")  # type: ignore[union-attr]
    assert entry == {
        "at": "2027-01-17T08:00:00.000Z",
        "kind": "transfer",
        "change": "3",
        "balance": "3",
        "from": bank.a,
        "to": bank.b,
        "nonce": "nonce-1800172800.0",
    }
    assert end == {"wallet": bank.b, "balance": "3", "journal": "3"}


@pytest.mark.parametrize(
    ("bounds", "balances"),
    [
        (["--since", "2027-01-16"], ["11", "8"]),
        (["--until", "2027-01-16"], ["5"]),
        (["--since", "2027-01-15T08:00:00Z", "--until", "2027-01-17T09:00:00+01:00"], ["5", "11"]),
        (["--since", "2027-01-15T08:00:01"], ["11", "8"]),
    ],
)
def test_bounds_leave_entries_out_and_keep_the_balances(
    vumi: Vumi, bank: Bank, bounds: list[str], balances: list[str]
) -> None:
    *entries, end = vumi.json("statement", bank.a, *bounds)
    assert [entry["balance"] for entry in entries] == balances
    assert end["journal"] == "8"


def test_a_balance_that_differs_from_the_journal_has_status_3(vumi: Vumi, bank: Bank) -> None:
    vumi.memory.remove(key_of(bank.entries(bank.a)[0]))
    assert vumi("statement", bank.a) == 3
    assert vumi.err == (
        f"Error: the wallet {bank.a} has 8, but its journal adds up to 3; entries reach the archive"
        " some minutes after they leave the table, so run it again in 15 minutes\n"
    )
