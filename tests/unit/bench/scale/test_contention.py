"""The simulation of contention: its conflicts by hand, and its retries against `DynamoTable`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import cast

import pytest
from types_boto3_dynamodb import DynamoDBClient

from bench.scale.contention import ContendedTable, Latency, VirtualTime
from bench.scale.one_id import CLIENT, Badge, Role, Wallet
from bench.scale.writers import NO_REPETITION, Outcome
from bench.stubbed_aws import BADGE_ID
from chalicelib.aws.dynamodb import RETRY, DynamoTable
from chalicelib.counting import keys, summary
from chalicelib.counting.count_at_once import AT_ONCE, TRIES, AtOnceCounter
from chalicelib.counting.summary import Summary
from chalicelib.counting.view import View
from chalicelib.counting.windows import Windows
from chalicelib.storage.errors import Unavailable
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import ConditionFailed, Put, Update, Write
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.ledger import MAX_WRITES, Ledger
from chalicelib.wallets.wallet import Posting
from simulation.aws_clients import cancelled, script
from simulation.clocks import NOON, FakeTime, ulid_of

ONE_WAY = 0.005
SECONDS_OF_5_MS = Latency(round_trip=2 * ONE_WAY, fixed=0.0, each=0.0)
DEPLOYED = Latency(round_trip=0.005, fixed=0.0025, each=0.00017)
VISIBILITY = 121
HELD = keys.summary(BADGE_ID)
ITEM: Item = {"PK": HELD.pk, "SK": HELD.sk}
OTHER = keys.summary("other")
WALLET_ID = "0" * 26
WALLET = wallets.wallet(WALLET_ID)


class Steady(Random):
    """Latencies that are always the average, and waits that are half of their maximum."""

    def gammavariate(self, alpha: float, beta: float) -> float:
        return alpha * beta

    def random(self) -> float:
        return 0.5


@pytest.fixture
def time() -> VirtualTime:
    return VirtualTime()


@pytest.fixture
def table(time: VirtualTime) -> ContendedTable:
    return ContendedTable(time, Steady(), SECONDS_OF_5_MS)


@dataclass
class OvertakenTable(ContendedTable):
    """A table in which another writer changes the badge and the wallet before each write."""

    def write(self, *writes: Write) -> None:
        self.stored.write(Update(HELD, values={"version": self.attempts + 1}))
        for write in writes:
            if isinstance(write, Update) and write.key == WALLET:
                self.stored.write(Update(WALLET, values={"last": write.values["last"]}))
        super().write(*writes)


def badge(views: int = 1, at_once: int = 50) -> Badge:
    return Badge(DEPLOYED, at_once, VISIBILITY, views)


# ---- what DynamoDB does


def test_a_transaction_holds_its_items_between_its_two_round_trips(
    time: VirtualTime, table: ContendedTable
) -> None:
    """It reaches the table after 5 ms and again after 15 ms, and is answered after 20 ms."""
    seen: dict[float, tuple[bool, bool]] = {}

    def look() -> None:
        seen[round(time.now, 3)] = (HELD in table.held, table.stored.get(HELD) is not None)

    time.start(0, lambda: table.write(Put(ITEM), Put({"PK": OTHER.pk, "SK": OTHER.sk})))
    for at in (0.004, 0.006, 0.014, 0.016):
        time.start(at, look)
    time.run()
    assert seen == {
        0.004: (False, False),
        0.006: (True, False),
        0.014: (True, False),
        0.016: (False, True),
    }
    assert time.now == pytest.approx(0.020)


def test_a_held_item_is_read_as_it_was_and_refuses_every_write(
    time: VirtualTime, table: ContendedTable
) -> None:
    """The single write reaches the table after 6 ms, waits 25 ms, and is there again at 41 ms."""
    found: list[Item | None] = []
    done: list[float] = []

    def put() -> None:
        table.write(Put(ITEM))
        done.append(time.now)

    time.start(0, lambda: table.write(Put(ITEM), Put({"PK": OTHER.pk, "SK": OTHER.sk})))
    time.start(0.001, put)
    time.start(0.002, lambda: found.append(table.get(HELD)))
    time.run()
    assert found == [None]
    assert (table.attempts, table.conflicts, table.stale) == (3, 1, 0)
    assert done == [pytest.approx(0.001 + 0.010 + 0.025 + 0.010)]


def test_a_refused_transaction_holds_nothing(time: VirtualTime, table: ContendedTable) -> None:
    unread = Summary(BADGE_ID, version=3).as_read

    def write() -> None:
        with pytest.raises(ConditionFailed):
            table.write(unread, Put({"PK": OTHER.pk, "SK": OTHER.sk}))

    time.start(0, write)
    time.run()
    assert (table.held, table.stored.items, table.stale) == (set(), {}, 1)


def test_two_counters_of_a_badge_take_the_attempts_that_a_timeline_gives(
    time: VirtualTime, table: ContendedTable
) -> None:
    """Both read by 10 ms, and send. The second finds the item held, and waits 25 ms.

    It sends the same transaction, whose version is stale then, reads again, and is done. So it
    takes 20 + 25 + 10 + 10 + 20 ms more: a read, a refusal, the wait, a refusal, a read, a write.
    """
    done = []

    def count(place: int) -> None:
        counter = AtOnceCounter(table, Windows(), lambda: NOON)
        counter.count(BADGE_ID, [View(BADGE_ID, ulid_of(NOON, f"{place:016}"), hot=True)])
        done.append(time.now)

    time.start(0, lambda: count(1))
    time.start(0.001, lambda: count(2))
    time.run()
    assert done == [
        pytest.approx(0.030),
        pytest.approx(0.001 + 0.010 + 0.010 + 0.025 + 0.010 + 0.010 + 0.020),
    ]
    assert (table.attempts, table.conflicts, table.stale) == (4, 1, 1)
    assert summary.read(table.stored, BADGE_ID).count == 2


# ---- the retries of the code


def views(number: int) -> list[View]:
    return [View(BADGE_ID, ulid_of(NOON, f"{place:016}"), hot=True) for place in range(number)]


def count_at_once(table: Table) -> None:
    AtOnceCounter(table, Windows(), lambda: NOON).count(BADGE_ID, views(1))


def post(table: Table) -> None:
    Ledger(table, lambda: NOON).post(Posting("n-1", 1, WALLET_ID))


@pytest.mark.parametrize("work", [count_at_once, post])
def test_a_conflict_that_lasts_takes_the_attempts_and_the_time_of_dynamodb(
    time: VirtualTime, table: ContendedTable, work: Callable[[Table], None]
) -> None:
    """The table of AWS and the simulated one give up after as many requests."""
    retried = FakeTime()
    conflicts = [cancelled("TransactionConflict", "None", "None")] * 50
    client = script({}, *conflicts) if work is count_at_once else script(*conflicts)
    retry = replace(RETRY, sleep=retried.sleep, monotonic=retried.monotonic, jitter=lambda: 0.5)
    on_aws = DynamoTable(cast(DynamoDBClient, client), "vu-mi", retry)
    with pytest.raises(Unavailable):
        work(on_aws)
    table.held = {HELD, WALLET}

    def run() -> None:
        with pytest.raises(Unavailable):
            work(table)

    time.start(0, run)
    time.run()
    assert table.attempts == client.operations.count("transact_write_items") == RETRY.attempts
    reads = int(work is count_at_once)
    assert time.now == pytest.approx(sum(retried.slept) + 2 * ONE_WAY * (RETRY.attempts + reads))


@pytest.mark.parametrize(("work", "tries"), [(count_at_once, TRIES), (post, MAX_WRITES)])
def test_a_write_that_is_always_stale_is_sent_as_often_as_the_handler_says(
    time: VirtualTime, work: Callable[[Table], None], tries: int
) -> None:
    table = OvertakenTable(time, Steady(), SECONDS_OF_5_MS)
    table.stored.put_all([{"PK": WALLET.pk, "SK": WALLET.sk, "balance": 0, "last": ""}])

    def run() -> None:
        with pytest.raises(Unavailable):
            work(table)

    time.start(0, run)
    time.run()
    assert (table.attempts, table.stale) == (tries, tries)


# ---- the simulations


def shape(outcome: Outcome) -> tuple[float, float, float]:
    return outcome.at_first, outcome.done, outcome.attempts


def test_one_view_stands_for_all_of_a_transaction() -> None:
    """The other writes of a transaction take time to make, and conflict with nothing."""
    all_views = badge(views=AT_ONCE).simulate(15, writers=60)
    one = Badge(DEPLOYED.with_more(AT_ONCE - 1), 50, VISIBILITY).simulate(15, writers=60)
    assert shape(one) == pytest.approx(shape(all_views), rel=0.02)
    assert shape(badge().simulate(15, writers=60)) != pytest.approx(shape(all_views), rel=0.02)


def test_a_batch_that_failed_is_counted_by_its_next_delivery() -> None:
    outcome = badge().simulate(100, writers=150)
    assert outcome.at_first < 1
    assert outcome.done == 1
    assert {writer.runs for writer in outcome.writers} >= {1, 2}
    assert all((writer.took > VISIBILITY) == (writer.runs > 1) for writer in outcome.writers)


def test_more_batches_never_count_fewer_views() -> None:
    """Beyond the rate that is carried, more and more batches fail, but the rest does not."""
    counted = [rate * badge().simulate(rate, writers=150).at_first for rate in (20, 60, 150)]
    assert counted == sorted(counted)


def test_runs_one_after_the_other_never_conflict() -> None:
    outcome = badge(at_once=1).simulate(100, writers=60)
    assert outcome.at_first == 1
    assert outcome.attempts == pytest.approx(1, abs=0.1)


def test_clients_that_repeat_are_done_and_others_are_not() -> None:
    once, repeated = (
        Wallet(Role.SOURCE, DEPLOYED, repetition).simulate(200, writers=200)
        for repetition in (NO_REPETITION, CLIENT)
    )
    assert once.done == once.at_first < 1
    assert once.slowest(1.0) == math.inf
    assert repeated.done == 1
    assert repeated.slowest(1.0) > CLIENT.after


@pytest.mark.parametrize(("role", "units"), [("SOURCE", 6), ("TARGET", 4), ("DEPOSITS", 6)])
def test_a_posting_writes_two_units_for_each_item(role: str, units: int) -> None:
    """The wallet and its entry, and the nonce in the partition of the wallet that asks."""
    assert Wallet(Role[role], DEPLOYED).units() == (units, 2)


@pytest.mark.parametrize("role", Role)
def test_each_role_of_a_wallet_is_simulated(role: Role) -> None:
    outcome = Wallet(role, DEPLOYED).simulate(20, writers=40)
    assert outcome.is_carried
    assert 1 <= outcome.attempts < 2
