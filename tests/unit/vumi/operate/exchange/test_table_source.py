"""The export of a stack while others write: at each read of the export, any of them may."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chalicelib.counting import badge_count
from chalicelib.counting.view import View
from chalicelib.owners import changing, claiming, finding
from chalicelib.owners.changing import BadgeChange
from chalicelib.owners.finding import OwnerError
from chalicelib.storage.errors import UnavailableError
from chalicelib.storage.items import Item, Key
from chalicelib.storage.ports import Table
from chalicelib.ulids import earliest
from chalicelib.units import Seconds, to_milliseconds
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import Posting, PostingError
from simulation.clocks import NOON, Clock
from simulation.exchange_world import export, outcomes, restore
from simulation.installation import MemoryInstallation
from simulation.storage import FaultyTable, MemoryTable
from simulation.views import WINDOWS, fold, put_summary, shown, store
from tests.profile import cases
from vumi.operate.check.items import Items, StoredItem
from vumi.operate.exchange.restoring import RestoreOutcome
from vumi.operate.exchange.table_source import CLOCKS_SECONDS, read_badge, read_groups, read_wallet

NAMES = ["a", "alias", "b"]


@dataclass
class Busy(MemoryInstallation):
    """An installation in memory in which others write before each read of an export."""

    meanwhile: Callable[[], None] = lambda: None
    is_exporting: bool = field(default=False, init=False)

    @property
    def table(self) -> Table:
        return FaultyTable(self.memory, before_read=lambda _: self.meanwhile())


@dataclass
class Visitors:
    """Those who visit, fold, count at once and rename two badges, of which one has two names."""

    table: MemoryTable
    clock: Clock
    taken: dict[str, int] = field(default_factory=lambda: {"a": 0, "b": 0})

    def act_all(self, some: Sequence[tuple[str, str]]) -> None:
        """Do some steps."""
        for step in some:
            self.act(*step)

    def act(self, kind: str, name: str) -> None:
        """Do one step."""
        now = self.clock.now
        match kind:
            case "visit":
                count = badge_count.read(self.table, name)
                one = count.view(WINDOWS, now)
                self._take(View(name, one.ulid), name, now)
            case "at once":
                one = badge_count.read(self.table, name).view(WINDOWS, now)
                self._take(View(name, one.ulid, hot=True), name, now)
            case "fold":
                fold(self.table, now, name)
            case "rename":
                with suppress(OwnerError):
                    owned = finding.look_up(self.table, "a")
                    changing.change(self.table, owned, BadgeChange(name="alias"), now)
            case "freeze":
                owned = finding.look_up(self.table, "a")
                changing.change(self.table, owned, BadgeChange(frozen=False), now)
            case _:
                self.clock.now += 400

    def _take(self, view: View, name: str, now: Seconds) -> None:
        place = badge_count.read(self.table, name).summary.badge_id
        if name == "alias" and place == "alias":
            return  # it is no name of the badge yet, and a visit would make it one of its own
        assert store(self.table, view, now=now) == {}
        self.taken[place] += 1


steps = st.tuples(
    st.sampled_from(["visit", "at once", "fold", "fold", "freeze", "wait"]), st.sampled_from(NAMES)
)


@settings(max_examples=cases(150))
@given(
    before=st.lists(steps, max_size=12),
    meanwhile=st.lists(st.lists(steps, max_size=2), max_size=40),
)
def test_each_view_is_in_the_count_or_live_and_never_both(
    before: list[tuple[str, str]], meanwhile: list[list[tuple[str, str]]]
) -> None:
    clock = Clock(NOON)
    memory = MemoryTable()
    visitors = Visitors(memory, clock)
    claiming.claim(memory, "a", 0, NOON)
    visitors.act("rename", "a")
    clock.now += 10
    for step in before:
        visitors.act(*step)
    left = iter(meanwhile)
    busy = Busy(memory, clock=clock)
    busy.meanwhile = lambda: visitors.act_all(next(left, []))
    at_least = dict(visitors.taken)
    exported = export(busy)
    assert exported.count(b'"type":"owner"') == 1
    imported = MemoryInstallation(clock=clock)
    restore(imported, exported)
    for name in NAMES:  # a view that is stored under another name is shown after its fold
        fold(imported.memory, clock.now + 2_000, name)
    for name in ("a", "b"):
        assert at_least[name] <= shown(imported.memory, name) <= visitors.taken[name]
    assert shown(imported.memory, "alias") == shown(imported.memory, "a")
    with closing(Items()) as items:
        found = [*items.collect(stored(imported)), *items.check_badges(), *items.check_owners()]
        assert not [one for one in found if one.kind.name == "WRONG"]


def test_a_fold_between_two_reads_is_seen() -> None:
    """Read without the second look at the version, the views would be counted twice or never."""
    memory = MemoryTable()
    visitors = Visitors(memory, Clock(NOON))
    for _ in range(5):
        visitors.act("visit", "a")
    for place in range(1, 8):
        reads = iter(range(100))

        def meanwhile(place: int = place) -> None:
            if next(reads) == place:  # noqa: B023  called before the next round
                visitors.act("wait", "a")
                visitors.act("wait", "a")
                visitors.act("fold", "a")
                visitors.act("visit", "a")

        taken = visitors.taken["a"]
        busy = Busy(memory, clock=visitors.clock, meanwhile=meanwhile)
        imported = MemoryInstallation(clock=visitors.clock)
        restore(imported, export(busy))
        assert taken <= shown(imported.memory, "a") <= visitors.taken["a"]


def test_a_badge_that_never_stands_still_is_reported() -> None:
    memory = MemoryTable()

    def count(_: str) -> None:
        put_summary(memory, "a", version=next(numbers))

    numbers = iter(range(1, 10_000))
    with pytest.raises(UnavailableError, match="a was changed by 50 other writes"):
        read_badge(FaultyTable(memory, before_read=count), "a")


@dataclass
class Bank:
    """Those who deposit and transfer, by clocks that differ."""

    table: MemoryTable
    clock: Clock
    random: Random
    wallets: list[str] = field(default_factory=list)
    done: list[Posting] = field(default_factory=list)

    def open(self) -> None:
        """Open three wallets."""
        for number in range(3):
            user = f"6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d1{number}"
            now = to_milliseconds(self.clock.now)
            self.wallets.append(wallets.open_wallet(self.table, user, now).wallet_id)

    def post(self) -> None:
        """Deposit, or transfer as much as possible."""
        nonce = f"nonce-{len(self.done)}-{self.random.random()}"
        target, source = self.random.sample(self.wallets, 2)
        posting = Posting(
            nonce, self.random.randint(1, 9), target, self.random.choice(["", source])
        )
        skew = self.random.choice([-CLOCKS_SECONDS / 2, 0, CLOCKS_SECONDS / 2])
        with suppress(PostingError):
            Ledger(self.table, lambda: self.clock.now + skew).post(posting)
            self.done.append(posting)


@settings(max_examples=cases(100))
@given(seed=st.integers(0, 2**32), postings=st.integers(0, 30))
def test_the_balances_of_all_wallets_are_of_one_moment(seed: int, postings: int) -> None:
    clock, memory, random = Clock(NOON), MemoryTable(), Random(seed)  # noqa: S311  a history
    bank = Bank(memory, clock, random)
    bank.open()
    for _ in range(postings):
        bank.post()
        clock.now += random.choice([0, 0.001, 20])
    before = list(bank.done)

    def meanwhile() -> None:
        for _ in range(random.randint(0, 2)):
            bank.post()
        clock.now += random.choice([0, 0.001, 3])

    def sleep(seconds: Seconds) -> None:
        bank.post()
        clock.now += seconds

    busy = Busy(memory, clock=clock, meanwhile=meanwhile, sleep=sleep)
    exported = export(busy)
    imported = MemoryInstallation(clock=clock)
    assert outcomes(restore(imported, exported)) <= {RestoreOutcome.IMPORTED}
    check_books(imported)
    for posting in before:
        at = Ledger(imported.memory, clock).post(posting).at
        assert at <= to_milliseconds(clock.now + CLOCKS_SECONDS)
    check_books(imported)


def stored(installation: MemoryInstallation) -> Iterator[StoredItem]:
    """Yield the items as the check of a table reads them."""
    for item in installation.items():
        yield str(item["PK"]), partial(dict, item)


def check_books(installation: MemoryInstallation) -> None:
    """Check that the balances, nonces and journals of all wallets agree."""
    with closing(Items()) as items:
        found = [*items.collect(stored(installation)), *items.check_wallets()]
        assert not [one for one in found if one.kind.name == "WRONG"]


class HalfVisible(MemoryTable):
    """A table in which the last posting is not visible yet in its wallet, or in the journal."""

    stale: Item | None = None
    hidden = 0

    def get(self, key: Key) -> Item | None:
        return self.stale or super().get(key)

    def query(self, partition: str, **bounds: Any) -> list[Item]:
        found = super().query(partition, **bounds)
        self.hidden -= 1
        return found[:-1] if self.hidden >= 0 else found


@pytest.mark.parametrize("part", ["wallet", "entry"])
def test_a_posting_of_after_the_cut_that_is_half_visible_is_undone_or_waited_for(part: str) -> None:
    table, clock = HalfVisible(), Clock(NOON)
    wallet_id = wallets.open_wallet(table, "u", 1).wallet_id
    key, ledger = wallets.wallet(wallet_id), Ledger(table, clock)
    ledger.post(Posting("nonce-01", 5, wallet_id))
    before = table.get(key)
    assert before is not None
    clock.now += 10
    cut = earliest(to_milliseconds(clock.now))
    ledger.post(Posting("nonce-02", 3, wallet_id))
    table.stale, table.hidden = (before, 0) if part == "wallet" else (None, 1)
    [group] = read_wallet(table, cut, key)
    assert group.head == {**before, "last": min(cut, str(group.head["last"]))}
    assert str(group.head["last"]) <= cut
    assert [item["amount"] for item in group.rest if "amount" in item] == [5]


def test_an_export_of_wallets_waits_until_all_postings_of_before_are_visible() -> None:
    slept: list[Seconds] = []
    memory, clock = MemoryTable(), Clock(NOON)
    for _ in read_groups(MemoryInstallation(memory, clock=clock), slept.append):
        pass
    assert slept == []
    Bank(memory, clock, Random(1)).open()  # noqa: S311  a history
    for _ in read_groups(MemoryInstallation(memory, clock=clock), slept.append):
        pass
    assert slept == [230]
