"""One machine: hits and transfers per second, each on the disk before it is answered.

The yardstick is `/healthz` of the same server, which goes through the same web server, reads once,
and writes nothing. At the end, every view must be in the count once, and every wallet must have
its balance.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from uuid import UUID

from bench.measuring import interleaved
from bench.speed.load import CONNECTIONS, Load, Request, Server, compared, running
from chalicelib.http import tokens
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import Posting
from simulation.report import Report
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

ROUNDS = 4
HITS, IDS = 5_000, 2_000
TRANSFERS, WALLETS = 2_000, 10_000
START = 1_000_000
"""The first balance of each wallet, more than it could give away."""
YARDSTICK = "/healthz"
TOKEN = tokens.new_token()
SETTINGS = {
    "API_TOKEN_DIGESTS": tokens.digest(TOKEN),
    "VIEW_WINDOW_SECONDS": "1",
    "GRACE_SECONDS": "1",
    "RETENTION_SECONDS": "3",
}
"""Windows of one second, folded a second later; their views expire soon after."""
SPREAD, DRAWN = ([f"bench%2F{name}{place * 7 % IDS}" for place in range(HITS)] for name in "ad")
"""Successive requests are not neighbours in the table; 7 shares no factor with `IDS`."""
ONE_ID = ["bench%2Fhot"] * HITS
MEGABYTE = 1_000_000


@dataclass
class Bank:
    """The wallets of a server, and the balance that each must have."""

    path: Path
    expected: Counter[str] = field(default_factory=Counter)
    nonces: count[int] = field(default_factory=count)

    def open(self) -> None:
        """Open wallets in the file, and deposit money."""
        with closing(Database(self.path)) as database:
            table = SqliteTable(database)
            ledger = Ledger(table, time.time)

            def with_money(number: int) -> str:
                wallet_id = wallets.open_wallet(table, str(UUID(int=number)), 0).wallet_id
                ledger.post(Posting("the-first", START, wallet_id))
                return wallet_id

            opened = database.map_in_commits(with_money, range(WALLETS))
        self.expected.update(dict.fromkeys(opened, START))

    def transfers(self, wallets: int) -> list[Request]:
        """Return new requests for transfers among this many wallets."""
        among, some = list(self.expected)[:wallets], random.Random(1)  # noqa: S311  the same ones
        return [self._transfer(*some.sample(among, 2)) for _ in range(TRANSFERS)]

    def _transfer(self, source: str, target: str) -> Request:
        self.expected.update({source: -1, target: 1})
        body = {"amount": "1", "nonce": f"transfer-{next(self.nonces)}"}
        path = f"/api/v1/wallets/{source}/transfer/{target}"
        return Request(path, json.dumps(body), TOKEN, "PUT")

    def count_wrong(self) -> int:
        """Return the number of wrong balances in the file."""
        with closing(Database(self.path)) as database:
            table = SqliteTable(database)
            found = {one: wallets.read(table, one).balance for one in self.expected}
        return sum(found[one] != balance for one, balance in self.expected.items())


def measure() -> Report:
    """Run the server, load it, and check its counts and balances."""
    with tempfile.TemporaryDirectory() as folder:
        bank = Bank(Path(folder) / FILE)
        bank.open()
        with running(Path(folder), **SETTINGS) as server:
            idle = server.resident()
            hits = interleaved(ROUNDS, _hits(server))
            lost, doubled = _difference(server, Counter([*SPREAD, *DRAWN, *ONE_ID]))
            transfers = interleaved(ROUNDS, _transfers(server, bank))
            loaded = server.resident()
        wrong = bank.count_wrong()
    failed = sum(one.failed for part in (hits, transfers) for runs in part.values() for one in runs)
    exactness = f"lost {lost}, doubled {doubled}, {wrong} balances wrong, {failed} requests failed"
    return Report(
        title=f"hits: views and transfers on one machine, {CONNECTIONS} keep-alive connections",
        head=("requests", "per second", "of /healthz", "p50 ms", "p99 ms"),
        rows=[row for part in (hits, transfers) for row in compared(part, YARDSTICK)],
        notes=(
            f"{ROUNDS} x {HITS:,} hits or {TRANSFERS:,} transfers, client on the same machine",
            f"memory: {idle / MEGABYTE:.0f} MB before the load, {loaded / MEGABYTE:.0f} MB after",
            exactness,
        ),
        failure=exactness if lost or doubled or wrong or failed else "",
    )


def _hits(server: Server) -> Mapping[str, Callable[[], Load]]:
    return {
        YARDSTICK: _healthz(server, HITS),
        f"hits on {IDS:,} ids": _hit_and_settle(server, "views", SPREAD),
        f"the same as SVG, on {IDS:,} others": _hit_and_settle(server, "views.svg", DRAWN),
        "hits on one id": _hit_and_settle(server, "views", ONE_ID),
    }


def _transfers(server: Server, bank: Bank) -> Mapping[str, Callable[[], Load]]:
    return {
        YARDSTICK: _healthz(server, TRANSFERS),
        f"transfers among {WALLETS:,} wallets": lambda: server.load(bank.transfers(WALLETS)),
        "transfers between 2 wallets": lambda: server.load(bank.transfers(2)),
    }


def _healthz(server: Server, requests: int) -> Callable[[], Load]:
    return partial(server.load, [Request(YARDSTICK)] * requests)


def _hit_and_settle(server: Server, route: str, ids: Sequence[str]) -> Callable[[], Load]:
    """Return a function that hits badges and waits for their folds, which would slow the next."""

    def hit() -> Load:
        load = server.load([Request(f"/api/v1/{route}?id={badge_id}") for badge_id in ids])
        server.settle()
        return load

    return hit


def _difference(server: Server, hits: Mapping[str, int]) -> tuple[int, int]:
    """Return the numbers of missing and of surplus views, over all badges."""
    shown = server.shown(list(hits))
    errors = [shown[badge_id] - ROUNDS * views for badge_id, views in hits.items()]
    return -sum(min(0, error) for error in errors), sum(max(0, error) for error in errors)
