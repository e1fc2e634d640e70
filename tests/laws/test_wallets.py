"""The laws of wallets over random histories.

The sum of balances is the sum of deposits, no balance is negative or too large, and the journals
replayed are the balances. A movement that was answered happened once, one that was not at most
once, and asking again tells. A refusal stays one for its nonce, and moved nothing. What is gone
from the journals is in the archive: both together are the whole history.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from chalicelib.wallets import opening
from chalicelib.wallets.amounts import MOST
from chalicelib.wallets.moving import Mover
from chalicelib.wallets.wallet import Entry, Movement, asked
from tests.laws.faults import Fault
from tests.laws.test_timers import FAULTS, faults, on_dynamodb, on_sqlite
from tests.laws.wallets_world import NOBODY, START, Answer, Books, WalletsWorld, answer_of
from tests.unit.fakes import sqlite_table

USERS = ["user-a", "user-b", "user-c"]
amounts = st.integers(1, 12) | st.sampled_from([MOST // 2, 2**62, MOST - 1, MOST])
nonces = st.sampled_from([f"nonce-{n:02}" for n in range(6)])
names = st.sampled_from([*USERS * 5, "nobody"])
movements = st.builds(Movement, nonces, amounts, names, st.just("") | names)
"""From and to the wallets of users; now and then of one who has none."""
DOES = ["the same", "another amount", "comes", "goes", "comes and goes", "expires", "opens"]


class AnyHistory(RuleBasedStateMachine):
    """Requests, requests in the midst of others, and deaths in any order."""

    engine: ClassVar = staticmethod(on_sqlite)

    def __init__(self) -> None:
        super().__init__()
        self.cleanup = ExitStack()
        self.world = WalletsWorld(self.cleanup.enter_context(self.engine()))
        self.others_nonces = (f"other-{n:04}" for n in count())
        for user in USERS:
            self.world.open(user)
        self.wallets = self.world.wallet_ids

    def between_wallets(self, users: Movement) -> Movement:
        """The movement between the wallets that these users have."""
        ids = dict(zip(USERS, self.wallets, strict=True)) | {"": ""}
        source, target = (ids.get(user, NOBODY) for user in (users.source, users.target))
        return replace(users, source=source, target=target)

    def others(self, movement: Movement, does: str) -> None:
        """What happens between two storage calls of a movement."""
        world, nonce = self.world, next(self.others_nonces)
        match does:
            case "the same":
                world.ask(movement)
            case "another amount":
                world.ask(replace(movement, amount=movement.amount % 7 + 1))
            case "comes" | "comes and goes":
                world.ask(Movement(nonce, min(movement.amount, 20), movement.asker))
                if does == "comes and goes":
                    self.others(movement, "goes")
            case "goes":
                [other, *_] = {*self.wallets} - {movement.asker}
                if movement.asker != NOBODY and (balance := world.balance(movement.asker)):
                    world.ask(Movement(nonce, balance, other, movement.asker))
            case "expires":
                world.expire(len(world.movements))
            case "opens":
                world.open(USERS[0])

    @rule(users=movements, faults=faults)
    def move(self, users: Movement, faults: list[Fault]) -> None:
        self.world.ask(self.between_wallets(users), faults)

    @rule(which=st.integers(0, 99), faults=faults)
    def ask_again(self, which: int, faults: list[Fault]) -> None:
        self.world.ask_again(which, faults)

    @rule(
        users=movements,
        does=st.lists(st.sampled_from(DOES), min_size=1, max_size=4),
        at=st.integers(0, 3),
    )
    def disturbed(self, users: Movement, does: list[str], at: int) -> None:
        """Others come before each of its storage calls, from one of them on."""
        movement, left = self.between_wallets(users), list(does)
        self.world.faults.meanwhile = lambda: self.others(movement, left.pop()) if left else None
        self.world.ask(movement, [Fault.NONE] * at + [Fault.MEANWHILE] * len(does))
        self.world.faults.meanwhile = lambda: None

    @rule(place=st.integers(0, 3), faults=faults)
    def open(self, place: int, faults: list[Fault]) -> None:
        """A wallet for somebody who has one, or for the next who has none."""
        self.world.open([*USERS, "user-d"][place], faults)

    @rule(which=st.integers(0, 99))
    def expire(self, which: int) -> None:
        self.world.expire(which)

    @rule(hours=st.sampled_from([1, 13, 30]))
    def time_passes(self, hours: int) -> None:
        """The archive has its objects by the day."""
        self.world.now += hours * 3_600

    @rule(size=st.integers(1, 6), faults=st.lists(st.sampled_from(FAULTS), max_size=3))
    def archive(self, size: int, faults: list[Fault]) -> None:
        self.world.archive.deliver(size, faults)

    @invariant()
    def the_books_are_right(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        try:
            self.world.end()
        finally:
            self.cleanup.close()


class AnyHistoryOnDynamoDB(AnyHistory):
    """The same over DynamoDB, where it runs on moto."""

    engine: ClassVar = staticmethod(on_dynamodb)


TestWallets = AnyHistory.TestCase
TestWallets.settings = settings(max_examples=150, stateful_step_count=40)
TestWalletsOnDynamoDB = AnyHistoryOnDynamoDB.TestCase
TestWalletsOnDynamoDB.settings = settings(max_examples=3, stateful_step_count=20)


def test_threads_that_move_the_same_money_move_each_once(tmp_path: Path) -> None:
    """8 clients, each asks 100 times for some of 120 transfers under 60 nonces, of 3 wallets."""
    with sqlite_table(tmp_path) as table:
        ids = [opening.open_wallet(table, user, 0).wallet_id for user in USERS]
        mover, random = Mover(table, lambda: START), Random(1)  # noqa: S311  the same every time
        deposits = [Movement("the-first", 1_000, wallet_id) for wallet_id in ids]
        transfers = [
            Movement(f"nonce-{number % 60:02}", random.randrange(1, 500), *random.sample(ids, 2))
            for number in range(120)
        ]
        refused = Movement("too-much", 3_001, *ids[:2])
        for deposit in deposits:
            mover.move(deposit)

        def client(seed: int) -> list[tuple[Movement, Answer]]:
            mine = Random(seed).choices([*transfers, *deposits, refused], k=100)  # noqa: S311
            return [(movement, answer_of(mover, movement)) for movement in mine]

        with ThreadPoolExecutor(8) as pool:
            answers = [answer for told in pool.map(client, range(8)) for answer in told]
        books = Books.of(table, ids)
    books.check()
    assert sum(books.balances.values()) == 3_000
    books.check_asked([*deposits, *transfers, refused])
    entries = [(asked(one), answer) for one, answer in answers if isinstance(answer, Entry)]
    books.check_told([entry for _, entry in entries])
    assert len(set(entries)) == len({key for key, _ in entries}), "a nonce has one answer"
