"""The ledger: the answers of postings, the order of their ids, and the pages of the journal.

The laws (`tests/laws/test_wallets.py`) show that each posting is applied or refused once and for
good, whatever fails and whoever posts concurrently.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from chalicelib.http.errors import BadRequestError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import ConditionFailedError, Write
from chalicelib.ulids import to_number
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.ledger import (
    MAX_WRITES,
    PAGE,
    Ledger,
    NonceReusedError,
    RefusedError,
    SameWalletError,
    later_id,
    read_journal,
)
from chalicelib.wallets.wallet import (
    HOT_SECONDS,
    MAX_BALANCE,
    Entry,
    Posting,
    PostingOutcome,
    PostingResult,
    UnknownWalletError,
    nonce,
    wallet,
)
from simulation.clocks import NOON, ulid_of
from simulation.storage import FaultyTable, once, raising

CONFIG = Path(__file__).parents[3] / ".chalice" / "config.json"
NOW = int(NOON * 1000)
NOBODY = "7" * 26
"""A valid id of no wallet."""


class Bank:
    """The wallets of a and b, and postings between them."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.a = wallets.open_wallet(table, "user-a", NOW).wallet_id
        self.b = wallets.open_wallet(table, "user-b", NOW).wallet_id
        self.now = NOON

    def over(self, table: Table) -> Ledger:
        return Ledger(table, lambda: self.now)

    def deposit(self, amount: int, name: str = "deposit-1", to: str = "") -> Entry:
        return self.over(self.table).post(Posting(name, amount, to or self.a))

    def transfer(self, amount: int, name: str = "transfer-1") -> Entry:
        return self.over(self.table).post(Posting(name, amount, self.b, self.a))

    def journal(self, wallet_id: str) -> list[Item]:
        """Return the entries of a wallet, oldest first."""
        partition = wallets.PARTITION + wallet_id
        return self.table.query(partition, first="TX#", last="TX#~", limit=99)

    def answer(self, posting: Posting) -> PostingResult | None:
        """Return the stored answer of the posting's nonce, if there is one."""
        item = self.table.get(nonce(posting))
        return None if item is None else PostingResult.of(item, posting)

    @property
    def balances(self) -> tuple[int, int]:
        return (
            wallets.read(self.table, self.a).balance,
            wallets.read(self.table, self.b).balance,
        )


@pytest.fixture
def bank(table: Table) -> Bank:
    return Bank(table)


def test_a_transfer_is_in_both_journals_and_its_nonce_keeps_the_answer(bank: Bank) -> None:
    """The digest is compared with those of years ago, so it must never change."""
    posting = Posting("nonce-01", 30, "B", "A")
    assert posting.digest == "c0f810c1920892ab1a5c0852c66eebb24b2a3b96bc649fdb99c1ac544fbc278a"
    bank.deposit(100)
    entry = bank.transfer(30)
    for wallet_id in (bank.a, bank.b):
        item = bank.journal(wallet_id)[-1]
        assert Entry.of(item) == entry
        assert item == entry.item(wallet_id)
        assert item["SK"] == f"TX#{entry.entry_id}"
        assert item["ttl"] == int(NOON) + HOT_SECONDS
    assert bank.table.get(nonce(entry.posting)) == {
        "PK": f"WALLET#{bank.a}",
        "SK": "NONCE#transfer-1",
        "request": entry.posting.digest,
        "entry": entry.entry_id,
        "at": NOW,
        "outcome": "done",
    }


@pytest.mark.parametrize(
    "other",
    [
        lambda bank: Posting("deposit-1", 6, bank.a),
        lambda bank: Posting("deposit-1", 5, bank.b, bank.a),
    ],
)
def test_a_nonce_of_a_different_posting_is_refused(
    bank: Bank, other: Callable[[Bank], Posting]
) -> None:
    bank.deposit(5)
    with pytest.raises(NonceReusedError):
        bank.over(bank.table).post(other(bank))
    assert bank.balances == (5, 0)


def test_a_balance_has_a_maximum(bank: Bank) -> None:
    bank.deposit(MAX_BALANCE)
    with pytest.raises(RefusedError, match=f"this has {MAX_BALANCE}") as refused:
        bank.deposit(1, "deposit-2")
    assert refused.value.result.outcome is PostingOutcome.BALANCE_LIMIT
    bank.deposit(1, "deposit-3", to=bank.b)
    with pytest.raises(RefusedError) as refused:
        bank.transfer(MAX_BALANCE)
    answer = refused.value.result
    assert (answer.outcome, answer.balance) == (PostingOutcome.BALANCE_LIMIT, 1)
    assert bank.balances == (MAX_BALANCE, 1)


