"""A badge that 25 visitors a second see for an hour: what each costs, and how exact it stays.

The real handlers over DynamoDB's limits on a simulated clock: pages of 1 MB, 8,000 items, TTL that
removes twenty minutes late. Beside it the same without the early fold, where all that is live is
read by every visitor, up to the 7,999 that can be seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeAlias
from unittest.mock import patch

from app import app
from bench import events
from bench.bill import Prices
from bench.cost_tables import MILLION, dollar
from bench.day import Agenda
from bench.in_process import Given, handlers_over
from bench.invoking import Handler, check
from bench.metering import Request
from bench.report import Report, judged
from bench.stubbed_aws import BADGE_ID
from bench.weighed import WeighedTable
from chalicelib import ports
from chalicelib.ports import Delete, Key, Table, number
from chalicelib.settings import Settings
from chalicelib.views import counting, keys
from chalicelib.views.fold import fold_views
from chalicelib.views.put import put_views
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import View
from local.database import Database
from local.events import queue_event, stream_event
from local.queue import Message
from local.table import Change, SqliteTable

VISITORS = 25
"""Of each second, all at its beginning: they see the same."""
HOUR = 3_600
TTL_LATE = 1_200
"""Seconds until TTL removes what is over; a batch is put within the second, and folded at once."""
MOST_LIVE = 1_100
"""The bound: a thousand, and what comes until a visitor sees them and his message is put."""
MANY = 10**6
"""More live views than there are."""
MEMORY = next((place for place in (Path("/dev/shm"),) if place.is_dir()), None)  # noqa: S108
LIFETIME = Lifetime.of(Settings())

Requests: TypeAlias = tuple[Request, ...]
"""What one run of a handler asked of the table."""


@dataclass
class Sent:
    """A `Queue` that keeps the bodies of its messages."""

    bodies: list[str] = field(default_factory=list)

    def send(self, body: str, *, delay: float = 0.0) -> None:
        self.send_all([ports.Message(body, delay)])

    def send_all(self, messages: Sequence[ports.Message]) -> None:
        self.bodies += [message.body for message in messages]


class Weigher(Protocol):
    """Who knows what was asked of a table."""

    def take(self) -> Requests:
        """The requests since the last time."""


@dataclass(frozen=True, slots=True)
class Machine:
    """The handlers over a table that is weighed, and a queue whose messages somebody else delivers.

    `table` is the same without being weighed.
    """

    table: Table
    weigher: Weigher
    sent: list[str]

    def run(self, handler: Handler, event: Mapping[str, Any]) -> Requests:
        """Run a handler; returns what it asked of the table. Raises `RuntimeError`."""
        check(handler(event, None), 0)
        return self.weigher.take()


@contextmanager
def machine_of(clock: Callable[[], float]) -> Iterator[Machine]:
    """One with an empty table, in memory where there is a file system for it."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        database = Database(Path(folder) / "table.sqlite3")
        table, queue = SqliteTable(database), Sent()
        weighed = WeighedTable(table)
        with handlers_over(Given(weighed, queue, map, clock=clock)):
            yield Machine(table, weighed, queue.bodies)
        database.close()


