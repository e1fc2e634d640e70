"""The rates of one hot badge and of one wallet: simulations of their handlers under contention."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from random import Random

from bench.aws_events import WINDOWS
from bench.cost.metered_table import MeteredTable
from bench.scale.contention import ContendedTable, Latency, VirtualTime
from bench.scale.writers import NO_REPETITION, Outcome, Repetition, Runs, Writer, arrivals
from bench.stubbed_aws import BADGE_ID
from chalicelib.counting import badge_count, keys
from chalicelib.counting.consumers import MarkerRemoval, fold_badges, store_views
from chalicelib.counting.view import View
from chalicelib.http.errors import RETRY_SECONDS
from chalicelib.settings import HOT_VIEWS
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item
from chalicelib.units import Seconds
from chalicelib.wallets import opening
from chalicelib.wallets import wallet as wallets
from chalicelib.wallets.ledger import Ledger
from chalicelib.wallets.wallet import Posting
from simulation.clocks import ulid_of
from simulation.memory_table import MemoryTable
from simulation.resources import GivenResources

SEED = 5
"""Of the seeds 1 to 5, the one with the lowest rates of full batches and of transfers."""
MARK = 1_800_000_000
"""The end of a window."""
WRITERS = 500
"""The writers of a simulation."""
UNLIMITED = 1_000_000
WALLETS = 200
BALANCE = 10**12
CLIENT = Repetition(3, float(RETRY_SECONDS))
"""A client that waits as long as the 503 says, and gives up after four requests."""


@dataclass(frozen=True, slots=True)
class Badge:
    """A hot badge with this many views in each batch of `put_views`.

    `at_once` is `MaximumConcurrency`. SQS delivers a batch that failed again after `visibility`.
    The last views that were stored are folded in the middle of the simulation, by the run of
    `fold_views` and by each batch, which all ask for it.
    """

    latency: Latency
    at_once: int
    visibility: Seconds
    views: int = 1

    def simulate(self, rate: float, writers: int = WRITERS) -> Outcome:
        """Let this many batches a second arrive. Raises `RuntimeError` if a view is not counted."""
        random = Random(SEED)  # noqa: S311  the same in each run
        time = VirtualTime(MARK + WINDOWS.grace - writers / rate / 2)
        table = ContendedTable(time, random, self.latency)
        table.stored.put_all(_stored_views())
        resources = GivenResources(table=table, clock=time)
        runs = Runs(time, self.at_once, Repetition(UNLIMITED, self.visibility))
        times = arrivals(random, rate, writers, time.now)
        batches = [self._batch(place, at, resources) for place, at in enumerate(times)]
        for batch in batches:
            time.start(batch.arrived, partial(runs.take, batch))
        removal = MarkerRemoval(BADGE_ID, MARK, 0)
        time.start(MARK + WINDOWS.grace, lambda: _require(not fold_badges([removal], resources)))
        with _without_log():
            time.run()
        _require(
            badge_count.read(table.stored, BADGE_ID).shown == HOT_VIEWS + len(times) * self.views
        )
        return Outcome(rate, batches, table)

    def _batch(self, place: int, at: Seconds, resources: GivenResources) -> Writer:
        views = [
            View(BADGE_ID, ulid_of(at, f"{place:08}{number:08}"), first=False, hot=True, fold=True)
            for number in range(self.views)
        ]
        return Writer(lambda: not store_views(views, resources), at)


def _stored_views() -> list[Item]:
    """Return the views by which the badge became hot, in the window before `MARK`."""
    places = [keys.view(BADGE_ID, ulid_of(MARK - 1, f"{n:016}")) for n in range(HOT_VIEWS)]
    return [{"PK": pk, "SK": sk, "ttl": 1} for pk, sk in places]


class Role(StrEnum):
    """The part that a wallet has in postings."""

    SOURCE = "source of transfers"
    TARGET = "target of transfers"
    DEPOSITS = "target of deposits"


@dataclass(frozen=True, slots=True)
class Wallet:
    """A wallet with one role in many postings, whose other wallets differ."""

    role: Role
    latency: Latency
    repetition: Repetition = NO_REPETITION

    def simulate(self, rate: float, writers: int = WRITERS) -> Outcome:
        """Let this many postings a second arrive. Raises `RuntimeError` if one moves twice."""
        random = Random(SEED)  # noqa: S311  the same in each run
        time = VirtualTime(MARK)
        table = ContendedTable(time, random, self.latency)
        ledger = Ledger(table, time, random.getrandbits)
        _open_wallets(table.stored)
        runs = Runs(time, UNLIMITED, self.repetition)
        postings = [
            Writer(partial(_post, ledger, self._posting(place, random)), at)
            for place, at in enumerate(arrivals(random, rate, writers, MARK))
        ]
        for posting in postings:
            time.start(posting.arrived, partial(runs.take, posting))
        time.run()
        moved = abs(opening.read(table.stored, _wallet_id(0)).balance - BALANCE)
        _require(moved == sum(posting.done < math.inf for posting in postings))
        return Outcome(rate, postings, table)

    def units(self) -> tuple[int, int]:
        """Return the write units of a posting in the wallet's partition, and of its item."""
        table, random = MemoryTable(), Random(SEED)  # noqa: S311  the same in each run
        _open_wallets(table)
        metered, own = MeteredTable(table), wallets.wallet(_wallet_id(0))
        Ledger(metered, lambda: MARK, random.getrandbits).post(self._posting(0, random))
        written = [write for request in metered.take() for write in request.written]
        partition = sum(write.units for write in written if write.key.pk == own.pk)
        return partition, sum(write.units for write in written if write.key == own)

    def _posting(self, place: int, random: Random) -> Posting:
        other = _wallet_id(random.randrange(1, WALLETS))
        match self.role:
            case Role.SOURCE:
                return Posting(str(place), 1, target=other, source=_wallet_id(0))
            case Role.TARGET:
                return Posting(str(place), 1, target=_wallet_id(0), source=other)
            case Role.DEPOSITS:
                return Posting(str(place), 1, target=_wallet_id(0))


def _open_wallets(table: MemoryTable) -> None:
    keys = map(wallets.wallet, map(_wallet_id, range(WALLETS)))
    table.put_all([{"PK": pk, "SK": sk, "balance": BALANCE, "last": ""} for pk, sk in keys])


def _wallet_id(place: int) -> str:
    return f"{place:026}"


def _post(ledger: Ledger, posting: Posting) -> bool:
    try:
        ledger.post(posting)
    except StorageError:
        return False
    return True


@cache
def simulate(writers: Badge | Wallet, rate: float) -> Outcome:
    """Simulate a rate once: tables and tests have it in common."""
    return writers.simulate(rate)


def _require(holds: bool) -> None:  # noqa: FBT001  an assertion that -O keeps
    if not holds:
        raise RuntimeError("the simulation lost or repeated a write")


@contextmanager
def _without_log() -> Iterator[None]:
    """Drop the log lines of failed runs, which a simulation expects."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
