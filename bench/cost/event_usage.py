"""The usage of an event on AWS, counted from handler runs: alone, and at a million an hour."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.cost.bill import GB, Bill, Prices, Usage, add_usages, per_view
from bench.cost.deployed import Deployed
from bench.cost.invocations import ACCEPT, DISTRIBUTE, FIRE, SWEEP, Invocation
from bench.cost.metering import item_bytes
from bench.cost.simulate_events import (
    LOG,
    MINUTE,
    QUEUE,
    SOON,
    EventRun,
    check_fired,
    event_run_of,
    failed_once,
    far_ahead,
    far_off,
    soon,
    stored,
)
from chalicelib.aws.attribute_values import encode_item
from chalicelib.events.event import KEPT_SECONDS, Status, batch
from chalicelib.events.sweep import AHEAD_SECONDS

AN_HOUR = 1_000_000
"""The events an hour for which the design is made."""
A_MINUTE = round(AN_HOUR / 60)
SAMPLE = 100
"""The events of a minute that are accepted and fired; all are swept and distributed."""
STORED_OVERHEAD_BYTES = 100
"""The overhead of each item, and of each index entry (DynamoDB developer guide, "Item sizes and
formats", "Storage considerations for Global Secondary Indexes")."""
SOON_LOG, FAR_LOG = "to the log, soon", "to the log, far ahead"
SOON_QUEUE, FAILED_ONCE = "to a queue, soon", "the same, refused once"
LIVES: Mapping[
    str, tuple[Callable[[EventRun, Mapping[str, Any]], None], Mapping[str, Any], int]
] = {
    SOON_LOG: (soon, LOG, 1),
    FAR_LOG: (far_ahead, LOG, 1),
    SOON_QUEUE: (soon, QUEUE, 1),
    FAILED_ONCE: (failed_once, QUEUE, 2),
}
"""The ways of an event, each with its target and its number of attempts."""


@dataclass(frozen=True, slots=True)
class Rush:
    """A minute at a million events an hour, accepted the day before.

    `shards` has the number of events in each part of the index.
    """

    accepted: Sequence[Invocation]
    swept: Invocation
    distributed: Sequence[Invocation]
    fired: Sequence[Invocation]
    shards: Sequence[int]


@dataclass(frozen=True, slots=True)
class CountedEvents:
    """The counted runs of events.

    `lives` has the runs of each event that was alone. `idle` is a sweep that found nothing. The
    sizes are the bytes of a done event and of its entry in the index.
    """

    bill: Bill
    lives: Mapping[str, Sequence[Invocation]]
    idle: Invocation
    rush: Rush
    item_bytes: int
    entry_bytes: int

    def alone(self, life: str) -> Usage:
        """Return the usage of an event that shares nothing, not even the check of its token."""
        return add_usages(self._beside_the_idle_sweep(self.lives[life]), self.kept())

    def in_a_rush(self) -> Usage:
        """Return the usage of one event of a million an hour."""
        rush = self.rush
        return add_usages(
            per_view(self.bill.usage(rush.accepted), SAMPLE),
            per_view(self._beside_the_idle_sweep([rush.swept, *rush.distributed]), A_MINUTE),
            per_view(self.bill.usage(rush.fired), SAMPLE),
            self.kept(),
        )

    def _beside_the_idle_sweep(self, runs: Sequence[Invocation]) -> Usage:
        """Return the usage of runs, less that of an empty sweep, which runs without events too."""
        usage = Counter(self.bill.usage(runs))
        if any(run.function == SWEEP for run in runs):
            usage.subtract(self.bill.usage([self.idle]))
        return usage

    def kept(self) -> Usage:
        """Return the usage of storing a done event until TTL removes it, and of its backup."""
        days_a_month = self.bill.prices.assumed["hours_a_month"] / 24
        months = KEPT_SECONDS / 86_400 / days_a_month
        item = self.item_bytes + STORED_OVERHEAD_BYTES
        entry = self.entry_bytes + STORED_OVERHEAD_BYTES
        return {
            "stored_gb_month": (item + entry) * months / GB,
            "pitr_gb_month": item * months / GB,
        }

    def idle_month(self) -> Usage:
        """Return the usage of a month of sweeps that find nothing."""
        sweeps = self.sweeps_a_month
        usage = self.bill.usage([self.idle])
        return {name: quantity * sweeps for name, quantity in usage.items()}

    @property
    def sweeps_a_month(self) -> int:
        return int(self.bill.prices.assumed["hours_a_month"] * 60)


def count_events(prices: Prices, deployed: Deployed) -> CountedEvents:
    """Run events and count their usage. Raises `RuntimeError` if one is not delivered."""
    bill = Bill(prices, deployed, "vu-mi")
    lives = {life: _life(deployed, life) for life in LIVES}
    with event_run_of(deployed) as timers:
        timers.sweep()
        [idle] = timers.invocations[SWEEP]
    with event_run_of(deployed) as timers:
        soon(timers, LOG)
        item = stored(timers, "event")
    entry = {name: item[name] for name in ("PK", "SK", "batch", "due")}
    sizes = (item_bytes(encode_item(part)) for part in (item, entry))
    return CountedEvents(bill, lives, idle, _rush(deployed), *sizes)


def _life(deployed: Deployed, life: str) -> list[Invocation]:
    go, target, tries = LIVES[life]
    with event_run_of(deployed) as timers:
        timers.authorize()
        go(timers, target)
        check_fired(timers, ["event"], tries)
        return [run for runs in timers.invocations.values() for run in runs]


def _rush(deployed: Deployed) -> Rush:
    """Run a minute: all events are in the table, the API accepts a sample, another is fired."""
    with event_run_of(deployed) as timers:
        for place in range(SAMPLE):
            timers.accept(f"{place:026}", 2 * SOON, LOG)
        accepted = timers.invocations[ACCEPT]
    with event_run_of(deployed) as timers:
        first = int(timers.agenda.now + AHEAD_SECONDS - MINUTE) * 1000 + 1
        items = [far_off(place, first + place * 60_000 // A_MINUTE) for place in range(A_MINUTE)]
        timers.runner.table.put_all(items)
        for group in timers.sweep(found=A_MINUTE):
            timers.distribute(group)
        timers.fire_first(SAMPLE)
        [swept] = timers.invocations[SWEEP]
        distributed = timers.invocations[DISTRIBUTE]
        fired = timers.invocations[FIRE]
    shards = Counter(batch(Status.ACTIVE, f"{place:026}") for place in range(A_MINUTE))
    return Rush(accepted, swept, distributed, fired, list(shards.values()))
