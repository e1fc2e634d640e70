"""Moving money once: what was done and what was refused stays so, and nothing moves in between."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from ulid import ULID

from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Item, key_of
from chalicelib.storage.ports import Table
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import ConditionFailed, Delete, Write
from chalicelib.wallets import opening
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.amounts import MOST
from chalicelib.wallets.ledger import (
    MAX_WRITES,
    Ledger,
    NonceReusedError,
    RefusedError,
    SameWalletError,
    UnknownWalletError,
    later_id,
)
from chalicelib.wallets.wallet import HOT_SECONDS, Answer, Entry, Outcome, Posting, nonce, wallet
from simulation.clocks import NOON, ulid_of
from simulation.memory_table import MemoryTable
from simulation.tables import FaultyTable, raising

CONFIG = Path(__file__).parents[3] / ".chalice" / "config.json"
NOW = int(NOON * 1000)
NOBODY = "7" * 26
"""What could be a wallet's id and is none's."""


@pytest.fixture
def table() -> Table:
    return MemoryTable()


class Bank:
    """Wallets of a and b, and who moves between them."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.a = opening.open_wallet(table, "user-a", NOW).wallet_id
        self.b = opening.open_wallet(table, "user-b", NOW).wallet_id
        self.now = NOON

    def over(self, table: Table) -> Ledger:
        return Ledger(table, lambda: self.now)

    def deposit(self, amount: int, name: str = "deposit-1", to: str = "") -> Entry:
        return self.over(self.table).post(Posting(name, amount, to or self.a))

    def transfer(self, amount: int, name: str = "transfer-1") -> Entry:
        return self.over(self.table).post(Posting(name, amount, self.b, self.a))

    def journal(self, wallet_id: str) -> list[Item]:
        """The entries of a wallet, oldest first."""
        partition = wallets.PARTITION + wallet_id
        return self.table.query(partition, first="TX#", last="TX#~", limit=99)

    def answer(self, posting: Posting) -> Answer | None:
        """What its nonce has."""
        item = self.table.get(nonce(posting))
        return None if item is None else Answer.of(item, posting)

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
    for wallet_id in (bank.a, bank.b):
        item = bank.journal(wallet_id)[-1]
        assert Entry.of(item) == entry
        assert item == entry.item(wallet_id)
        assert item["SK"] == f"TX#{entry.entry_id}"
        assert item["ttl"] == int(NOON) + HOT_SECONDS


def test_a_nonce_has_the_answer_for_good_and_is_known_by_the_digest_of_its_request(
    bank: Bank,
) -> None:
    """The digest is compared with those of years ago: it may never change."""
    posting = Posting("nonce-01", 30, "B", "A")
    assert posting.digest == "c0f810c1920892ab1a5c0852c66eebb24b2a3b96bc649fdb99c1ac544fbc278a"
    bank.deposit(100)
    entry = bank.transfer(30)
    item = bank.table.get(nonce(entry.posting)) or {}
    assert item == {
        "PK": f"WALLET#{bank.a}",
        "SK": "NONCE#transfer-1",
        "request": entry.posting.digest,
        "entry": entry.entry_id,
        "at": NOW,
        "outcome": "done",
    }


@pytest.mark.parametrize("days", [2, 3, 4_000])
def test_a_retry_moves_nothing_however_late_it_comes(bank: Bank, days: int) -> None:
    """After TTL took the entries."""
    first = [bank.deposit(100), bank.transfer(30)]
    with pytest.raises(RefusedError) as refused:
        bank.transfer(71, "transfer-2")
    for item in bank.journal(bank.a) + bank.journal(bank.b):
        bank.table.write(Delete(key_of(item)))
    bank.now += days * 86_400
    assert [bank.deposit(100), bank.transfer(30)] == first
    with pytest.raises(RefusedError) as again:
        bank.transfer(71, "transfer-2")
    assert again.value.answer == refused.value.answer
    with pytest.raises(NonceReusedError):
        bank.deposit(101)
    assert bank.balances == (70, 30)
    assert bank.journal(bank.a) == bank.journal(bank.b) == []


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
        lambda bank: Posting("deposit-1", 6, bank.a),
        lambda bank: Posting("deposit-1", 5, bank.b, bank.a),
    ],
)
def test_a_nonce_that_was_used_for_another_movement_is_refused(
    bank: Bank, other: Callable[[Bank], Posting]
) -> None:
    bank.deposit(5)
    with pytest.raises(NonceReusedError):
        bank.over(bank.table).post(other(bank))
    assert bank.balances == (5, 0)


