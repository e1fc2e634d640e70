"""The functions that open wallets, one for each user, and read them."""

from __future__ import annotations

from dataclasses import dataclass

from chalicelib.http.errors import ClientError
from chalicelib.storage.conditions import attr
from chalicelib.storage.items import Item, number, text
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailedError, Put, Update
from chalicelib.ulids import new_ulid
from chalicelib.units import Milliseconds
from chalicelib.wallets.ledger import UnknownWalletError, check, unknown
from chalicelib.wallets.wallet import owner, wallet


class HasWalletError(ClientError):
    """The user has a wallet already."""

    status = 409
    code = "wallet_exists"

    def __init__(self, wallet_id: str) -> None:
        super().__init__(f"the user has a wallet: {wallet_id}")
        self.wallet_id = wallet_id
        self.details = {"id": wallet_id}


@dataclass(frozen=True, slots=True)
class Wallet:
    """A wallet as it is stored. `balance` is in millionths; a public wallet has a badge."""

    wallet_id: str
    user_id: str
    balance: int
    is_public: bool = False


def open_wallet(table: Table, user_id: str, now: Milliseconds) -> Wallet:
    """Open a wallet for a user who has none. Raises `HasWalletError` and `StorageError`."""
    wallet_id = new_ulid(now)
    key, owned = wallet(wallet_id), owner(user_id)
    made: Item = {
        "PK": key.pk,
        "SK": key.sk,
        "user": user_id,
        "balance": 0,
        "last": "",
        "created": now,
    }
    mark: Item = {"PK": owned.pk, "SK": owned.sk, "wallet": wallet_id}
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
        raise UnknownWalletError(unknown(wallet_id))
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
        table.write(
            Update(
                wallet(wallet_id),
                values={"public": int(is_public)},
                condition=attr("SK").exists(),
            )
        )
    except ConditionFailedError:
        raise UnknownWalletError(unknown(wallet_id)) from None