def test_a_lack_of_funds_is_reported_before_a_full_target(bank: Bank) -> None:
    bank.deposit(5)
    bank.deposit(MAX_BALANCE, "deposit-2", to=bank.b)
    with pytest.raises(RefusedError) as refused:
        bank.transfer(6)
    answer = refused.value.result
    assert (answer.outcome, answer.balance) == (PostingOutcome.INSUFFICIENT_FUNDS, 5)


@pytest.mark.parametrize("amount", [10, 11])
@pytest.mark.parametrize("nobody", ["nobody", NOBODY])
def test_a_missing_wallet_is_named_before_a_lack_of_funds_and_keeps_no_nonce(
    bank: Bank, nobody: str, amount: int
) -> None:
    bank.deposit(10)
    for target, source in ((nobody, ""), (nobody, bank.a), (bank.b, nobody)):
        posting = Posting("nonce-01", amount, target, source)
        with pytest.raises(UnknownWalletError, match=f"no wallet {nobody}"):
            bank.over(bank.table).post(posting)
        assert bank.answer(posting) is None
    assert bank.balances == (10, 0)


def test_a_wallet_transfers_nothing_to_itself(bank: Bank) -> None:
    bank.deposit(10)
    with pytest.raises(SameWalletError, match="to itself"):
        bank.over(bank.table).post(Posting("nonce-01", 1, bank.a, bank.a))
    assert bank.balances == (10, 0)


def test_a_refusal_of_what_becomes_possible_before_it_is_written_is_not_stored(bank: Bank) -> None:
    """The balance rises to the amount. Then the target loses what it has no room for."""
    bank.deposit(10)
    enough = once(lambda: bank.deposit(20, "deposit-2"), after=1)
    ledger = bank.over(FaultyTable(bank.table, before_write=enough))
    ledger.post(Posting("transfer-1", 30, bank.b, bank.a))
    assert bank.balances == (0, 30)
    bank.deposit(30, "deposit-3")
    bank.deposit(MAX_BALANCE - 39, "deposit-4", to=bank.b)
    away = Posting("other-01", 21, bank.a, bank.b)
    room = once(lambda: bank.over(bank.table).post(away), after=1)
    ledger = bank.over(FaultyTable(bank.table, before_write=room))
    ledger.post(Posting("transfer-2", 30, bank.b, bank.a))
    assert bank.balances == (21, MAX_BALANCE)


def test_all_writes_end_before_the_timeout_of_the_function() -> None:
    """10 writes, each repeated for 0.9 s, take 9 s of the 10 s."""
    functions = json.loads(CONFIG.read_text())["lambda_functions"]
    assert MAX_WRITES * Retry().budget < functions["api_handler"]["lambda_timeout"]


def test_a_conflict_that_does_not_return_its_nonce_is_unavailable(bank: Bank) -> None:
    gone = FaultyTable(bank.table, before_write=raising(ConditionFailedError({0: None})))
    with pytest.raises(UnavailableError, match="the same nonce"):
        bank.over(gone).post(Posting("deposit-1", 1, bank.a))


# ---- entries are committed in the order of their ids


@pytest.mark.parametrize("is_source_ahead", [True, False])
def test_an_entry_is_later_than_the_last_of_both_wallets_with_a_slow_clock(
    bank: Bank, *, is_source_ahead: bool
) -> None:
    bank.deposit(100)
    bank.now += 100
    ahead = bank.deposit(100, "deposit-2", to=bank.a if is_source_ahead else bank.b)
    bank.now -= 100
    counting = FaultyTable(bank.table)
    entry = bank.over(counting).post(Posting("transfer-1", 1, bank.b, bank.a))
    assert entry.entry_id > ahead.entry_id
    assert entry.entry_id[:10] == ahead.entry_id[:10], "of the same millisecond"
    assert entry.at == NOW
    assert len(counting.written) == 2


def test_with_a_correct_clock_a_posting_takes_one_write(bank: Bank) -> None:
    counting = FaultyTable(bank.table)
    for number in range(9):
        bank.now += 1e-5
        bank.over(counting).post(Posting(f"deposit-{number}", 1, bank.a))
    assert len(counting.written) == 9