def test_what_a_wallet_has_can_be_transferred_and_no_more(bank: Bank) -> None:
    bank.deposit(100)
    with pytest.raises(RefusedError, match="has 100 millionths") as refused:
        bank.transfer(101)
    answer = refused.value.answer
    assert (answer.outcome, answer.balance) == (Outcome.INSUFFICIENT_FUNDS, 100)
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
    assert refused.value.answer.outcome is Outcome.BALANCE_LIMIT
    bank.deposit(1, "deposit-3", to=bank.b)
    with pytest.raises(RefusedError) as refused:
        bank.transfer(MOST)
    answer = refused.value.answer
    assert (answer.outcome, answer.balance) == (Outcome.BALANCE_LIMIT, 1)
    assert bank.balances == (MOST, 1)


def test_who_is_short_is_told_so_though_the_other_has_no_room_either(bank: Bank) -> None:
    bank.deposit(5)
    bank.deposit(MOST, "deposit-2", to=bank.b)
    with pytest.raises(RefusedError) as refused:
        bank.transfer(6)
    answer = refused.value.answer
    assert (answer.outcome, answer.balance) == (Outcome.INSUFFICIENT_FUNDS, 5)


def test_a_wallet_that_is_missing_is_named_and_keeps_no_nonce(bank: Bank) -> None:
    bank.deposit(10)
    ledger = bank.over(bank.table)
    for posting in (
        Posting("nonce-01", 1, "nobody"),
        Posting("nonce-01", 1, "nobody", bank.a),
        Posting("nonce-01", 1, bank.b, "nobody"),
    ):
        with pytest.raises(UnknownWalletError, match="no wallet nobody"):
            ledger.post(posting)
        assert bank.answer(posting) is None
    assert bank.balances == (10, 0)


def test_a_wallet_that_is_missing_is_named_though_the_other_is_short_too(bank: Bank) -> None:
    posting = Posting("nonce-01", 1, NOBODY, bank.a)
    with pytest.raises(UnknownWalletError, match=f"no wallet {NOBODY}"):
        bank.over(bank.table).post(posting)
    assert bank.answer(posting) is None


def test_a_wallet_transfers_nothing_to_itself(bank: Bank) -> None:
    bank.deposit(10)
    with pytest.raises(SameWalletError, match="to itself"):
        bank.over(bank.table).post(Posting("nonce-01", 1, bank.a, bank.a))
    assert bank.balances == (10, 0)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_movement_that_was_cut_off_took_place_once_or_not_at_all_and_asking_again_does_it(
    bank: Bank, when: str
) -> None:
    bank.deposit(100)
    hook: dict[str, Any] = {f"{when}_write": raising(Unavailable("no answer"))}
    faulty = FaultyTable(bank.table, **hook)
    posting = Posting("transfer-1", 30, bank.b, bank.a)
    with pytest.raises(Unavailable):
        bank.over(faulty).post(posting)
    assert bank.balances == ((100, 0) if when == "before" else (70, 30))
    bank.over(faulty).post(posting)
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

    ledger = bank.over(FaultyTable(bank.table, before_write=before))
    posting = Posting("transfer-1", 30, bank.b, bank.a)
    if enough:
        ledger.post(posting)
        assert bank.balances == (0, 30)
    else:
        with pytest.raises(RefusedError):
            ledger.post(posting)
        assert bank.balances == (15, 0)


