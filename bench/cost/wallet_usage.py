"""The usage of a posting on AWS, counted from runs of the handler over moto."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench import aws_events as events
from bench.cost.bill import Prices
from bench.cost.deployed import Deployed
from bench.cost.invocations import API, ARCHIVE, Design, Invocation, Runner, running
from bench.cost.metering import item_bytes
from bench.cost.simulate_views import Agenda
from chalicelib.aws.attribute_values import encode_item
from chalicelib.storage.items import Item, text
from chalicelib.wallets import opening
from chalicelib.wallets.journal import PAGE
from chalicelib.wallets.routes import WALLETS
from chalicelib.wallets.wallet import Posting, entry, nonce

DEPOSIT, TRANSFER = "a deposit", "a transfer"
AGAIN, REFUSED = "the same transfer again", "a transfer that is refused"
BALANCE, JOURNAL = "a balance", f"a page of {PAGE} transactions"
USERS = ("6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11", "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d12")
NONCE_LENGTH = 36
"""The length of a UUID, which most clients will use."""
AMOUNT = 12_500_000


@dataclass
class Bank:
    """Two wallets of a stack, and a client of them."""

    runner: Runner
    agenda: Agenda
    wallets: tuple[str, str]
    _nonces: int = 0

    def deposit(self) -> Invocation:
        """Deposit into the first wallet."""
        path = f"{WALLETS}/{self.wallets[0]}/deposit"
        return self._ask(events.put_posting(path, self._body(AMOUNT)))

    def transfer(
        self, amount: int = AMOUNT, status: int = 204, *, again: bool = False
    ) -> Invocation:
        """Transfer from the first wallet to the second, perhaps with the last nonce again."""
        first, second = self.wallets
        body = self._body(amount, again=again)
        return self._ask(events.put_posting(f"{WALLETS}/{first}/transfer/{second}", body), status)

    def get(self, what: str) -> Invocation:
        """Get the `balance` or the `transactions` of the first wallet."""
        return self._ask(events.get_of_a_wallet(f"{WALLETS}/{self.wallets[0]}/{what}"), 200)

    def archive(self, count: int) -> Invocation:
        """Archive a batch of the stream with this many entries, of other wallets."""
        return self.runner.invoke(ARCHIVE, count, events.removed_entries(count))[0]

    def items(self) -> tuple[Item, Item]:
        """Return the last transfer's nonce, and its entry in the second wallet's journal."""
        first, second = self.wallets
        table = self.runner.table
        answered = table.get(nonce(Posting(self._nonce(), AMOUNT, second, first))) or {}
        return answered, table.get(entry(second, text(answered, "entry"))) or {}

    def _body(self, amount: int, *, again: bool = False) -> dict[str, str]:
        self._nonces += not again
        return {"amount": str(amount), "nonce": self._nonce()}

    def _nonce(self) -> str:
        return f"{self._nonces:0{NONCE_LENGTH}}"

    def _ask(self, event: Mapping[str, Any], status: int = 204) -> Invocation:
        self.agenda.now += 1
        return self.runner.invoke(API, 0, event, status)[0]


@dataclass(frozen=True, slots=True)
class CountedWallets:
    """The counted usage: the run of each request, and the bytes of a nonce and of an entry.

    `archived` is a full batch of the stream, `archived_alone` a batch of one entry.
    """

    prices: Prices
    deployed: Deployed
    runs: Mapping[str, Invocation]
    nonce_bytes: int
    entry_bytes: int
    archived: Invocation
    archived_alone: Invocation


@contextmanager
def bank_of(deployed: Deployed) -> Iterator[Bank]:
    """Run a stack with two empty wallets."""
    agenda = Agenda()
    with running(Design.vu_mi, deployed.function_names, lambda: agenda.now) as runner:
        ids = [opening.open_wallet(runner.table, user, 0).wallet_id for user in USERS]
        yield Bank(runner, agenda, (ids[0], ids[1]))


def count_wallets(prices: Prices, deployed: Deployed) -> CountedWallets:
    """Run every request. Raises `RuntimeError` if an answer is unexpected."""
    with bank_of(deployed) as bank:
        runs = {DEPOSIT: bank.deposit(), TRANSFER: bank.transfer()}
        nonce_bytes, entry_bytes = (item_bytes(encode_item(item)) for item in bank.items())
        runs[AGAIN] = bank.transfer(again=True)
        runs[REFUSED] = bank.transfer(AMOUNT + 1, 409)
        runs[BALANCE] = bank.get("balance")
        for _ in range(PAGE):
            bank.deposit()
        runs[JOURNAL] = bank.get("transactions")
        full, alone = (bank.archive(count) for count in (deployed.archive_batch, 1))
    return CountedWallets(prices, deployed, runs, nonce_bytes, entry_bytes, full, alone)
