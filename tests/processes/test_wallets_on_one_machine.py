"""Wallets on `python -m vumi` as users see them: over HTTP, concurrently, also after kills."""

from __future__ import annotations

import http.client
import random
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.processes.server import TOKEN, WITH_TOKEN, Server, running

WALLETS = "/api/v1/wallets"
MOVED, REFUSED = 204, 409


def ask(server: Server, method: str, path: str, body: object = None) -> tuple[int, Any]:
    return server.ask(method, WALLETS + path, body, TOKEN)


def opened(server: Server) -> str:
    status, wallet = ask(server, "POST", "", {"user_id": str(uuid.uuid4())})
    assert (status, wallet["balance"]) == (200, "0")
    return str(wallet["id"])


def deposit(server: Server, wallet: str, amount: int, nonce: str = "deposit-1") -> None:
    body = {"amount": str(amount), "nonce": nonce}
    assert ask(server, "PUT", f"/{wallet}/deposit", body) == (MOVED, None)


def balance(server: Server, wallet: str) -> int:
    return int(ask(server, "GET", f"/{wallet}/balance")[1]["balance"])


class Wish(NamedTuple):
    """A transfer that a client wants, under a nonce of its own."""

    source: str
    target: str
    amount: int
    nonce: str


def request_transfer(server: Server, wish: Wish) -> int:
    """Request a transfer; return the status, or 0 if there was no response."""
    body = {"amount": str(wish.amount), "nonce": wish.nonce}
    try:
        return ask(server, "PUT", f"/{wish.source}/transfer/{wish.target}", body)[0]
    except (OSError, http.client.HTTPException):
        return 0


def test_after_kills_each_transfer_was_applied_once_and_a_retry_says_so(tmp_path: Path) -> None:
    """It is killed three times with eight clients.

    At the end every transfer is requested twice more.
    """
    chance = random.Random(7)  # noqa: S311  nothing to guess
    answered: dict[Wish, int] = {}
    wallets: list[str] = []
    wishes: list[Wish] = []
    for life in range(4):
        with running(tmp_path, **WITH_TOKEN) as server, ThreadPoolExecutor(8) as clients:
            if not wallets:
                wallets = [opened(server) for _ in range(4)]
                for wallet in wallets:
                    deposit(server, wallet, 500)
            if life < 3:
                wishes += _wishes(wallets, life, chance)
                now = clients.map(partial(request_transfer, server), wishes)
                for place, (wish, status) in enumerate(zip(wishes, now, strict=True)):
                    _check(answered, wish, status)
                    if place == 25 * (life + 1):
                        server.process.kill()
            else:
                for _ in range(2):
                    now = clients.map(partial(request_transfer, server), wishes)
                    for wish, status in zip(wishes, now, strict=True):
                        _check(answered, wish, status)
                balances = {wallet: balance(server, wallet) for wallet in wallets}
    assert set(answered) == set(wishes)
    assert sum(balances.values()) == 4 * 500
    assert balances == _replay(wallets, answered)
    assert REFUSED in answered.values()


def _wishes(wallets: Sequence[str], life: int, chance: random.Random) -> list[Wish]:
    pairs = [chance.sample(wallets, 2) for _ in range(60)]
    return [
        Wish(source, target, chance.randint(1, 400), f"life-{life}-{number:03}")
        for number, (source, target) in enumerate(pairs)
    ]


def _check(answered: dict[Wish, int], wish: Wish, status: int) -> None:
    """Check that the response to a transfer never changes."""
    if status:
        assert status in {MOVED, REFUSED}
        assert answered.setdefault(wish, status) == status


def _replay(wallets: Sequence[str], answered: dict[Wish, int]) -> dict[str, int]:
    balances = dict.fromkeys(wallets, 500)
    for wish, status in answered.items():
        if status == MOVED:
            balances[wish.source] -= wish.amount
            balances[wish.target] += wish.amount
    return balances