def test_room_that_comes_between_is_seen(bank: Bank) -> None:
    """The other has all but 9; 21 go between the movement that failed and its refusal: 30 fit."""
    bank.deposit(30)
    bank.deposit(MOST - 9, "deposit-2", to=bank.b)
    calls: list[Sequence[Write]] = []

    def before(writes: Sequence[Write]) -> None:
        calls.append(writes)
        if len(calls) == 2:
            bank.over(bank.table).post(Posting("other-01", 21, bank.a, bank.b))

    ledger = bank.over(FaultyTable(bank.table, before_write=before))
    ledger.post(Posting("transfer-1", 30, bank.b, bank.a))
    assert bank.balances == (21, MOST)


def test_a_refusal_is_the_movement_that_failed_and_its_entry(bank: Bank) -> None:
    counting = FaultyTable(bank.table)
    with pytest.raises(RefusedError):
        bank.over(counting).post(Posting("transfer-1", 1, bank.b, bank.a))
    assert len(counting.written) == 2


def test_a_deposit_that_was_refused_stays_refused_though_there_is_room_by_then(bank: Bank) -> None:
    bank.deposit(MOST)
    with pytest.raises(RefusedError) as first:
        bank.deposit(1, "deposit-2")
    bank.transfer(1)
    with pytest.raises(RefusedError) as again:
        bank.deposit(1, "deposit-2")
    assert again.value.answer == first.value.answer
    assert bank.balances == (MOST - 1, 1)


def test_a_refusal_is_under_its_nonce_and_in_no_journal(bank: Bank) -> None:
    with pytest.raises(RefusedError) as refused:
        bank.transfer(1)
    answer = refused.value.answer
    assert bank.answer(answer.entry.posting) == answer
    item = bank.table.get(nonce(answer.entry.posting)) or {}
    assert "ttl" not in item
    assert bank.journal(bank.a) == bank.journal(bank.b) == []


def test_two_who_are_refused_at_once_by_one_nonce_have_one_refusal(bank: Bank) -> None:
    """The other one's comes between the movement that failed and its refusal: two writes."""
    posting = Posting("transfer-1", 30, bank.b, bank.a)
    others: list[Answer] = []

    def before(_: Sequence[Write]) -> None:
        if len(faulty.written) == 2:
            with pytest.raises(RefusedError) as refused:
                bank.over(bank.table).post(posting)
            others.append(refused.value.answer)

    faulty = FaultyTable(bank.table, before_write=before)
    with pytest.raises(RefusedError) as refused:
        bank.over(faulty).post(posting)
    assert [refused.value.answer] == others
    assert bank.answer(posting) == others[0]
    assert len(faulty.written) == 2


def test_who_misses_the_money_five_times_over_is_asked_to_come_again(bank: Bank) -> None:
    """It comes before each refusal and is gone before each posting: five of either."""
    turns: list[Sequence[Write]] = []

    def before(writes: Sequence[Write]) -> None:
        name, is_refusal = f"other-{len(turns):04}", len(turns) % 2
        turns.append(writes)
        if is_refusal:
            bank.deposit(30, name)
        elif bank.balances[0]:
            bank.transfer(30, name)

    posting = Posting("transfer-1", 30, bank.b, bank.a)
    with pytest.raises(Unavailable, match="the same nonce"):
        bank.over(FaultyTable(bank.table, before_write=before)).post(posting)
    assert len(turns) == 10
    assert bank.answer(posting) is None


def test_all_writes_are_over_before_the_function_is() -> None:
    """10, each tried again for 0.9 s: 9 s, of 10 s."""
    functions = json.loads(CONFIG.read_text())["lambda_functions"]
    assert MAX_WRITES * Retry().budget < functions["api_handler"]["lambda_timeout"]


def test_a_nonce_that_is_there_and_is_not_told_is_no_answer(bank: Bank) -> None:
    gone = FaultyTable(bank.table, before_write=raising(ConditionFailed({0: None})))
    with pytest.raises(Unavailable, match="the same nonce"):
        bank.over(gone).post(Posting("deposit-1", 1, bank.a))


