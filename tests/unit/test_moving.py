"""Moving money once: what was done and what was refused stays so, and nothing moves in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from chalicelib.ports import ConditionFailed, Delete, Key, Table, Unavailable, Write
from chalicelib.retry import Retry
from chalicelib.wallets import opening
from chalicelib.wallets.amounts import MOST
from chalicelib.wallets.moving import (
    ROUNDS,
    Mover,
    NonceReusedError,
    RefusedError,
    SameWalletError,
    UnknownWalletError,
)
from chalicelib.wallets.wallet import (
    HOT_SECONDS,
    Entry,
    Movement,
    Outcome,
    asked,
    received,
    wallet,
)
from tests.unit.fakes import NOON, FaultyTable, raising
from tests.unit.timers import ENGINES, table_on

CONFIG = Path(__file__).parents[2] / ".chalice" / "config.json"
NOW = int(NOON * 1000)
NOBODY = "7" * 26
"""What could be a wallet's id and is none's."""


@pytest.fixture(params=ENGINES)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Table]:
    with table_on(request.param, tmp_path) as opened:
        yield opened


class Bank:
    """Wallets of a and b, and who moves between them."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.a = opening.open_wallet(table, "user-a", NOW).wallet_id
        self.b = opening.open_wallet(table, "user-b", NOW).wallet_id
        self.now = NOON

    def over(self, table: Table) -> Mover:
        return Mover(table, lambda: self.now)

    def deposit(self, amount: int, nonce: str = "deposit-1", to: str = "") -> Entry:
        return self.over(self.table).move(Movement(nonce, amount, to or self.a))

    def transfer(self, amount: int, nonce: str = "transfer-1") -> Entry:
        return self.over(self.table).move(Movement(nonce, amount, self.b, self.a))

    @property
    def balances(self) -> tuple[int, int]:
        return (
            opening.read(self.table, self.a).balance,
            opening.read(self.table, self.b).balance,
        )


@pytest.fixture
def bank(table: Table) -> Bank:
    return Bank(table)


def test_a_deposit_and_a_transfer_move_once_however_often_they_are_asked_for(bank: Bank) -> None:
    deposits = [bank.deposit(100) for _ in range(3)]
    transfers = [bank.transfer(30) for _ in range(3)]
    assert bank.balances == (70, 30)
    assert deposits == [deposits[0]] * 3
    assert transfers == [transfers[0]] * 3


def test_both_wallets_have_a_transfer_in_their_journals(bank: Bank) -> None:
    bank.deposit(100)
    entry = bank.transfer(30)
    there = [bank.table.get(key(entry.movement)) or {} for key in (asked, received)]
    assert [Entry.of(item) for item in there] == [entry, entry]
    assert {item["ttl"] for item in there} == {int(NOON) + HOT_SECONDS}
    assert {item["one_partition"] for item in there} == {entry.entry_id}


def test_the_same_nonce_is_another_one_in_another_wallet(bank: Bank) -> None:
    bank.deposit(5, "same-nonce")
    bank.deposit(7, "same-nonce", to=bank.b)
    assert bank.balances == (5, 7)


def test_a_nonce_of_the_target_may_be_that_of_the_source(bank: Bank) -> None:
    bank.deposit(100, "deposit-1")
    bank.transfer(30, "same-nonce")
    bank.deposit(1, "same-nonce", to=bank.b)
    assert bank.balances == (70, 31)


@pytest.mark.parametrize(
    "other",
    [
        lambda bank: Movement("deposit-1", 6, bank.a),
        lambda bank: Movement("deposit-1", 5, bank.b, bank.a),
    ],
)
def test_a_nonce_that_was_used_for_another_movement_is_refused(
    bank: Bank, other: Callable[[Bank], Movement]
) -> None:
    bank.deposit(5)
    with pytest.raises(NonceReusedError):
        bank.over(bank.table).move(other(bank))
    assert bank.balances == (5, 0)


def test_what_a_wallet_has_can_be_transferred_and_no_more(bank: Bank) -> None:
    bank.deposit(100)
    with pytest.raises(RefusedError, match="has 100 millionths") as refused:
        bank.transfer(101)
    assert (refused.value.entry.outcome, refused.value.entry.balance) == (
        Outcome.INSUFFICIENT_FUNDS,
        100,
    )
    bank.transfer(100, "transfer-2")
    assert bank.balances == (0, 100)


def test_a_refusal_stays_one_though_the_wallet_has_enough_by_then(bank: Bank) -> None:
    for _ in range(2):
        with pytest.raises(RefusedError, match="has 0 millionths"):
            bank.transfer(1)
        bank.deposit(100)
    assert bank.balances == (100, 0)


def test_a_balance_ends_at_its_limit(bank: Bank) -> None:
    bank.deposit(MOST)
    with pytest.raises(RefusedError, match=f"this has {MOST}") as refused:
        bank.deposit(1, "deposit-2")
    assert refused.value.entry.outcome is Outcome.BALANCE_LIMIT
    bank.deposit(1, "deposit-3", to=bank.b)
    with pytest.raises(RefusedError) as refused:
        bank.transfer(MOST)
    assert (refused.value.entry.outcome, refused.value.entry.balance) == (Outcome.BALANCE_LIMIT, 1)
    assert bank.balances == (MOST, 1)


