"""Wallets on `python -m vumi`, also after kills: over HTTP, concurrently, and their archive.

The archive gets the journal entries that TTL removes from the table.
"""

from __future__ import annotations

import gzip
import http.client
import json
import random
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from chalicelib.storage.items import Item
from chalicelib.ulids import earliest, new_ulid
from chalicelib.wallets.wallet import HOT_SECONDS, Entry, Posting
from tests.processes.programs import TOKEN, WITH_TOKEN, Server, read_row, running, until
from vumi.storage.archive import FOLDER
from vumi.storage.database import FILE, Database
from vumi.storage.table import SqliteTable

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


# ---- the archive

ALICE, BOB = earliest(1), earliest(2)
KILLS = 4
LEFT = "SELECT (SELECT count(*) FROM items WHERE sk LIKE 'TX#%'), (SELECT count(*) FROM changes)"
"""The number of entries in the table, and of removals that wait for their consumer."""


def journal(count: int, age: float) -> list[Item]:
    """Return the entries of transfers in both wallets; the last has this age in seconds."""
    now = int((time.time() - age) * 1000)
    entries = [
        Entry(new_ulid(now), Posting(new_ulid(now), n + 1, BOB, ALICE), now - n)
        for n in range(count)
    ]
    return [entry.item(wallet) for entry in entries for wallet in (ALICE, BOB)]


def progress(folder: Path) -> tuple[int, int, int]:
    """Return the entries and the removals that are left, and the number of archived objects."""
    return *read_row(folder, LEFT), len(objects(folder))


def objects(folder: Path) -> list[Path]:
    return sorted((folder / FOLDER).glob("journal/????/??/??/*.jsonl.gz"))


def archived(folder: Path) -> set[tuple[str, str]]:
    """Return the keys of the entries in the archive."""
    texts = (gzip.decompress(path.read_bytes()).decode() for path in objects(folder))
    lines = (json.loads(line) for text in texts for line in text.splitlines())
    return {(f"WALLET#{line['wallet']}", f"TX#{line['id']}") for line in lines}


def test_killed_at_any_moment_it_archives_every_entry_at_least_once(tmp_path: Path) -> None:
    """It is killed as soon as more of 6,000 entries of both wallets are removed or archived."""
    items = journal(3_000, HOT_SECONDS + 5)
    with closing(Database(tmp_path / FILE)) as database:
        SqliteTable(database).put_all(items)
    for _ in range(KILLS):
        before = progress(tmp_path)
        with running(tmp_path) as server:
            until(partial(_has_changed, tmp_path, before))
            server.kill()
        entries, removals, _ = progress(tmp_path)
        assert len(archived(tmp_path)) + removals >= len(items) - entries
    with running(tmp_path):
        until(lambda: progress(tmp_path)[:2] == (0, 0), "all are archived")
    assert archived(tmp_path) == {(item["PK"], item["SK"]) for item in items}


def _has_changed(folder: Path, before: tuple[int, int, int]) -> bool:
    return progress(folder) != before