def test_a_posting_that_is_always_overtaken_must_be_retried(bank: Bank) -> None:
    def overtake(_: Sequence[Write]) -> None:
        bank.now += 1
        bank.deposit(1, f"other-{int(bank.now)}")

    slow = FaultyTable(bank.table, before_write=overtake)
    with pytest.raises(UnavailableError, match="the same nonce"):
        bank.over(slow).post(Posting("deposit-1", 1, bank.a))
    assert len(slow.written) == MAX_WRITES
    assert bank.balances == (MAX_WRITES, 0)


def test_ids_have_the_time_and_the_order_of_the_clock_also_within_a_millisecond() -> None:
    """The float of today's time is exact to a quarter of a microsecond."""
    most, least = (lambda bits: 2**bits - 1), (lambda _: 0)
    assert later_id(NOON, "", least) == ulid_of(NOON)
    assert later_id(NOON, "", most) < later_id(NOON + 1e-6, "", least)
    assert later_id(NOON + 1, later_id(NOON, "", most), least) == ulid_of(NOON + 1)


def test_ids_after_an_id_of_a_fast_clock_stay_in_its_millisecond_and_differ() -> None:
    """It makes a million ids, each with the longest step."""
    first = later_id(NOON + 100, "", lambda _: 0)
    steps = [later_id(NOON, first, lambda _, step=step: step) for step in (0, 1)]  # type: ignore[misc]
    assert first < steps[0] < steps[1]
    ahead = to_number(later_id(NOON, first, lambda bits: 2**bits - 1))
    assert 1_000_000 * (ahead - to_number(first)) < 2**80


def test_a_new_wallet_is_empty_and_has_its_user_and_its_time(table: Table) -> None:
    made = wallets.open_wallet(table, "user-a", NOW)
    assert made == wallets.Wallet(made.wallet_id, "user-a", balance=0)
    assert wallets.read(table, made.wallet_id) == made
    assert (table.get(wallet(made.wallet_id)) or {})["created"] == NOW


def test_a_user_has_one_wallet(bank: Bank) -> None:
    with pytest.raises(wallets.HasWalletError, match=bank.a) as has:
        wallets.open_wallet(bank.table, "user-a", NOW)
    assert has.value.details == {"id": bank.a}
    assert wallets.of_user(bank.table, "user-b").wallet_id == bank.b
    with pytest.raises(UnknownWalletError, match="the user has no wallet"):
        wallets.of_user(bank.table, "nobody")


def test_an_opening_that_finds_its_own_wallet_succeeds(table: Table) -> None:
    """The client of DynamoDB repeats a request whose answer was lost."""
    twice = FaultyTable(table, before_write=lambda writes: table.write(*writes))
    assert wallets.open_wallet(twice, "user-a", NOW) == wallets.of_user(table, "user-a")


def test_switching_the_badge_of_a_missing_wallet_makes_none(bank: Bank) -> None:
    for read in (wallets.read, partial(wallets.publish, is_public=True)):
        with pytest.raises(UnknownWalletError, match=f"no wallet {NOBODY}"):
            read(bank.table, NOBODY)


def test_an_id_that_is_too_long_for_a_key_is_read_from_no_table() -> None:
    """DynamoDB refuses a key of more than 2,048 bytes."""
    table, long = cast("Table", None), "x" * 3_000
    for read in (
        wallets.read,
        partial(wallets.publish, is_public=True),
        lambda table, name: Ledger(table, lambda: NOON).post(Posting("nonce-01", 1, NOBODY, name)),
    ):
        with pytest.raises(UnknownWalletError, match=r"no wallet x{30}$"):
            read(table, long)


# ---- the journal

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


def test_a_page_begins_right_after_its_cursor(table: Table) -> None:
    """The last letter of a cursor may be any letter of a ULID."""
    tails = [f"{15 * '0'}{letter}" for letter in "0123456789ABCDEFGHJKMNPQRSTVWXYZ"]
    entries = [replace(entry(0), entry_id=ulid_of(NOON, tail)) for tail in tails]
    fill(table, entries)
    for place, one in enumerate(entries):
        assert read_journal(table, A, one.entry_id)[0] == entries[:place][::-1]


@pytest.mark.parametrize(
    "cursor",
    ["x", A.lower(), A + "0", A + "\n", "\ud800" * 26, "8" * 26],
)
def test_a_malformed_cursor_is_refused_without_a_query(table: Table, cursor: str) -> None:
    class NeverQueried(FaultyTable):
        def query(self, partition: str, **how: Any) -> list[Item]:
            raise AssertionError(f"asked for {partition}, {how}")

    with pytest.raises(BadRequestError, match=r"^cursor: give the one of the page before"):
        read_journal(NeverQueried(table), A, cursor)
