"""Moving money: once, whoever asks how often, whatever is cut off on the way.

A movement is one transaction over the balances and the journals of its wallets, on the condition
that the nonce is new. So it happened if and only if the journal has it, and asking again finds the
entry and answers as it did the first time. A refusal is an entry too, written on the condition that
what was refused is still impossible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ulid import ULID

from chalicelib.ports import (
    Check,
    ConditionFailed,
    Item,
    Key,
    Put,
    Table,
    Unavailable,
    Update,
    attribute,
    number,
)
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.amounts import MOST
from chalicelib.wallets.wallet import PARTITION, Entry, Movement, Outcome

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import ConditionBase

ROUNDS = 5
"""How often a movement and its refusal may miss each other, before the caller is asked to wait.

Each may use up the `budget` of its retries; the function must not end before its answer.
"""


class MovementError(Exception):
    """A movement did not take place, and nothing moved; the message says why."""


class UnknownWalletError(MovementError):
    """There is no such wallet."""


class SameWalletError(MovementError):
    """A wallet can't transfer to itself."""


class NonceReusedError(MovementError):
    """The wallet has used the nonce for another movement."""


class RefusedError(MovementError):
    """What was asked for is impossible now; asking again with this nonce is answered the same."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(REASONS[entry.outcome].format(balance=entry.balance))
        self.entry = entry


REASONS = {
    Outcome.INSUFFICIENT_FUNDS: "the wallet has {balance} millionths, which is not enough",
    Outcome.BALANCE_LIMIT: f"a balance is {MOST} millionths at most, and this has {{balance}}",
}


@dataclass(frozen=True, slots=True)
class _Side:
    """A balance that a movement changes: by how much, when it may, and why else it is refused."""

    key: Key
    change: int
    outcome: Outcome

    @property
    def possible(self) -> ConditionBase:
        if self.change < 0:
            return attribute("balance").gte(-self.change)
        return attribute("balance").lte(MOST - self.change)

    @property
    def impossible(self) -> ConditionBase:
        if self.change < 0:
            return attribute("balance").lt(-self.change)
        return attribute("balance").gt(MOST - self.change)


@dataclass(frozen=True, slots=True)
class Mover:
    """Moves money in a table; `clock` is seconds since 1970."""

    table: Table
    clock: Callable[[], float]

    def move(self, movement: Movement) -> Entry:
        """Let a movement take place once; returns its entry, of whenever it did.

        Raises `MovementError`, and `StorageError` where it may or may not have taken place: asking
        again tells.
        """
        if movement.source == movement.target:
            raise SameWalletError("a wallet can't transfer to itself")
        for wallet_id in (movement.source, movement.target):
            if wallet_id:
                check(wallet_id)
        entry = Entry(str(ULID()), movement, int(self.clock() * 1000))
        sides = _sides(movement)
        for _ in range(ROUNDS):
            try:
                self._do(entry, sides)
            except ConditionFailed as failed:
                if (answer := self._answer(entry, sides, failed)) is None:
                    continue
                return answer
            return entry
        raise Unavailable("others move the same money: ask again with the same nonce")

    def _do(self, entry: Entry, sides: list[_Side]) -> None:
        """The journal of who asked comes first: its condition tells who was first."""
        movement = entry.movement
        journals = [movement.asker] + ([movement.target] if movement.source else [])
        self.table.write(
            *(
                Put(entry.item(wallet_id), condition=attribute("SK").not_exists())
                for wallet_id in journals
            ),
            *(
                Update(side.key, add={"balance": side.change}, condition=side.possible)
                for side in sides
            ),
        )

    def _answer(self, entry: Entry, sides: list[_Side], failed: ConditionFailed) -> Entry | None:
        """What a movement comes to that could not be done; None to try again.

        TTL removes the entries of a transfer one by one: that of the target alone tells of it too.
        """
        journals = 2 if entry.movement.source else 1
        for place in range(journals):
            if place in failed.items:
                return _first(entry, failed.items[place])
        failing = [
            (side, failed.items[place])
            for place, side in enumerate(sides, journals)
            if place in failed.items
        ]
        # A wallet that is missing keeps no nonce, whatever the other one has.
        side, standing = min(failing, key=lambda one: one[1] is not None)
        return self._refuse(entry, side, standing)

    def _refuse(self, entry: Entry, side: _Side, standing: Item | None) -> Entry | None:
        if standing is None:
            raise UnknownWalletError(unknown(side.key.pk.removeprefix(PARTITION)))
        refused = replace(entry, outcome=side.outcome, balance=number(standing, "balance"))
        put = Put(refused.item(entry.movement.asker), condition=attribute("SK").not_exists())
        try:
            self.table.write(put, Check(side.key, condition=side.impossible))
        except ConditionFailed as failed:
            return _first(refused, failed.items[0]) if 0 in failed.items else None
        raise RefusedError(refused)


def check(wallet_id: str) -> None:
    """Raise `UnknownWalletError` for what is the id of no wallet, and may be too long for a key."""
    if wallets.ID.fullmatch(wallet_id) is None:
        raise UnknownWalletError(unknown(wallet_id))


def unknown(wallet_id: str) -> str:
    """What is said of a wallet that there is not."""
    return f"there is no wallet {wallet_id[:30]}"


def _first(entry: Entry, item: Item | None) -> Entry:
    """The answer of the first time. Raises `MovementError`."""
    if item is None:
        raise Unavailable("the journal changed meanwhile: ask again with the same nonce")
    first = Entry.of(item)
    if first.movement != entry.movement:
        raise NonceReusedError("the wallet has used this nonce for another movement")
    if first.outcome is not Outcome.DONE:
        raise RefusedError(first)
    return first


def _sides(movement: Movement) -> list[_Side]:
    sides = [_Side(wallets.wallet(movement.target), movement.amount, Outcome.BALANCE_LIMIT)]
    if movement.source:
        short = Outcome.INSUFFICIENT_FUNDS
        sides.insert(0, _Side(wallets.wallet(movement.source), -movement.amount, short))
    return sides
