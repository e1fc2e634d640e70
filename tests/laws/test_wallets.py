"""The laws of wallets over generated histories.

The sum of balances is the sum of deposits, no balance is negative or too large, and each balance
is the sum of its journal. A posting that was answered was applied once, another one at most once,
and a retry has the answer, however late. A refusal is final for its nonce and moves no money.
Entries that left the journals are in the archive: both together are the whole history. A reader who
goes from page to page misses no entry and sees none twice, whatever is posted meanwhile.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from chalicelib.storage.errors import UnavailableError
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import MAX_BALANCE, Posting, PostingResult, nonce
from simulation.aws_table import moto_table
from simulation.faults import Fault
from simulation.storage import sqlite_table
from simulation.wallets_world import (
    CLOCKS,
    NOBODY,
    START,
    Books,
    ClientAnswer,
    Reader,
    WalletsWorld,
    answer_of,
    entries_of,
)
from tests.laws.test_events import FAULTS, HistoryOver, faults
from tests.profile import SHARE_OF_LAWS, cases

USERS = ["user-a", "user-b", "user-c"]
amounts = st.integers(1, 12) | st.sampled_from(
    [MAX_BALANCE // 2, 2**62, MAX_BALANCE - 1, MAX_BALANCE]
)
nonces = st.sampled_from([f"nonce-{n:02}" for n in range(6)])
names = st.sampled_from([*USERS * 5, "nobody"])
postings = st.builds(Posting, nonces, amounts, names, st.just("") | names)
"""Postings between the wallets of users, and sometimes of a user without a wallet."""
ACTIONS = [
    *("the same", "another amount", "comes", "goes", "comes and goes"),
    *("expires", "opens", "reads", "reads on"),
]
processes = st.integers(0, len(CLOCKS) - 1)


class AnyHistory(HistoryOver):
    """Requests, requests during others, and crashes in any order."""

    world: WalletsWorld

    def __init__(self) -> None:
        super().__init__()
        self.world = WalletsWorld(self.table)
        self.others_nonces = (f"other-{n:04}" for n in count())
        for user in USERS:
            self.world.open(user)
        self.wallets = self.world.wallet_ids

    def between_wallets(self, users: Posting) -> Posting:
        """Return the posting between the wallets that these users have."""
        ids = dict(zip(USERS, self.wallets, strict=True)) | {"": ""}
        source, target = (ids.get(user, NOBODY) for user in (users.source, users.target))
        return replace(users, source=source, target=target)

    def others(self, posting: Posting, does: str) -> None:
        """Do something between two storage calls of a posting."""
        world, name = self.world, next(self.others_nonces)
        match does:
            case "the same":
                world.ask(posting)
            case "another amount":
                world.ask(replace(posting, amount=posting.amount % 7 + 1))
            case "comes" | "comes and goes":
                amount = min(posting.amount, 20)
                world.ask(Posting(name, amount, posting.asker), (), posting.amount % 3)
                if does == "comes and goes":
                    self.others(posting, "goes")
            case "goes":
                [other, *_] = {*self.wallets} - {posting.asker}
                if posting.asker != NOBODY and (balance := world.balance(posting.asker)):
                    world.ask(Posting(name, balance, other, posting.asker))
            case "expires":
                world.expire(len(world.postings))
            case "opens":
                world.open(USERS[0])
            case "reads" | "reads on":
                world.read(len(world.postings), goes_on=does == "reads on")

    @rule(users=postings, faults=faults, process=processes)
    def move(self, users: Posting, faults: list[Fault], process: int) -> None:
        self.world.ask(self.between_wallets(users), faults, process)

    @rule(which=st.integers(0, 99), faults=faults, process=processes)
    def ask_again(self, which: int, faults: list[Fault], process: int) -> None:
        self.world.ask_again(which, faults, process)

    @rule(
        users=postings,
        does=st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=4),
        at=st.integers(0, 3),
        process=processes,
    )
    def disturbed(self, users: Posting, does: list[str], at: int, process: int) -> None:
        """Post while others act before each storage call, from the call `at` on."""
        posting, left = self.between_wallets(users), list(does)
        self.world.faults.meanwhile = lambda: self.others(posting, left.pop()) if left else None
        self.world.ask(posting, [Fault.NONE] * at + [Fault.MEANWHILE] * len(does), process)
        self.world.faults.meanwhile = lambda: None

    @rule(place=st.integers(0, 3), faults=faults)
    def open(self, place: int, faults: list[Fault]) -> None:
        """Open a wallet for a user who has one, or for the next user without one."""
        self.world.open([*USERS, "user-d"][place], faults)

    @rule(which=st.integers(0, 99))
    def expire(self, which: int) -> None:
        self.world.expire(which)

    @rule(place=st.integers(0, 9), goes_on=st.booleans())
    def read(self, place: int, *, goes_on: bool) -> None:
        self.world.read(place, goes_on=goes_on)

    @rule(hours=st.sampled_from([1, 13, 30, 5_000]))
    def time_passes(self, hours: int) -> None:
        """Move the clock. The archive has its objects by day."""
        self.world.now += hours * 3_600

    @rule(size=st.integers(1, 6), faults=st.lists(st.sampled_from(FAULTS), max_size=3))
    def archive(self, size: int, faults: list[Fault]) -> None:
        self.world.archive.deliver(size, faults)

    @invariant()
    def the_books_are_right(self) -> None:
        self.world.check()


TestWallets = AnyHistory.to_test(cases(150, SHARE_OF_LAWS), 40)
TestWalletsOnDynamoDB = AnyHistory.to_test(cases(8), 15, engine=staticmethod(moto_table))


def test_concurrent_clients_apply_each_posting_once(tmp_path: Path) -> None:
    """8 clients each request 100 of 120 transfers with 60 nonces between 3 wallets.

    The clocks of three processes differ by 100 s. Meanwhile two readers go from page to page.
    """
    with sqlite_table(tmp_path) as table:
        ids = [wallets.open_wallet(table, user, 0).wallet_id for user in USERS]
        micros, random = count(), Random(1)  # noqa: S311  the same every time
        ledgers = [
            Ledger(table, lambda ahead=ahead: START + ahead + next(micros) / 1e6)  # type: ignore[misc]
            for ahead in CLOCKS
        ]
        deposits = [Posting("the-first", 1_000, wallet_id) for wallet_id in ids]
        transfers = [
            Posting(f"nonce-{number % 60:02}", random.randrange(1, 500), *random.sample(ids, 2))
            for number in range(120)
        ]
        refused = Posting("too-much", 3_001, *ids[:2])
        for deposit in deposits:
            ledgers[1].post(deposit)

        def client(seed: int) -> list[tuple[Posting, ClientAnswer]]:
            mine = Random(seed).choices([*transfers, *deposits, refused], k=100)  # noqa: S311
            return [(posting, until_answered(ledgers[seed % 3], posting)) for posting in mine]

        def reader(wallet_id: str) -> list[Reader]:
            readers = [Reader(wallet_id) for _ in range(40)]
            for one in readers:
                one.read_all(table)
            return readers

        with ThreadPoolExecutor(10) as pool:
            reading = pool.map(reader, ids[:2])
            answers = [answer for answered in pool.map(client, range(8)) for answer in answered]
            readers = [one for found in reading for one in found]
        books = Books.of(table, ids)
        for one in readers:
            one.check(entries_of(table, one.wallet_id))
    books.check()
    assert sum(books.balances.values()) == 3_000
    books.check_asked([*deposits, *transfers, refused])
    answered = [
        (nonce(one), answer) for one, answer in answers if isinstance(answer, PostingResult)
    ]
    books.check_answers([answer for _, answer in answered])
    assert len(set(answered)) == len({key for key, _ in answered}), "a nonce has one answer"


def until_answered(ledger: Ledger, posting: Posting) -> ClientAnswer:
    """Repeat a request until it has an answer, because others may be faster."""
    while True:
        with suppress(UnavailableError):
            return answer_of(ledger, posting)
