"""The wallets, and their items in the table: the wallet, its user, its nonces and its journal.

A user has one wallet. A posting moves money, once for each nonce of the wallet that asks for it.
The result is stored under the nonce forever. An applied posting is an entry in the journal of each
of its wallets, for two days in the table, then in the archive.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from enum import StrEnum

from chalicelib import ulids
from chalicelib.http.errors import ClientError, NotFoundError
from chalicelib.storage.conditions import attr
from chalicelib.storage.items import Item, Key, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Put, Update
from chalicelib.units import Milliseconds

PARTITION = "WALLET#"
OWNERS = "OWNER#"
SORT = "WALLET"
ENTRY = "TX#"
NONCE = "NONCE#"
ID = ulids.CANONICAL
MAX_BALANCE = 2**63 - 1
"""The largest amount and the largest balance, in millionths of the unit of currency."""
HOT_SECONDS = 2 * 86_400
"""The time that an entry is kept in the table."""


class PostingError(ClientError):
    """A posting was not made, and nothing moved; the message says why."""


class UnknownWalletError(NotFoundError, PostingError):
    """There is no such wallet."""


class HasWalletError(ClientError):
    """The user has a wallet already."""

    status = 409
    code = "wallet_exists"

    def __init__(self, wallet_id: str) -> None:
        super().__init__(f"the user has a wallet: {wallet_id}")
        self.details = {"id": wallet_id}


@dataclass(frozen=True, slots=True)
class Wallet:
    """A wallet as it is stored. `balance` is in millionths; a public wallet has a badge."""

    wallet_id: str
    user_id: str
    balance: int
    is_public: bool = False


class PostingKind(StrEnum):
    """The kind of a posting."""

    DEPOSIT = "deposit"
    TRANSFER = "transfer"


class PostingOutcome(StrEnum):
    """The outcome of a posting: money moved, or the reason why it did not."""

    DONE = "done"
    INSUFFICIENT_FUNDS = "insufficient_funds"
    BALANCE_LIMIT = "balance_limit"


@dataclass(frozen=True, slots=True)
class Posting:
    """A request to move money: a deposit into a wallet, or a transfer between two.

    `source` is empty for a deposit. `amount` is in millionths.
    """

    nonce: str
    amount: int
    target: str
    source: str = ""

    @property
    def kind(self) -> PostingKind:
        return PostingKind.TRANSFER if self.source else PostingKind.DEPOSIT

    @property
    def asker(self) -> str:
        """Return the wallet whose nonce it is."""
        return self.source or self.target

    @property
    def wallets(self) -> list[str]:
        """Return the wallets whose balances it changes."""
        return [self.source, self.target] if self.source else [self.target]

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all but the nonce. It is kept forever: never change its input."""
        request = f"{self.kind} {self.amount} {self.source} {self.target}"
        return hashlib.sha256(request.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Entry:
    """A posting in the journal of a wallet.

    `entry_id` is a ULID, the same in both wallets' journals; the entries of a wallet are committed
    in the order of their ids. `at` is the time by the clock of the process that posted it.
    """

    entry_id: str
    posting: Posting
    at: Milliseconds

    @classmethod
    def of(cls, item: Item) -> Entry:
        """Return the entry of an item. Raises `ValueError` and `TypeError` if it has none."""
        return cls(
            entry_id=text(item, "SK").removeprefix(ENTRY),
            posting=Posting(
                nonce=text(item, "nonce"),
                amount=number(item, "amount"),
                target=text(item, "to"),
                source=text(item, "from"),
            ),
            at=number(item, "at"),
        )

    def item(self, wallet_id: str) -> Item:
        """Return the item of the entry in the journal of one of its wallets."""
        posting = self.posting
        return entry(wallet_id, self.entry_id).item(
            kind=str(posting.kind),
            nonce=posting.nonce,
            amount=posting.amount,
            to=posting.target,
            at=self.at,
            ttl=self.at // 1000 + HOT_SECONDS,
            **{"from": posting.source},
        )


@dataclass(frozen=True, slots=True)
class PostingResult:
    """The result of a posting, stored under its nonce forever.

    After a refusal, `entry` is in no journal, and `balance` is that of the wallet that had too
    little money or no room.
    """

    entry: Entry
    outcome: PostingOutcome = PostingOutcome.DONE
    balance: int = 0

    @classmethod
    def of(cls, item: Item, posting: Posting) -> PostingResult | None:
        """Return the result under a nonce of a posting; None if it was used for another one.

        Raises `ValueError` and `TypeError` if the item is not a nonce.
        """
        if text(item, "request") != posting.digest:
            return None
        return cls(
            Entry(text(item, "entry"), posting, number(item, "at")),
            PostingOutcome(text(item, "outcome")),
            number(item, "balance"),
        )

    @property
    def item(self) -> Item:
        """Return the item of the nonce. It has no `ttl`, so TTL never removes it."""
        item = nonce(self.entry.posting).item(
            request=self.entry.posting.digest,
            entry=self.entry.entry_id,
            at=self.entry.at,
            outcome=str(self.outcome),
        )
        return item if self.outcome is PostingOutcome.DONE else item | {"balance": self.balance}


def wallet(wallet_id: str) -> Key:
    """Return the key of a wallet."""
    return Key(PARTITION + wallet_id, SORT)


def owner(user_id: str) -> Key:
    """Return the key of the item that names a user's wallet."""
    return Key(OWNERS + user_id, SORT)


def nonce(posting: Posting) -> Key:
    """Return the key of a posting's nonce."""
    return Key(PARTITION + posting.asker, NONCE + posting.nonce)


def entry(wallet_id: str, entry_id: str) -> Key:
    """Return the key of an entry in the journal of a wallet."""
    return Key(PARTITION + wallet_id, ENTRY + entry_id)


def open_wallet(table: Table, user_id: str, now: Milliseconds) -> Wallet:
    """Open a wallet for a user who has none. Raises `HasWalletError` and `StorageError`."""
    wallet_id = ulids.new_ulid(now)
    mark = owner(user_id).item(wallet=wallet_id)
    made = wallet(wallet_id).item(user=user_id, balance=0, last="", created=now)
    try:
        table.write(Put(mark, condition=attr("SK").missing()), Put(made))
    except ConditionFailedError as failed:
        there = text(failed.items[0] or {}, "wallet")
        # If the answer to an earlier try was lost, the stored wallet is this one.
        if there != wallet_id:
            raise HasWalletError(there) from None
    return Wallet(wallet_id, user_id, 0)


def read(table: Table, wallet_id: str) -> Wallet:
    """Read a wallet. Raises `UnknownWalletError` and `StorageError`."""
    check(wallet_id)
    item = table.get(wallet(wallet_id))
    if item is None:
        raise unknown(wallet_id)
    return Wallet(
        wallet_id, text(item, "user"), number(item, "balance"), bool(number(item, "public"))
    )


def of_user(table: Table, user_id: str) -> Wallet:
    """Read the wallet of a user. Raises `UnknownWalletError` and `StorageError`."""
    item = table.get(owner(user_id))
    if item is None:
        raise UnknownWalletError("the user has no wallet")
    return read(table, text(item, "wallet"))


def publish(table: Table, wallet_id: str, *, is_public: bool) -> None:
    """Switch the badge of a wallet on or off. Raises `UnknownWalletError` and `StorageError`."""
    check(wallet_id)
    try:
        shown = {"public": int(is_public)}
        table.write(Update(wallet(wallet_id), values=shown, condition=attr("SK").exists()))
    except ConditionFailedError:
        raise unknown(wallet_id) from None


def check(wallet_id: str) -> None:
    """Raise `UnknownWalletError` unless a text has the form of an id: its key could be too long."""
    if ID.fullmatch(wallet_id) is None:
        raise unknown(wallet_id)


def unknown(wallet_id: str) -> UnknownWalletError:
    """Return the error of a wallet that does not exist."""
    return UnknownWalletError(f"there is no wallet {wallet_id[:30]}")
