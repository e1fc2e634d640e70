"""One machine: transfers per second, each on the disk before its answer, and a check of balances.

The yardstick is `/healthz` of the same server, as for hits. Transfers go between any two of many
wallets, or always between the same two.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from bench.measuring import interleaved
from bench.speed.load import Load, Request, compared
from bench.speed.server import CONNECTIONS, Server, running
from chalicelib.http import tokens
from chalicelib.wallets import opening
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import Posting
from simulation.report import Report
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

Found = TypeVar("Found")

ROUNDS = 4
REQUESTS = 2_000
YARDSTICK = "/healthz"
TOKEN = tokens.new_token()
SETTINGS = {"API_TOKEN_DIGESTS": tokens.digest(TOKEN)}
WALLETS, HOT = 10_000, 2
START = 1_000_000
"""The first balance of each wallet, more than it could give away."""


class Bank:
    """The wallets of a server, and the balance that each must have."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._nonces = count()
        self._random = random.Random(1)  # noqa: S311  the same transfers in each run
        with_wallets = self._in_file(_open_wallets)
        self.expected = Counter(dict.fromkeys(with_wallets, START))

    def transfers(self, wallets: int) -> list[Request]:
        """Return new requests for transfers among this many wallets."""
        among = list(self.expected)[:wallets]
        return [self._transfer(*self._random.sample(among, 2)) for _ in range(REQUESTS)]

    def _transfer(self, source: str, target: str) -> Request:
        amount = self._random.randrange(1, 10)
        self.expected.update({source: -amount, target: amount})
        body = {"amount": str(amount), "nonce": f"transfer-{next(self._nonces)}"}
        path = f"/api/v1/wallets/{source}/transfer/{target}"
        return Request(path, json.dumps(body), TOKEN, "PUT")

    def wrong(self) -> str:
        """Describe wrong balances after the server has stopped; empty if there are none."""
        balances = self._in_file(lambda _, table: _balances(table, list(self.expected)))
        others = sum(balances[one] != balance for one, balance in self.expected.items())
        missing = WALLETS * START - sum(balances.values())
        return f"{others} balances are wrong, {missing} are missing" if others or missing else ""

    def _in_file(self, does: Callable[[Database, SqliteTable], Found]) -> Found:
        database = Database(self._path)
        try:
            return does(database, SqliteTable(database))
        finally:
            database.close()


def measure() -> Report:
    """Run the server, and let it make transfers turn by turn."""
    with tempfile.TemporaryDirectory() as folder:
        bank = Bank(Path(folder) / FILE)
        with running(Path(folder), **SETTINGS) as server:
            sides: dict[str, Callable[[], Load]] = {
                YARDSTICK: partial(server.load, [Request(YARDSTICK)] * REQUESTS),
                f"transfers among {WALLETS:,} wallets": partial(_load, server, bank, WALLETS),
                f"transfers between {HOT} wallets": partial(_load, server, bank, HOT),
            }
            loads = interleaved(ROUNDS, sides)
        wrong = bank.wrong()
    failed = sum(load.failed for runs in loads.values() for load in runs)
    faults = [f"{failed} requests failed"] if failed else []
    return Report(
        title=f"wallets: transfers on one machine, {CONNECTIONS} keep-alive connections",
        head=("requests", "per second", "of /healthz", "p99 ms"),
        rows=compared(loads, YARDSTICK),
        notes=(
            f"{ROUNDS} x {REQUESTS:,} requests each, client on the same machine",
            *(() if wrong else ("after them every wallet has what it must have",)),
        ),
        failure="; ".join([*faults, *([wrong] if wrong else [])]),
    )


def _load(server: Server, bank: Bank, wallets: int) -> Load:
    return server.load(bank.transfers(wallets))


def _open_wallets(database: Database, table: SqliteTable) -> list[str]:
    """Open wallets, deposit money, and return their ids."""
    ledger = Ledger(table, time.time)

    def with_money(number: int) -> str:
        wallet_id = opening.open_wallet(table, str(UUID(int=number)), 0).wallet_id
        ledger.post(Posting("the-first", START, wallet_id))
        return wallet_id

    return database.map_in_commits(with_money, range(WALLETS))


def _balances(table: SqliteTable, wallet_ids: Sequence[str]) -> Mapping[str, int]:
    return {wallet_id: opening.read(table, wallet_id).balance for wallet_id in wallet_ids}