def test_who_is_short_is_told_so_though_the_other_has_no_room_either(bank: Bank) -> None:
    bank.deposit(5)
    bank.deposit(MOST, "deposit-2", to=bank.b)
    with pytest.raises(RefusedError) as refused:
        bank.transfer(6)
    entry = refused.value.entry
    assert (entry.outcome, entry.balance) == (Outcome.INSUFFICIENT_FUNDS, 5)


def test_a_wallet_that_is_missing_is_named_and_keeps_no_nonce(bank: Bank) -> None:
    bank.deposit(10)
    mover = bank.over(bank.table)
    for movement in (
        Movement("nonce-01", 1, "nobody"),
        Movement("nonce-01", 1, "nobody", bank.a),
        Movement("nonce-01", 1, bank.b, "nobody"),
    ):
        with pytest.raises(UnknownWalletError, match="no wallet nobody"):
            mover.move(movement)
        assert bank.table.get(asked(movement)) is None
    assert bank.balances == (10, 0)


def test_a_wallet_that_is_missing_is_named_though_the_other_is_short_too(bank: Bank) -> None:
    movement = Movement("nonce-01", 1, NOBODY, bank.a)
    with pytest.raises(UnknownWalletError, match=f"no wallet {NOBODY}"):
        bank.over(bank.table).move(movement)
    assert bank.table.get(asked(movement)) is None


@pytest.mark.parametrize("left", [asked, received])
@pytest.mark.parametrize("is_short", [True, False])
def test_one_of_the_two_entries_of_a_transfer_is_enough_to_tell_that_it_was_done(
    bank: Bank, left: Callable[[Movement], Key], *, is_short: bool
) -> None:
    """TTL takes the other first; the wallet may be short by then."""
    bank.deposit(50 if is_short else 100)
    entry = bank.transfer(50)
    [gone] = {asked(entry.movement), received(entry.movement)} - {left(entry.movement)}
    bank.table.write(Delete(gone))
    assert bank.transfer(50) == entry
    assert bank.balances == (0 if is_short else 50, 50)


def test_a_wallet_transfers_nothing_to_itself(bank: Bank) -> None:
    bank.deposit(10)
    with pytest.raises(SameWalletError, match="to itself"):
        bank.over(bank.table).move(Movement("nonce-01", 1, bank.a, bank.a))
    assert bank.balances == (10, 0)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_movement_that_was_cut_off_took_place_once_or_not_at_all_and_asking_again_does_it(
    bank: Bank, when: str
) -> None:
    bank.deposit(100)
    hook: dict[str, Any] = {f"{when}_write": raising(Unavailable("no answer"))}
    faulty = FaultyTable(bank.table, **hook)
    movement = Movement("transfer-1", 30, bank.b, bank.a)
    with pytest.raises(Unavailable):
        bank.over(faulty).move(movement)
    assert bank.balances == ((100, 0) if when == "before" else (70, 30))
    bank.over(faulty).move(movement)
    assert bank.balances == (70, 30)


@pytest.mark.parametrize("enough", [True, False])
def test_money_that_comes_or_goes_between_is_seen(bank: Bank, *, enough: bool) -> None:
    """Between the movement that failed and its refusal."""
    bank.deposit(10)
    calls: list[Sequence[Write]] = []

    def before(writes: Sequence[Write]) -> None:
        calls.append(writes)
        if len(calls) == 2:
            bank.deposit(20 if enough else 5, "deposit-2")

    mover = bank.over(FaultyTable(bank.table, before_write=before))
    movement = Movement("transfer-1", 30, bank.b, bank.a)
    if enough:
        mover.move(movement)
        assert bank.balances == (0, 30)
    else:
        with pytest.raises(RefusedError):
            mover.move(movement)
        assert bank.balances == (15, 0)


def test_room_that_comes_between_is_seen(bank: Bank) -> None:
    """The other has all but 9; 21 go between the movement that failed and its refusal: 30 fit."""
    bank.deposit(30)
    bank.deposit(MOST - 9, "deposit-2", to=bank.b)
    calls: list[Sequence[Write]] = []

    def before(writes: Sequence[Write]) -> None:
        calls.append(writes)
        if len(calls) == 2:
            bank.over(bank.table).move(Movement("other-01", 21, bank.a, bank.b))

    mover = bank.over(FaultyTable(bank.table, before_write=before))
    mover.move(Movement("transfer-1", 30, bank.b, bank.a))
    assert bank.balances == (21, MOST)


def test_a_refusal_is_the_movement_that_failed_and_its_entry(bank: Bank) -> None:
    counting = FaultyTable(bank.table)
    with pytest.raises(RefusedError):
        bank.over(counting).move(Movement("transfer-1", 1, bank.b, bank.a))
    assert len(counting.written) == 2


