"""A shop whose customers pay from their wallets, each order once, whenever it is killed.

VUMI_URL=http://127.0.0.1:8000 VUMI_TOKEN=… python shop.py
"""

from __future__ import annotations

import os
import sqlite3
import uuid
from dataclasses import dataclass

from wallets import NoAnswerError, RefusedError, Wallets

UNIT = 1_000_000
SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    id TEXT PRIMARY KEY,
    wallet TEXT NOT NULL,
    price INTEGER NOT NULL,
    state TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'paid', 'declined'))
)
"""


@dataclass(frozen=True)
class Shop:
    """The orders in an SQLite file, and the wallet that gets the money."""

    database: sqlite3.Connection
    wallets: Wallets
    till: str

    def __post_init__(self) -> None:
        self.database.execute(SCHEMA)

    def order(self, wallet: str, price: int) -> str:
        """Store an order before any money moves, and return its id."""
        order_id = str(uuid.uuid4())
        with self.database:
            self.database.execute(
                "INSERT INTO orders (id, wallet, price) VALUES (?, ?, ?)", (order_id, wallet, price)
            )
        return order_id

    def settle(self) -> None:
        """Let all new orders be paid. Call it after each order, at the start and once a minute."""
        new = "SELECT id, wallet, price FROM orders WHERE state = 'new' ORDER BY rowid"
        for order_id, wallet, price in self.database.execute(new).fetchall():
            state = self.pay(order_id, wallet, price)
            with self.database:
                self.database.execute("UPDATE orders SET state = ? WHERE id = ?", (state, order_id))

    def pay(self, order_id: str, wallet: str, price: int) -> str:
        """Transfer the price, and return the state of the order.

        The nonce is that of the order, so an order is paid once, however often this is called.
        """
        try:
            self.wallets.transfer(wallet, self.till, price, nonce=f"order-{order_id}")
        except RefusedError:
            return "declined"  # for ever: a customer who has more money orders again
        except NoAnswerError:
            return "new"  # perhaps paid: the next `settle` asks again
        return "paid"

    def state(self, order_id: str) -> str:
        """Return `new`, `paid` or `declined`."""
        found = self.database.execute("SELECT state FROM orders WHERE id = ?", (order_id,))
        return str(found.fetchone()[0])


def main() -> None:
    """Sell three things for 4.00 each to a customer who has 10.00."""
    wallets = Wallets(os.environ["VUMI_URL"], os.environ["VUMI_TOKEN"])
    till, customer = wallets.open(str(uuid.uuid4())), wallets.open(str(uuid.uuid4()))
    # The nonce of a deposit is the payment's number at your bank, which may report it twice.
    wallets.deposit(customer, 10 * UNIT, nonce="bank-00000001")
    wallets.deposit(customer, 10 * UNIT, nonce="bank-00000001")
    with sqlite3.connect("shop.db") as database:
        shop = Shop(database, wallets, till)
        orders = [shop.order(customer, 4 * UNIT) for _ in range(3)]
        shop.settle()
        for order_id in orders:
            print(f"order {order_id}: {shop.state(order_id)}")
    for name, wallet in (("till", till), ("customer", customer)):
        print(f"{name}: {wallets.balance(wallet) / UNIT:.2f}")


if __name__ == "__main__":
    main()
