"""The example of a shop: its books are exact, whatever is lost between it and the server."""

from __future__ import annotations

import http.client
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from uuid import UUID

from shop import Shop
from wallets import Wallets

from simulation.loopback import SilentHandler, serving
from tests.processes.programs import PATIENCE_SECONDS
from tests.processes.server import TOKEN, WITH_TOKEN, Server, running

FAULTS = ("cut before", "cut after", "cut within", "503", "429", "502 after")
SEED = 1
KILL_AT = 60
"""The request with which the server is killed."""
CUSTOMERS, ORDERS, DEPOSIT = 4, 40, 10_000
HEADERS = ("Authorization", "Content-Type")


@dataclass
class Road:
    """The way to a server, on which a request or its answer is lost by a chance from a seed."""

    server: Server
    chance: random.Random
    restart: Callable[[], Server] | None = None
    asked: int = 0
    happened: Counter[str] = field(default_factory=Counter)

    def next_fault(self) -> str:
        """Return the fault of the next request, or an empty text for two of five."""
        self.asked += 1
        if self.restart and self.asked == KILL_AT:
            fault = "kill"
        elif self.chance.random() < 0.6:
            fault = self.chance.choice(FAULTS)
        else:
            fault = ""
        self.happened[fault] += 1
        return fault

    def kill_with(self, request: Callable[[http.client.HTTPConnection], None]) -> None:
        """Kill the server when it may have the request or not, and start it again."""
        connection = http.client.HTTPConnection(self.server.host, self.server.port)
        request(connection)
        self.server.process.kill()
        self.server.process.wait(PATIENCE_SECONDS)
        connection.close()
        assert self.restart
        self.server = self.restart()


class Proxy(SilentHandler):
    """A proxy on this road, for one request at a time. A cut closes the connection."""

    def __init__(self, road: Road, *arguments: object) -> None:
        self.road = road
        super().__init__(*arguments)  # type: ignore[arg-type]  # as the host passes them on

    def do_GET(self) -> None:
        road, fault = self.road, self.road.next_fault()
        body = self.read()
        headers = {name: self.headers[name] for name in HEADERS if name in self.headers}
        if fault == "kill":
            road.kill_with(lambda server: server.request(self.command, self.path, body, headers))
        elif fault in {"503", "429"}:
            self.reply(int(fault), Retry_After="2")
        elif fault != "cut before":
            status, _, answer = road.server.request(
                self.path, self.command, body.decode() or None, headers
            )
            if fault == "502 after":
                self.reply(502, b"<h1>Bad Gateway</h1>")
            elif fault != "cut after":
                missing = fault == "cut within"
                self.reply(status, answer, Content_Length=str(len(answer) + missing))

    do_POST = do_PUT = do_GET


def wallets(port: int, attempts: int) -> Wallets:
    """Return a client on the road, whose waits are not waited."""
    chance = random.Random(1).random  # noqa: S311  nothing to guess
    return Wallets(f"http://127.0.0.1:{port}", TOKEN, attempts, lambda _: None, chance)


def journal(server: Server, wallet: str) -> Iterator[int]:
    """Yield the amounts of the entries of a wallet."""
    page = {"cursor": ""}
    while "cursor" in page:
        path = f"/api/v1/wallets/{wallet}/transactions?cursor={page['cursor']}"
        page = server.ask("GET", path, token=TOKEN)[1]
        yield from (int(entry["amount"]) for entry in page["transactions"])


def test_after_lost_answers_and_a_kill_the_books_are_exact(tmp_path: Path) -> None:
    """The server is killed once, and the client gives up early, so that orders wait."""
    chance = random.Random(SEED)  # noqa: S311  nothing to guess
    with ExitStack() as stack:
        start = partial(running, tmp_path, **WITH_TOKEN)
        road = Road(stack.enter_context(start()), chance)
        road.restart = lambda: stack.enter_context(start())
        port = stack.enter_context(serving(partial(Proxy, road)))
        books = stack.enter_context(sqlite3.connect(":memory:"))
        patient, hasty = (wallets(port, attempts) for attempts in (50, 2))
        till, *customers = (patient.open(str(UUID(int=n))) for n in range(CUSTOMERS + 1))
        for wallet in customers * 2:  # the bank reports each payment twice
            patient.deposit(wallet, DEPOSIT, nonce=f"bank-{wallet}")
        shop = Shop(books, hasty, till)
        prices = {
            shop.order(chance.choice(customers), price := chance.randint(1, 3_000)): price
            for _ in range(ORDERS)
        }
        rounds = 0
        while any(shop.state(order_id) == "new" for order_id in prices):
            shop.settle()
            rounds += 1
        direct = Wallets(road.server.url.rstrip("/"), TOKEN, attempts=1)
        paid = [order_id for order_id in prices if shop.state(order_id) == "paid"]
        balances = [direct.balance(wallet) for wallet in (till, *customers)]
        assert sum(balances) == CUSTOMERS * DEPOSIT
        assert balances[0] == sum(prices[order_id] for order_id in paid)
        assert sorted(journal(road.server, till)) == sorted(prices[order_id] for order_id in paid)
    assert rounds > 1
    assert 0 < len(paid) < ORDERS
    assert set(road.happened) == {"", "kill", *FAULTS}
