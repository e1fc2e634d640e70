"""The journal: pages of entries, newest first, whatever else is in the partition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chalicelib.http.errors import BadRequestError
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Delete, Put
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.ledger import PAGE, read_journal
from chalicelib.wallets.wallet import Entry, Posting, PostingOutcome, PostingResult
from simulation.clocks import NOON, ulid_of
from simulation.tables import FaultyTable

A, B = ulid_of(NOON, "A" * 16), ulid_of(NOON, "B" * 16)


def entry(number: int) -> Entry:
    """Return an entry of this many seconds after noon; the nonces are in no order."""
    return Entry(
        entry_id=ulid_of(NOON + number),
        posting=Posting(f"nonce-{number * 7_919 % 1_000:04}", number + 1, A),
        at=int(NOON + number) * 1000,
    )


def fill(table: Table, entries: list[Entry]) -> None:
    table.put_all([one.item(A) for one in entries])


def ids(entries: list[Entry]) -> list[str]:
    return [one.entry_id for one in entries]


@pytest.mark.parametrize("count", [1, PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 1])
def test_pages_have_each_entry_once_newest_first(table: Table, count: int) -> None:
    entries = [entry(number) for number in range(count)]
    fill(table, entries)
    read, cursor = [], ""
    while True:
        page, cursor = read_journal(table, A, cursor)
        assert len(page) <= PAGE
        read += page
        assert len(read) <= count
        if not cursor:
            break
        assert cursor == read[-1].entry_id
    assert read == entries[::-1]


def test_refused_postings_are_left_out(table: Table) -> None:
    fill(table, [entry(0), entry(2)])
    table.put_all([PostingResult(entry(number)).item for number in (0, 2)])
    table.write(Put(PostingResult(entry(1), PostingOutcome.BALANCE_LIMIT, 3).item))
    table.write(Put({"PK": wallets.wallet(A).pk, "SK": wallets.SORT, "balance": 4}))
    assert ids(read_journal(table, A)[0]) == [entry(2).entry_id, entry(0).entry_id]


def test_a_cursor_is_valid_after_its_entry_was_archived(table: Table) -> None:
    entries = [entry(number) for number in range(PAGE + 2)]
    fill(table, entries)
    _, cursor = read_journal(table, A)
    table.write(Delete(wallets.entry(A, entries[2].entry_id)))
    assert entries[2].entry_id == cursor
    assert read_journal(table, A, cursor)[0] == [entries[1], entries[0]]


def test_a_page_begins_right_after_its_cursor(table: Table) -> None:
    """The last letter of a cursor may be any letter of a ULID."""
    tails = [f"{15 * '0'}{letter}" for letter in "0123456789ABCDEFGHJKMNPQRSTVWXYZ"]
    entries = [replace(entry(0), entry_id=ulid_of(NOON, tail)) for tail in tails]
    fill(table, entries)
    for place, one in enumerate(entries):
        assert read_journal(table, A, one.entry_id)[0] == entries[:place][::-1]


def test_a_page_is_read_by_one_query(table: Table) -> None:
    fill(table, [entry(number) for number in range(3)])
    page, cursor = read_journal(table, A, size=2)
    assert (ids(page), cursor) == ([entry(2).entry_id, entry(1).entry_id], entry(1).entry_id)


@pytest.mark.parametrize(
    "cursor",
    [
        "x",
        A.lower(),
        A + "0",
        A + "\n",
        "\ud800" * 26,
        "8" * 26,
    ],
)
def test_a_malformed_cursor_is_refused_without_a_query(table: Table, cursor: str) -> None:
    class NeverQueried(FaultyTable):
        def query(self, partition: str, **how: Any) -> list[Item]:
            raise AssertionError(f"asked for {partition}, {how}")

    with pytest.raises(BadRequestError, match=r"^cursor: give the one of the page before"):
        read_journal(NeverQueried(table), A, cursor)
