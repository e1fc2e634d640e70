"""The ledger: posts each deposit and transfer exactly once, even if requests are retried.

A posting is one transaction over its nonce, the journals and the balances of its wallets, on the
condition that the nonce does not exist. The nonce is kept forever, so any later retry finds it and
gets the same result. A refusal is stored under its nonce too, on the condition that the posting is
still impossible.

The transaction also sets `last` of each wallet to the entry's id, on the condition that it was
lower. So a wallet's entries are committed in the order of their ids, and no entry ever appears
among those that a reader has already passed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from chalicelib.http.errors import BadRequestError
from chalicelib.storage.conditions import Condition, attr
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Key, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Check, ConditionFailedError, Put, Update, Write
from chalicelib.ulids import from_number, to_number
from chalicelib.units import Seconds, to_milliseconds
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.wallet import MAX_BALANCE, Entry, Posting, PostingOutcome, PostingResult

PAGE = 50
"""Entries of one page of a journal."""
AFTER_EVERY_ID = "~"
Attempt: TypeAlias = tuple[PostingResult, tuple[Write, ...]]
"""A result and the writes that make it true, that of the nonce first."""

MAX_WRITES = 10
"""The number of writes of one posting before the caller is asked to try again.

Each may use up the `budget` of its retries, and the function must answer before its timeout.
"""
FRACTION_BITS = 10
"""Bits of an id that hold the time within its millisecond."""
RANDOM_BITS = 80 - FRACTION_BITS
"""The random bits of a ULID, without those that hold the fraction."""
STEP_BITS = 60
"""Random bits of the step after an id of a clock ahead; a millisecond has room for 2^20 steps."""


class SameWalletError(wallets.PostingError):
    """A wallet can't transfer to itself."""

    code = "same_wallet"


class NonceReusedError(wallets.PostingError):
    """The wallet has used the nonce for another posting."""

    status = 422
    code = "nonce_reused"


class RefusedError(wallets.PostingError):
    """The posting was impossible; every retry with its nonce gets the same result.

    The error has the balance of the asker's wallet, never that of a transfer's target.
    """

    status = 409

    def __init__(self, result: PostingResult) -> None:
        is_target = result.outcome is PostingOutcome.BALANCE_LIMIT and result.entry.posting.source
        reason = TARGET_FULL if is_target else REASONS[result.outcome]
        super().__init__(reason.format(balance=result.balance))
        self.result = result
        self.code = str(result.outcome)
        self.details = {} if is_target else {"balance": str(result.balance)}


TARGET_FULL = "the target has no room for so much"
REASONS = {
    PostingOutcome.INSUFFICIENT_FUNDS: "the wallet has {balance} millionths, which is not enough",
    PostingOutcome.BALANCE_LIMIT: (
        f"a balance is {MAX_BALANCE} millionths at most, and this has {{balance}}"
    ),
}


@dataclass(frozen=True, slots=True)
class _Side:
    """A wallet whose balance a posting changes, and the outcome if it can't."""

    key: Key
    change: int
    outcome: PostingOutcome

    def update(self, entry_id: str) -> Update:
        """Return the write that changes the balance and makes this the last entry."""
        return Update(
            self.key,
            values={"last": entry_id},
            add={"balance": self.change},
            condition=self.conditions[0] & (attr("last") < entry_id),
        )

    def allows(self, item: Item) -> bool:
        """Return whether the wallet, as it is stored, can take the change."""
        return 0 <= number(item, "balance") + self.change <= MAX_BALANCE

    @property
    def conditions(self) -> tuple[Condition, Condition]:
        """Return the condition that the wallet can take the change, and that it can't."""
        balance, room = attr("balance"), MAX_BALANCE - self.change
        if self.change < 0:
            return balance >= -self.change, balance < -self.change
        return balance <= room, balance > room


