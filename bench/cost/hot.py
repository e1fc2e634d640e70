"""A badge with 25 visitors a second for an hour: the cost of each, and the error of its count.

The real handlers run with DynamoDB's limits on a simulated clock: pages of 1 MB, 8,000 views, TTL
that is twenty minutes late. The comparison runs without counting at once, so every visitor reads
all live views, up to 8,000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from bench import aws_events as events
from bench.cost.bill import Prices
from bench.cost.metered_handlers import Machine, Requests, machine_of
from bench.cost.simulate_views import Agenda
from bench.cost.view_tables import MILLION, dollar
from bench.stubbed_aws import BADGE_ID
from chalicelib.aws.consumers import fold_views, put_views
from chalicelib.counting import keys
from chalicelib.counting.summary import Summary, read
from chalicelib.counting.view import View, earliest, new_ulid
from chalicelib.settings import HOT_VIEWS
from chalicelib.storage.items import Item, Key, number
from chalicelib.storage.writes import Delete
from simulation.report import Report, judged

VISITORS = 25
"""The visitors of each second, all at its beginning, so they see the same count."""
HOUR = 3_600
TTL_LATE = 1_200
"""Seconds until TTL removes expired items; a batch is put within a second."""
MOST_LIVE = 1_100
"""The bound: 1,000, and the views until a visitor sees them and their message is put."""
MANY = 10**6
"""More live views than any badge has."""


@dataclass
class Hour:
    """An hour of the badge, second by second: the counts shown and the requests made."""

    machine: Machine
    agenda: Agenda
    visitors: int = VISITORS
    taken: int = 0
    put: int = 0
    most_live: int = 0
    furthest_behind: int = 0
    inexact: int = 0
    gets: list[Requests] = field(default_factory=list)
    others: list[Requests] = field(default_factory=list)
    _due: dict[Key, int] = field(default_factory=dict)
    _sequence: Iterator[int] = field(default_factory=lambda: count(1))

    def live_through(self, seconds: int) -> None:
        """Simulate visitors for this many seconds."""
        waiting: list[str] = []
        for _ in range(seconds):
            self._deliver(waiting)
            self._expire()
            waiting = self._visit()
            self.agenda.now += 1
        self._deliver(waiting)

    def end(self) -> int:
        """Go on until everything is folded; return the final count."""
        while self._due:
            self.agenda.now = min(self._due.values()) + TTL_LATE + 1
            self._expire()
        return self._summary().count

    def _summary(self) -> Summary:
        return read(self.machine.table, BADGE_ID)

    def _live(self) -> int:
        first = keys.VIEW + earliest(self._summary().watermark + 1)
        partition = keys.partition(BADGE_ID)
        return self.machine.table.count(partition, first=first, last=keys.VIEW + "~", limit=MANY)

    def _visit(self) -> list[str]:
        """Run one GET, which represents its whole second; return the messages of all visitors."""
        self.most_live = max(self.most_live, self._live())
        shown, get = self.machine.get()
        self.gets.append(get)
        behind = self.put - shown
        if behind < 0:
            raise RuntimeError(f"{shown:,} were shown, {self.put:,} were put")
        self.inexact += behind > 0
        self.furthest_behind = max(self.furthest_behind, behind)
        self.taken += self.visitors
        view = View.from_message(self.machine.sent.pop())
        others = [new_ulid(view.milliseconds) for _ in range(self.visitors)]
        return [replace(view, ulid=ulid).to_message() for ulid in others]

    def _deliver(self, bodies: Sequence[str]) -> None:
        if not bodies:
            return
        batch = events.messages(bodies)
        put = self.machine.run(put_views, batch)
        self.others.append(put)
        self.put += len(bodies)
        for key in {write.key for request in put for write in request.written}:
            if key.sk == keys.WINDOW:
                self._due[key] = number(self.machine.table.get(key) or {}, "ttl")

    def _expire(self) -> None:
        """Let TTL remove expired markers, and fold."""
        over = [key for key, ttl in self._due.items() if ttl + TTL_LATE < self.agenda.now]
        for key in over:
            del self._due[key]
            self.machine.table.write(Delete(key))
            item: Item = {"PK": key.pk, "SK": key.sk}
            removed = events.removed([item], self.agenda.now, next(self._sequence))
            self.others.append(self.machine.run(fold_views, removed))


def measure(seconds: int = HOUR) -> Report:
    """Simulate the hour twice, with and without counting at once."""
    at_once, stored = (lived(seconds, hot) for hot in (HOT_VIEWS, MANY))
    wrong = [f"{hour.taken:,} taken, {kept:,} kept" for hour, kept in (at_once, stored)]
    is_wrong = any(hour.taken != kept for hour, kept in (at_once, stored))
    return Report(
        title=f"hot: a badge with {VISITORS} views a second, for {seconds:,} simulated seconds",
        head=("", "counted at once", "not"),
        rows=list(_rows([at_once[0], stored[0]], Prices.read())),
        notes=(
            judged(f"at most {MOST_LIVE:,} live views", met=at_once[0].most_live <= MOST_LIVE),
            judged("every count exact", met=not at_once[0].inexact),
            "a GET is run each second, and stands for all of it",
        ),
        failure="; ".join(wrong) if is_wrong else "",
    )


def lived(seconds: int, hot: int, visitors: int = VISITORS) -> tuple[Hour, int]:
    """Return the hour of a badge that is hot at this many live views, and its final count."""
    agenda = Agenda()
    with machine_of(lambda: agenda.now, hot) as machine:
        hour = Hour(machine, agenda, visitors)
        hour.live_through(seconds)
        return hour, hour.end()


def _rows(hours: Sequence[Hour], prices: Prices) -> Iterator[Sequence[str]]:
    """Yield the rows that compare the hours."""
    reads = [sum(map(_reads, hour.gets)) / len(hour.gets) for hour in hours]
    others = [sum(map(_reads, hour.others)) / hour.taken for hour in hours]
    writes = [sum(map(_writes, hour.others)) / hour.taken for hour in hours]
    costs = [
        prices.cost({"read_unit": get + other, "write_unit": write}) * MILLION
        for get, other, write in zip(reads, others, writes, strict=True)
    ]
    yield "live views, at most", *(f"{hour.most_live:,}" for hour in hours)
    yield "GETs that showed less than the exact count", *map(_inexact, hours)
    yield "how much less, at most", *(f"{hour.furthest_behind:,}" for hour in hours)
    yield "read units of a GET, at most", *(f"{max(map(_reads, h.gets)):,.0f}" for h in hours)
    yield "read units of a GET", *(f"{units:,.1f}" for units in reads)
    yield "read units a view beside that", *(f"{units:,.2f}" for units in others)
    yield "write units a view", *(f"{units:,.2f}" for units in writes)
    yield "$ of the units, per million views", *map(dollar, costs)


def _inexact(hour: Hour) -> str:
    return f"{hour.inexact:,} of {len(hour.gets):,}"


def _reads(run: Requests) -> float:
    return sum(request.read_units for request in run)


def _writes(run: Requests) -> int:
    return sum(request.write_units for request in run)
