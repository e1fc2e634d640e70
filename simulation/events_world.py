"""Scheduled events with all faults: messages that come twice or never, workers that die.

The modules of events run over a table and queues of which any call may fail. The queue delivers a
message any number of times, in any order, at any time after its delay, and may forget it. Clocks
are wrong: the clock of one machine jumps, and the clocks of two sweeps on AWS differ.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from chalicelib.events import delivery, schedule, sweep
from chalicelib.events import event as events
from chalicelib.events.delivery import EventDelivery
from chalicelib.events.event import Claims, DeliveryResult, Event, Status, Target, TargetKind
from chalicelib.storage import ports
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Update, Write
from chalicelib.units import Milliseconds, Seconds
from simulation import storage
from simulation.faults import Fault, Faults, FaultyQueue, FaultyTable, under
from simulation.scheduled_events import deliver

SCHEDULE = (5.0, 600.0)
START: Milliseconds = 1_800_000_000_000
MINUTE: Milliseconds = 60_000
LATEST: Milliseconds = 10 * MINUTE
"""A sweep finds a lost event within this time after the event is due or the faults have ended.

It takes longest if a sweep whose clock is 100 s ahead has just moved the event to five minutes
later, and the event's worker has died.
"""
OK = DeliveryResult(code=200)
REFUSED = DeliveryResult(code=500, error="status 500")
GONE = DeliveryResult(code=410, error="status 410", is_final=True)


FRESH = "fresh-"
"""The prefix of the names of events that are accepted at the end."""


@dataclass
class Waiting:
    """A message and the earliest time of its delivery."""

    body: str
    visible: Milliseconds


class Mail:
    """A queue that keeps every message, so any message may come again."""

    def __init__(self, now: Callable[[], Milliseconds]) -> None:
        self.messages: list[Waiting] = []
        self._now = now

    def send(self, body: str, *, delay: Seconds = 0.0) -> None:
        self.send_all([ports.Message(body, delay)])

    def send_all(self, messages: Sequence[ports.Message]) -> None:
        for one in messages:
            assert 0 <= one.delay <= ports.MAX_DELAY_SECONDS
            self.messages.append(Waiting(one.body, self._now() + round(one.delay * 1000)))

    def ready(self) -> list[str]:
        return [one.body for one in self.messages if one.visible <= self._now()]


class EventsWorld:
    """The state of all events, and the answers to their users."""

    def __init__(self, table: Table, claims: Claims) -> None:
        self.time = START
        self.clock_error = 0
        self.faults = Faults()
        self.table = table
        self.delivery_mail = Mail(lambda: self.now)
        self.group_mail = Mail(lambda: self.now)
        self.answers: list[DeliveryResult] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.accepted: set[str] = set()
        self.cancelled: set[str] = set()
        self.succeeded: set[str] = set()
        self.under_way: defaultdict[str, int] = defaultdict(int)
        self.deliveries: defaultdict[str, list[Milliseconds]] = defaultdict(list)
        observed = storage.FaultyTable(table, after_write=self._check_written)
        self._table = FaultyTable(observed, self.faults)
        self._queue = FaultyQueue(self.delivery_mail, self.faults)
        self._groups = FaultyQueue(self.group_mail, self.faults)
        self._claims = claims
        self._delivery = EventDelivery(
            table=self._table,
            queue=self._queue,
            send=self._deliver,
            claims=self._claims,
            clock=lambda: self.now / 1000,
            schedule=SCHEDULE,
            jitter=lambda: 0.5,
        )

    @property
    def now(self) -> Milliseconds:
        """The time by the clock, which may be wrong."""
        return self.time + self.clock_error

    def accept(self, name: str, at: Milliseconds, faults: Sequence[Fault] = ()) -> None:
        """Accept an event by a request that is always the same for one name."""
        event = Event(name, at, START, Target(TargetKind.LOG), "{}", request=f"{name} at {at}")
        with under(self.faults, faults), suppress(schedule.IdTakenError):
            schedule.accept(event, self._table, self._queue, self.now)
            self.accepted.add(name)

    def cancel(self, name: str, faults: Sequence[Fault] = ()) -> None:
        """Cancel an event; after the answer no delivery may begin or be under way."""
        with under(self.faults, faults), suppress(schedule.EventError):
            schedule.cancel(self._table, self._claims, name, self.now)
            assert not self.under_way[name], "cancelled while it is delivered"
            assert name not in self.succeeded
            self.cancelled.add(name)

    def sweep(self, faults: Sequence[Fault] = (), ahead: Milliseconds = 0) -> None:
        """Sweep with a clock that is `ahead` of the others."""
        with under(self.faults, faults):
            sweep.sweep(self._table, self._groups, self.now + ahead)

    def _check_written(self, writes: Sequence[Write]) -> None:
        """Assert that a sweep moves only events that it has sent to a later time."""
        for write in writes:
            if isinstance(write, Update) and set(write.values) == {"due"}:
                name = write.key.pk.removeprefix(events.PARTITION)
                moved = write.values["due"] != self._read(name).next_at
                sent = any(f'["{name}", ' in one.body for one in self.group_mail.messages)
                assert sent or not moved, f"{name} was moved and not sent"

    def distribute(self, faults: Sequence[Fault] = ()) -> None:
        """Deliver every message of the sweep, even if it was delivered before."""
        for body in self.group_mail.ready():
            with under(self.faults, faults):
                sweep.distribute([sweep.group_in(body)], self._queue, self.now)

    def deliver(self, which: int, faults: Sequence[Fault] = ()) -> None:
        """Deliver one of the messages, perhaps again."""
        if ready := self.delivery_mail.ready():
            self._deliver_message(ready[which % len(ready)], faults)

    def deliver_all(self) -> None:
        for body in self.delivery_mail.ready():
            self._deliver_message(body, ())

    def _deliver_message(self, body: str, faults: Sequence[Fault]) -> None:
        with under(self.faults, faults):
            claimed = self._delivery.claim(events.event_id_in(body))
            if claimed is not None:
                try:
                    deliver(self._delivery, claimed)
                finally:
                    self._claims.release(claimed.claim)

    def _deliver(self, event: Event) -> DeliveryResult:
        name = event.event_id
        assert event.attempts[-1].started >= event.at or event.round, "before its time"
        assert event.attempts[-1].started >= event.next_at, "before its next attempt was due"
        assert name not in self.cancelled, "after it was cancelled"
        assert name not in self.succeeded, "after its success"
        assert not self.under_way[name], "by two workers concurrently"
        self.under_way[name] += 1
        self.deliveries[name].append(event.attempts[-1].started)
        try:
            self.meanwhile()
            return self.faults.call(lambda: self.answers.pop() if self.answers else OK)
        finally:
            self.under_way[name] -= 1

    def _read(self, name: str) -> Event:
        return schedule.read(self.table, name)

    def note_success(self) -> None:
        """Record the events that have succeeded, which is final."""
        for name in self.accepted:
            if self._read(name).status is Status.SUCCESS:
                self.succeeded.add(name)

    def redrive(self) -> None:
        """Redrive every failed event."""
        for batch in events.batches(Status.ERROR):
            for due in self.table.query_due(batch, limit=1_000):
                item = self.table.get(due.key)
                assert item is not None
                delivery.redrive(self.table, self.delivery_mail, Event.of(item), self.now)

    def set_clock(self, error: Milliseconds) -> None:
        """Set how far the clock is ahead of the right time, or behind it."""
        self.clock_error = error

    def pass_time(self, milliseconds: Milliseconds) -> None:
        self.time += milliseconds

    def end(self) -> None:
        """End all faults, forget all messages so far, and check that each event ends in time.

        A sweep must find each older event within `LATEST`, and events that are accepted now must
        be delivered within a minute of their time.
        """
        self.faults.plan([])
        self.meanwhile = lambda: None
        self.answers = []
        self.set_clock(0)
        self.delivery_mail.messages.clear()
        start = self.now
        for minutes in (0, 5, 8, 30):
            self.accept(f"{FRESH}{minutes}", start + minutes * MINUTE)
        while late := self._latest(start):
            assert self.now < late
            self._work_for_a_minute()
        self.note_success()
        for name in self.accepted:
            self._check_done(self._read(name))

    def _work_for_a_minute(self) -> None:
        self.group_mail.messages.clear()
        self.sweep()
        self.distribute()
        self.deliver_all()
        self.delivery_mail.messages = [
            one for one in self.delivery_mail.messages if one.visible > self.now
        ]
        self.pass_time(MINUTE)

    def _latest(self, start: Milliseconds) -> Milliseconds:
        """Return the time by which the next event must be done, 0 if all are done."""
        active = [one for one in map(self._read, self.accepted) if one.status is Status.ACTIVE]
        return min(
            (
                max(one.next_at, start) + (MINUTE if FRESH in one.event_id else LATEST)
                for one in active
            ),
            default=0,
        )

    def _check_done(self, event: Event) -> None:
        name = event.event_id
        assert event.status is not Status.ACTIVE, f"{event} is not done"
        assert event.claim == ""
        if name in self.cancelled:
            assert event.status is Status.CANCELLED
        if event.status is Status.SUCCESS:
            assert self.deliveries[name]
            assert event.attempts[-1].error == ""
        assert event.tries >= len(self.deliveries[name]) or event.tries == len(event.attempts)
        record = iter([attempt.started for attempt in event.attempts])
        assert all(started in record for started in self.deliveries[name]), "out of order"
