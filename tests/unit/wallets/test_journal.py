"""The journal: pages of what moved, newest first, whatever lies beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.http.errors import BadRequestError
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete, Put
from chalicelib.wallets import journal
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.journal import PAGE, Page
from chalicelib.wallets.wallet import Answer, Entry, Outcome, Posting
from simulation.clocks import NOON, ulid_of
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable

A, B = ulid_of(NOON, "A" * 16), ulid_of(NOON, "B" * 16)
EMPTY = Page([], "")


@pytest.fixture
def table() -> Table:
    return MemoryTable()


def entry(number: int) -> Entry:
    """What moved so many seconds after noon; its nonces are in no order."""
    return Entry(
        entry_id=ulid_of(NOON + number),
        posting=Posting(f"nonce-{number * 7_919 % 1_000:04}", number + 1, A),
        at=int(NOON + number) * 1000,
    )


def fill(table: Table, entries: list[Entry]) -> None:
    table.put_all([one.item(A) for one in entries])


def ids(page: Page) -> list[str]:
    return [one.entry_id for one in page.entries]


def test_a_wallet_that_nothing_moved_in_has_an_empty_page(table: Table) -> None:
    key = wallets.wallet(A)
    table.write(Put({"PK": key.pk, "SK": key.sk, "balance": 0, "user": "eva"}))
    assert journal.read(table, A) == EMPTY


@pytest.mark.parametrize("count", [1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 1])
def test_pages_have_everything_once_from_the_newest_to_the_oldest(table: Table, count: int) -> None:
    entries = [entry(number) for number in range(count)]
    fill(table, entries)
    read, cursor = [], ""
    while True:
        page = journal.read(table, A, cursor)
        assert len(page.entries) <= PAGE
        read += page.entries
        assert len(read) <= count
        cursor = page.cursor
        if not cursor:
            break
        assert cursor == read[-1].entry_id
    assert read == entries[::-1]


def test_what_was_refused_moved_nothing_and_is_left_out(table: Table) -> None:
    fill(table, [entry(0), entry(2)])
    table.put_all([Answer(entry(number)).item for number in (0, 2)])
    table.write(Put(Answer(entry(1), Outcome.BALANCE_LIMIT, 3).item))
    table.write(Put({"PK": wallets.wallet(A).pk, "SK": wallets.SORT, "balance": 4}))
    assert ids(journal.read(table, A)) == [entry(2).entry_id, entry(0).entry_id]


def test_another_wallets_journal_is_its_own(table: Table) -> None:
    transfer = Entry(ulid_of(NOON), Posting("nonce-01", 1, B, A), int(NOON) * 1000)
    other = Entry(ulid_of(NOON + 1), Posting("nonce-01", 1, B), int(NOON + 1) * 1000)
    table.put_all([transfer.item(A), transfer.item(B), other.item(B)])
    assert journal.read(table, A).entries == [transfer]
    assert journal.read(table, B).entries == [other, transfer]


def test_what_comes_meanwhile_shifts_nothing(table: Table) -> None:
    fill(table, [entry(number) for number in range(PAGE + 2)])
    first = journal.read(table, A)
    fill(table, [entry(PAGE + 2)])
    assert ids(journal.read(table, A, first.cursor)) == [entry(1).entry_id, entry(0).entry_id]


def test_a_cursor_is_good_though_its_entry_is_in_the_archive_by_now(table: Table) -> None:
    entries = [entry(number) for number in range(PAGE + 2)]
    fill(table, entries)
    cursor = journal.read(table, A).cursor
    table.write(Delete(wallets.entry(A, entries[2].entry_id)))
    assert entries[2].entry_id == cursor
    assert journal.read(table, A, cursor).entries == [entries[1], entries[0]]


def test_a_cursor_leaves_out_itself_alone(table: Table) -> None:
    """Each letter of a ULID may be the last one of a cursor."""
    tails = [f"{15 * '0'}{letter}" for letter in "0123456789ABCDEFGHJKMNPQRSTVWXYZ"]
    entries = [replace(entry(0), entry_id=ulid_of(NOON, tail)) for tail in tails]
    fill(table, entries)
    for place, one in enumerate(entries):
        assert journal.read(table, A, one.entry_id).entries == entries[:place][::-1]


@pytest.mark.parametrize("cursor", ["0" * 26, "7" + "Z" * 25])
def test_the_first_and_the_last_id_are_cursors(table: Table, cursor: str) -> None:
    fill(table, [entry(0)])
    table.put_all([Answer(entry(0)).item, {"PK": wallets.wallet(A).pk, "SK": wallets.SORT}])
    assert ids(journal.read(table, A, cursor)) == [entry(0).entry_id] * cursor.startswith("7")


def test_a_page_is_read_by_one_query(table: Table) -> None:
    fill(table, [entry(number) for number in range(3)])
    page = journal.read(table, A, size=2)
    assert (ids(page), page.cursor) == ([entry(2).entry_id, entry(1).entry_id], entry(1).entry_id)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        A.lower(),
        A + "0",
        A[:-1],
        A + "\n",
        "\u0661" * 26,
        " " * 26,
        "-" * 26,
        "\ud800" * 26,
        "8" * 26,
    ],
)
def test_what_is_no_cursor_is_refused_and_the_table_not_asked(table: Table, cursor: str) -> None:
    class Unasked(FaultyTable):
        def query(self, partition: str, **how: Any) -> list[Item]:
            raise AssertionError(f"asked for {partition}, {how}")

    with pytest.raises(BadRequestError, match=r"^cursor: give the one that the page before answer"):
        journal.read(Unasked(table), A, cursor)