@dataclass
class Hour:
    """The badge second by second; what its visitors saw and what that took."""

    machine: Machine
    agenda: Agenda
    taken: int = 0
    put: int = 0
    most_live: int = 0
    furthest_behind: int = 0
    inexact: int = 0
    gets: list[Requests] = field(default_factory=list)
    others: list[Requests] = field(default_factory=list)
    _due: defaultdict[int, list[Key]] = field(default_factory=lambda: defaultdict(list))
    _sequence: Iterator[int] = field(default_factory=lambda: count(1))

    def live_through(self, seconds: int) -> None:
        """Have visitors for so long."""
        waiting: list[str] = []
        for _ in range(seconds):
            self._deliver(waiting)
            self._expire()
            waiting = self._visit()
            self.agenda.now += 1
        self._deliver(waiting)

    def end(self) -> int:
        """Until everything is over; returns the count that stays."""
        while self._due:
            self.agenda.now = min(self._due) + TTL_LATE + 1
            self._expire()
        return number(self.machine.table.get(keys.user(BADGE_ID)) or {}, "count")

    def _visit(self) -> list[str]:
        """One GET is run and stands for all of its second; returns the messages of all."""
        partition = keys.partition(BADGE_ID)
        live = self.machine.table.count(partition, after=keys.VIEW, limit=MANY)
        self.most_live = max(self.most_live, live)
        self.gets.append(self.machine.run(app, events.get_views(BADGE_ID)))
        view = View.from_message(self.machine.sent.pop())
        behind = self.put - view.shown
        if behind < 0:
            raise RuntimeError(f"{view.shown:,} were shown, {self.put:,} were put")
        self.inexact += behind > 0
        self.furthest_behind = max(self.furthest_behind, behind)
        self.taken += VISITORS
        others = [View.taken(BADGE_ID, 0, self.agenda.now).ulid for _ in range(VISITORS)]
        return [replace(view, ulid=ulid).to_message() for ulid in others]

    def _deliver(self, bodies: Sequence[str]) -> None:
        if not bodies:
            return
        now = self.agenda.now
        batch = [Message(place, body, now, 1, now) for place, body in enumerate(bodies)]
        put = self.machine.run(put_views, queue_event("vu-mi-views", batch))
        self.others.append(put)
        self.put += len(batch)
        written = [write.key for request in put for write in request.written]
        views = [key for key in written if key.sk.startswith((keys.VIEW, keys.SEEN))]
        self._due[LIFETIME.ttl(now)] += views

    def _expire(self) -> None:
        """TTL removes what is over; its removals of views are folded, of others filtered out."""
        for ttl in [ttl for ttl in self._due if ttl + TTL_LATE < self.agenda.now]:
            there = [key for key in self._due.pop(ttl) if self.machine.table.get(key)]
            for key in there:
                self.machine.table.write(Delete(key))
            views = [key for key in there if key.sk.startswith(keys.VIEW)]
            for start in range(0, len(views), 1_000):
                self._fold(views[start : start + 1_000], ttl)

    def _fold(self, removed: Sequence[Key], ttl: int) -> None:
        changes = [
            Change(next(self._sequence), self.agenda.now, {"PK": key.pk, "SK": key.sk, "ttl": ttl})
            for key in removed
        ]
        self.others.append(self.machine.run(fold_views, stream_event(events.STREAM_LABEL, changes)))


def measure(seconds: int = HOUR) -> Report:
    """Live through the hour twice."""
    early, late = (lived(seconds, hot) for hot in (counting.HOT, MANY))
    wrong = [f"{hour.taken:,} taken, {kept:,} kept" for hour, kept in (early, late)]
    return Report(
        title=f"hot: a badge with {VISITORS} views a second, for {seconds:,} simulated seconds",
        head=("", "folded early", "not"),
        rows=list(_rows([early[0], late[0]], Prices.read())),
        notes=(
            judged(f"at most {MOST_LIVE:,} live views", met=early[0].most_live <= MOST_LIVE),
            judged("every count exact", met=not early[0].inexact),
            "a GET is run each second, and stands for all of it",
        ),
        failure="; ".join(wrong) if any(h.taken != kept for h, kept in (early, late)) else "",
    )


def lived(seconds: int, hot: int) -> tuple[Hour, int]:
    """The hour of a badge that is hot from so many live views on, and the count it ends with."""
    agenda = Agenda()
    with patch.object(counting, "HOT", hot), machine_of(lambda: agenda.now) as machine:
        hour = Hour(machine, agenda)
        hour.live_through(seconds)
        return hour, hour.end()


def _rows(hours: Sequence[Hour], prices: Prices) -> Iterator[Sequence[str]]:
    """What each hour was, side by side."""
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