def test_an_id_that_no_key_could_hold_is_that_of_no_wallet(bank: Bank) -> None:
    with pytest.raises(UnknownWalletError, match=r"no wallet x{30}$"):
        bank.over(bank.table).post(Posting("nonce-01", 1, bank.b, "x" * 3_000))


def test_two_who_ask_at_once_by_one_nonce_move_once(bank: Bank) -> None:
    bank.deposit(100)
    posting = Posting("transfer-1", 60, bank.b, bank.a)
    entries: list[Entry] = []

    def other(_: Sequence[Write]) -> None:
        entries.append(bank.over(bank.table).post(posting))

    ledger = bank.over(FaultyTable(bank.table, before_write=once(other)))
    assert ledger.post(posting) == entries[0]
    assert bank.balances == (40, 60)


def once(does: Callable[[Any], None]) -> Callable[[Any], None]:
    left = [does]

    def hook(given: object) -> None:
        if left:
            left.pop()(given)

    return hook


# ---- entries are committed in the order of their ids


def test_a_slow_transaction_commits_no_entry_that_is_older_than_the_last(bank: Bank) -> None:
    """Another deposit comes between its id and its write; so it takes a later one."""
    ids: list[str] = []

    def other(_: Sequence[Write]) -> None:
        bank.now += 1
        ids.append(bank.deposit(2, "deposit-2").entry_id)

    slow = FaultyTable(bank.table, before_write=once(other))
    ids.append(bank.over(slow).post(Posting("deposit-1", 1, bank.a)).entry_id)
    assert ids == sorted(ids)
    assert [item["SK"] for item in bank.journal(bank.a)] == [f"TX#{one}" for one in ids]
    assert len(slow.written) == 2
    assert bank.balances == (3, 0)


@pytest.mark.parametrize("is_source_ahead", [True, False])
def test_an_entry_is_later_than_the_last_of_both_wallets_though_the_clock_is_behind(
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


def test_a_clock_that_is_not_behind_moves_by_one_write(bank: Bank) -> None:
    counting = FaultyTable(bank.table)
    for number in range(9):
        bank.now += 1e-5
        bank.over(counting).post(Posting(f"deposit-{number}", 1, bank.a))
    assert len(counting.written) == 9


def test_a_wallet_says_which_entry_was_its_last(bank: Bank) -> None:
    bank.deposit(100)
    entry = bank.transfer(30)
    items = [bank.table.get(wallet(one)) or {} for one in (bank.a, bank.b)]
    assert {item["last"] for item in items} == {entry.entry_id}


def test_who_is_always_overtaken_is_asked_to_come_again(bank: Bank) -> None:
    def overtake(_: Sequence[Write]) -> None:
        bank.now += 1
        bank.deposit(1, f"other-{int(bank.now)}")

    slow = FaultyTable(bank.table, before_write=overtake)
    with pytest.raises(Unavailable, match="the same nonce"):
        bank.over(slow).post(Posting("deposit-1", 1, bank.a))
    assert len(slow.written) == MAX_WRITES
    assert bank.balances == (MAX_WRITES, 0)


def test_an_id_is_by_the_clock_and_in_its_order_within_a_millisecond_too() -> None:
    """The float of a time of today is exact to a quarter of a microsecond."""
    most, least = (lambda bits: 2**bits - 1), (lambda _: 0)
    assert later_id(NOON, "", least) == ulid_of(NOON)
    assert later_id(NOON, "", most) < later_id(NOON + 1e-6, "", least)
    assert later_id(NOON + 1, later_id(NOON, "", most), least) == ulid_of(NOON + 1)


def test_ids_that_follow_a_clock_ahead_stay_in_its_millisecond_and_differ() -> None:
    """A million of them, each by the longest step."""
    first = later_id(NOON + 100, "", lambda _: 0)
    steps = [later_id(NOON, first, lambda _, step=step: step) for step in (0, 1)]  # type: ignore[misc]
    assert first < steps[0] < steps[1]
    ahead = int(ULID.from_str(later_id(NOON, first, lambda bits: 2**bits - 1)))
    assert 1_000_000 * (ahead - int(ULID.from_str(first))) < 2**80


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