@dataclass(frozen=True, slots=True)
class Ledger:
    """The ledger in a table; `random_bits` is as in `secrets`."""

    table: Table
    clock: Callable[[], Seconds]
    random_bits: Callable[[int], int] = secrets.randbits

    def post(self, posting: Posting) -> Entry:
        """Apply a posting once, and return its entry, also to a retry.

        Raises `PostingError`. Raises `StorageError` if it is unknown whether the posting was
        applied: a retry gets the result.
        """
        _check(posting)
        result, writes = self._make_attempt(posting)
        for _ in range(MAX_WRITES):
            try:
                self.table.write(*writes)
            except ConditionFailedError as failed:
                standing = {writes[place].key: item for place, item in failed.items.items()}
                if (key := wallets.nonce(posting)) in standing:
                    return _check_outcome(_read_result(posting, standing[key]))
                result, writes = self._make_next_attempt(posting, standing)
            else:
                return _check_outcome(result)
        raise UnavailableError("others move the same money: ask again with the same nonce")

    def _make_next_attempt(self, posting: Posting, standing: Mapping[Key, Item | None]) -> Attempt:
        """Return the next attempt, from the wallets whose conditions failed.

        If a wallet is missing, no nonce is stored, whatever the other wallet has.
        """
        for key, item in standing.items():
            if item is None:
                raise wallets.unknown(key.pk.removeprefix(wallets.PARTITION))
        there = {key: item for key, item in standing.items() if item is not None}
        for side in _list_sides(posting):
            if side.key in there and not side.allows(there[side.key]):
                balance = number(there[side.key], "balance")
                result = PostingResult(self._make_entry(posting), side.outcome, balance)
                nonce = Put(result.item, condition=attr("SK").missing())
                return result, (nonce, Check(side.key, side.conditions[1]))
        return self._make_attempt(posting, max(text(item, "last") for item in there.values()))

    def _make_attempt(self, posting: Posting, last: str = "") -> Attempt:
        """Return the attempt to move the money, with an entry that is later than `last`."""
        entry = self._make_entry(posting, last)
        result = PostingResult(entry)
        return result, (
            Put(result.item, condition=attr("SK").missing()),
            *(Put(entry.item(wallet_id)) for wallet_id in posting.wallets),
            *(side.update(entry.entry_id) for side in _list_sides(posting)),
        )

    def _make_entry(self, posting: Posting, last: str = "") -> Entry:
        now = self.clock()
        return Entry(later_id(now, last, self.random_bits), posting, to_milliseconds(now))


def later_id(now: Seconds, last: str, random_bits: Callable[[int], int]) -> str:
    """Return a ULID of the time `now` that is later than `last`.

    If `last` is from a clock ahead, the id is a random step after it, far less than a millisecond.
    So ids are never further ahead than the clock that was furthest ahead, and two ids after the
    same `last` differ.
    """
    fractions = int(now * 1000 * 2**FRACTION_BITS)
    by_clock = fractions << RANDOM_BITS | random_bits(RANDOM_BITS)
    after_last = to_number(last) + 1 + random_bits(STEP_BITS) if last else 0
    return from_number(max(by_clock, after_last))


def _check(posting: Posting) -> None:
    if posting.source == posting.target:
        raise SameWalletError("a wallet can't transfer to itself")
    for wallet_id in posting.wallets:
        wallets.check(wallet_id)


def _read_result(posting: Posting, item: Item | None) -> PostingResult:
    """Return the stored result of the nonce. Raises `NonceReusedError` and `UnavailableError`."""
    if item is None:
        raise UnavailableError("storage did not return the nonce: ask again with the same nonce")
    if (result := PostingResult.of(item, posting)) is None:
        raise NonceReusedError("the wallet has used this nonce for another movement")
    return result


def _check_outcome(result: PostingResult) -> Entry:
    """Return the entry of an applied posting. Raises `RefusedError`."""
    if result.outcome is not PostingOutcome.DONE:
        raise RefusedError(result)
    return result.entry


def _list_sides(posting: Posting) -> list[_Side]:
    sides = [_Side(wallets.wallet(posting.target), posting.amount, PostingOutcome.BALANCE_LIMIT)]
    if posting.source:
        short = PostingOutcome.INSUFFICIENT_FUNDS
        sides.insert(0, _Side(wallets.wallet(posting.source), -posting.amount, short))
    return sides


def read_journal(
    table: Table, wallet_id: str, cursor: str = "", *, size: int = PAGE
) -> tuple[list[Entry], str]:
    """Read a page of up to `size` entries, newest first, and the cursor of the next page.

    The cursor is empty at the end. Raises `BadRequestError` and `StorageError`.

    A cursor is the id of the last entry of the page before. New entries have higher ids than all
    that were read, so a reader misses no entry and sees none twice.
    """
    if cursor and wallets.ID.fullmatch(cursor) is None:
        raise BadRequestError("cursor: give the one of the page before")
    # The text before a cursor is after every lower id, because all have one length.
    last = cursor[:-1] + chr(ord(cursor[-1]) - 1) if cursor else AFTER_EVERY_ID
    found = table.query(
        wallets.PARTITION + wallet_id,
        first=wallets.ENTRY,
        last=wallets.ENTRY + last,
        descending=True,
        limit=size,
    )
    entries = [Entry.of(item) for item in found]
    return entries, entries[-1].entry_id if len(entries) == size else ""
