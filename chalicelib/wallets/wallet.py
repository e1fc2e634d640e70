"""What lies in the table for a wallet: itself, whose it is, and its journal.

A journal entry is a movement as one wallet has it. The wallet that asked for it, by a nonce of its
own, has it under that nonce, which is what makes the movement happen once; the other wallet of a
transfer has it under both. An entry lives for two days; then TTL removes it, and it goes to the
archive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from chalicelib.ports import Item, Key, number, text

PARTITION = "WALLET#"
OWNERS = "OWNER#"
SORT = "WALLET"
ENTRY = "TX#"
ID = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}")
"""A ULID."""
HOT_SECONDS = 2 * 86_400
"""How long an entry is in the table, and a nonce answers as it did the first time."""
LATEST = "one_partition"
"""The sort key of the local index of that name: entries that moved something have it, by time."""


class Kind(StrEnum):
    """What was asked for."""

    DEPOSIT = "deposit"
    TRANSFER = "transfer"


class Outcome(StrEnum):
    """How it ended: it was done, or refused, and nothing moved."""

    DONE = "done"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    BALANCE_LIMIT = "balance_limit"


@dataclass(frozen=True, slots=True)
class Movement:
    """A movement that a wallet asks for: a deposit into it, or a transfer from it.

    `source` is empty for a deposit. `amount` is in millionths.
    """

    nonce: str
    amount: int
    target: str
    source: str = ""

    @property
    def kind(self) -> Kind:
        return Kind.TRANSFER if self.source else Kind.DEPOSIT

    @property
    def asker(self) -> str:
        """The wallet whose nonce it is."""
        return self.source or self.target


@dataclass(frozen=True, slots=True)
class Entry:
    """A movement in the journal of a wallet.

    `entry_id` is a ULID, the same in both wallets' journals; `at` is milliseconds since 1970.
    `balance` is that of the wallet that was short of funds or of room, where it was refused.
    """

    entry_id: str
    movement: Movement
    at: int
    outcome: Outcome = Outcome.DONE
    balance: int = 0

    @classmethod
    def of(cls, item: Item) -> Entry:
        """The entry that an item is. Raises `ValueError` and `TypeError` for any other."""
        return cls(
            entry_id=text(item, "entry"),
            movement=Movement(
                nonce=text(item, "nonce"),
                amount=number(item, "amount"),
                target=text(item, "to"),
                source=text(item, "from"),
            ),
            at=number(item, "at"),
            outcome=Outcome(text(item, "outcome")),
            balance=number(item, "balance"),
        )

    def item(self, wallet_id: str) -> Item:
        """The entry as the journal of one of its wallets has it."""
        movement = self.movement
        key = asked(movement) if wallet_id == movement.asker else received(movement)
        item: Item = {
            "PK": key.pk,
            "SK": key.sk,
            "entry": self.entry_id,
            "kind": str(movement.kind),
            "nonce": movement.nonce,
            "amount": movement.amount,
            "to": movement.target,
            "from": movement.source,
            "at": self.at,
            "outcome": str(self.outcome),
            "ttl": self.at // 1000 + HOT_SECONDS,
        }
        moved = self.outcome is Outcome.DONE
        return item | ({LATEST: self.entry_id} if moved else {"balance": self.balance})


def wallet(wallet_id: str) -> Key:
    """Where a wallet lies."""
    return Key(PARTITION + wallet_id, SORT)


def owner(user_id: str) -> Key:
    """Where it is told which wallet is a user's."""
    return Key(OWNERS + user_id, SORT)


def asked(movement: Movement) -> Key:
    """Where the wallet that asked for a movement has it."""
    return Key(PARTITION + movement.asker, ENTRY + movement.nonce)


def received(movement: Movement) -> Key:
    """Where the target of a transfer has it: no nonce has the sign between."""
    return Key(PARTITION + movement.target, f"{ENTRY}{movement.source}#{movement.nonce}")