def test_a_deposit_that_was_refused_stays_refused_though_there_is_room_by_then(bank: Bank) -> None:
    bank.deposit(MOST)
    with pytest.raises(RefusedError) as first:
        bank.deposit(1, "deposit-2")
    bank.transfer(1)
    with pytest.raises(RefusedError) as again:
        bank.deposit(1, "deposit-2")
    assert again.value.entry == first.value.entry
    assert bank.balances == (MOST - 1, 1)


def test_a_refusal_is_in_the_journal_of_who_asked_alone(bank: Bank) -> None:
    with pytest.raises(RefusedError) as refused:
        bank.transfer(1)
    entry = refused.value.entry
    assert Entry.of(bank.table.get(asked(entry.movement)) or {}) == entry
    assert bank.table.get(received(entry.movement)) is None


def test_two_who_are_refused_at_once_by_one_nonce_have_one_refusal(bank: Bank) -> None:
    """The other one's comes between the movement that failed and its refusal: two writes."""
    movement = Movement("transfer-1", 30, bank.b, bank.a)
    others: list[Entry] = []

    def before(_: Sequence[Write]) -> None:
        if len(faulty.written) == 2:
            with pytest.raises(RefusedError) as refused:
                bank.over(bank.table).move(movement)
            others.append(refused.value.entry)

    faulty = FaultyTable(bank.table, before_write=before)
    with pytest.raises(RefusedError) as refused:
        bank.over(faulty).move(movement)
    assert [refused.value.entry] == others
    assert Entry.of(bank.table.get(asked(movement)) or {}) == others[0]
    assert len(faulty.written) == 2


def test_who_misses_the_money_five_times_over_is_asked_to_come_again(bank: Bank) -> None:
    """It comes before each refusal and is gone before each movement: five of either."""
    turns: list[Sequence[Write]] = []

    def before(writes: Sequence[Write]) -> None:
        nonce, is_refusal = f"other-{len(turns):04}", len(turns) % 2
        turns.append(writes)
        if is_refusal:
            bank.deposit(30, nonce)
        elif bank.balances[0]:
            bank.transfer(30, nonce)

    movement = Movement("transfer-1", 30, bank.b, bank.a)
    with pytest.raises(Unavailable, match="the same nonce"):
        bank.over(FaultyTable(bank.table, before_write=before)).move(movement)
    assert len(turns) == 10
    assert bank.table.get(asked(movement)) is None


def test_all_rounds_are_over_before_the_function_is() -> None:
    """Two calls a round, each tried again for 0.9 s: 5 x 2 x 0.9 s = 9 s, of 10 s."""
    functions = json.loads(CONFIG.read_text())["lambda_functions"]
    assert ROUNDS * 2 * Retry().budget < functions["api_handler"]["lambda_timeout"]


def test_an_entry_that_was_there_and_is_not_told_is_no_answer(bank: Bank) -> None:
    gone = FaultyTable(bank.table, before_write=raising(ConditionFailed({0: None})))
    with pytest.raises(Unavailable, match="the same nonce"):
        bank.over(gone).move(Movement("deposit-1", 1, bank.a))


def test_an_id_that_no_key_could_hold_is_that_of_no_wallet(bank: Bank) -> None:
    with pytest.raises(UnknownWalletError, match=r"no wallet x{30}$"):
        bank.over(bank.table).move(Movement("nonce-01", 1, bank.b, "x" * 3_000))


def test_two_who_ask_at_once_by_one_nonce_move_once(bank: Bank) -> None:
    bank.deposit(100)
    movement = Movement("transfer-1", 60, bank.b, bank.a)
    entries: list[Entry] = []

    def other(_: Sequence[Write]) -> None:
        entries.append(bank.over(bank.table).move(movement))

    mover = bank.over(FaultyTable(bank.table, before_write=once(other)))
    assert mover.move(movement) == entries[0]
    assert bank.balances == (40, 60)


def once(does: Callable[[Any], None]) -> Callable[[Any], None]:
    left = [does]

    def hook(given: object) -> None:
        if left:
            left.pop()(given)

    return hook


def test_a_new_wallet_is_empty_and_its_users_and_says_since_when(table: Table) -> None:
    made = opening.open_wallet(table, "user-a", NOW)
    assert made == opening.Wallet(made.wallet_id, "user-a", balance=0)
    assert opening.read(table, made.wallet_id) == made
    assert (table.get(wallet(made.wallet_id)) or {})["created"] == NOW


def test_a_user_has_one_wallet(bank: Bank) -> None:
    with pytest.raises(opening.HasWalletError, match=bank.a) as has:
        opening.open_wallet(bank.table, "user-a", NOW)
    assert has.value.wallet_id == bank.a
    assert opening.of_user(bank.table, "user-b").wallet_id == bank.b
    with pytest.raises(UnknownWalletError, match="the user has no wallet"):
        opening.of_user(bank.table, "nobody")


def test_a_wallet_that_is_missing_is_neither_read_nor_made_by_its_badge(bank: Bank) -> None:
    with pytest.raises(UnknownWalletError, match=f"no wallet {NOBODY}"):
        opening.publish(bank.table, NOBODY, is_public=True)
    with pytest.raises(UnknownWalletError, match=f"no wallet {NOBODY}"):
        opening.read(bank.table, NOBODY)
