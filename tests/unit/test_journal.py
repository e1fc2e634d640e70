"""The journal: pages of what moved, newest first, whatever lies beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from chalicelib.ports import Delete, Item, Key, Placed, Put, Table
from chalicelib.wallets import journal
from chalicelib.wallets.journal import PAGE, BadCursorError, Page
from chalicelib.wallets.wallet import Entry, Movement, Outcome, asked, wallet
from tests.unit.fakes import NOON, FaultyTable, ulid_of
from tests.unit.timers import ENGINES, table_on

A, B = ulid_of(NOON, "A" * 16), ulid_of(NOON, "B" * 16)
EMPTY = Page([], "")


@pytest.fixture(params=ENGINES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Table]:
    with table_on(request.param, tmp_path) as opened:
        yield opened


def entry(number: int, *, refused: bool = False) -> Entry:
    """What moved so many seconds after noon; its nonces are in no order."""
    return Entry(
        entry_id=ulid_of(NOON + number),
        movement=Movement(f"nonce-{number * 7_919 % 1_000:04}", number + 1, A),
        at=int(NOON + number) * 1000,
        outcome=Outcome.BALANCE_LIMIT if refused else Outcome.DONE,
        balance=3 if refused else 0,
    )


def fill(table: Table, entries: list[Entry]) -> None:
    table.put_all([one.item(A) for one in entries])


def ids(page: Page) -> list[str]:
    return [one.entry_id for one in page.entries]


def test_a_wallet_that_nothing_moved_in_has_an_empty_page(table: Table) -> None:
    table.write(Put({"PK": wallet(A).pk, "SK": wallet(A).sk, "balance": 0, "user": "eva"}))
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
    fill(table, [entry(0), entry(1, refused=True), entry(2)])
    assert ids(journal.read(table, A)) == [entry(2).entry_id, entry(0).entry_id]


def test_another_wallets_journal_is_its_own(table: Table) -> None:
    transfer = Entry(ulid_of(NOON), Movement("nonce-01", 1, B, A), int(NOON) * 1000)
    other = Entry(ulid_of(NOON + 1), Movement("nonce-01", 1, B), int(NOON + 1) * 1000)
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
    table.write(Delete(asked(entries[2].movement)))
    assert entries[2].entry_id == cursor
    assert journal.read(table, A, cursor).entries == [entries[1], entries[0]]


def test_an_entry_that_goes_between_index_and_item_is_left_out_and_ends_no_pages(
    table: Table,
) -> None:
    fill(table, [entry(number) for number in range(PAGE + 1)])

    class Removed(FaultyTable):
        """Of what it is asked for it has all but the newest."""

        def get_all(self, keys: Sequence[Key]) -> list[Item]:
            found = self.table.get_all(keys)
            return [item for item in found if item["entry"] != entry(PAGE).entry_id]

    page = journal.read(Removed(table), A)
    assert len(page.entries) == PAGE - 1
    assert page.cursor == entry(1).entry_id


@pytest.mark.parametrize(
    "cursor",
    ["x", A.lower(), A + "0", A[:-1], A + "\n", "\u0661" * 26, " " * 26, "-" * 26, "\ud800" * 26],
)
def test_what_is_no_cursor_is_refused_and_the_table_not_asked(table: Table, cursor: str) -> None:
    class Unasked(FaultyTable):
        def query_latest(self, partition: str, **how: Any) -> list[Placed]:
            raise AssertionError(f"asked for {partition}, {how}")

    with pytest.raises(BadCursorError, match=r"^cursor: give the one that the page before answer"):
        journal.read(Unasked(table), A, cursor)
