"""Events and whatever can happen to them: messages that come twice or never, workers that die.

The plain modules over a table and queues of which any call may fail. A message of the queue is
delivered any number of times, in any order, at any time from its delay on, and may be forgotten.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from chalicelib import ports
from chalicelib.ports import Table
from chalicelib.timers import event as events
from chalicelib.timers import firing, scheduling, sweeping
from chalicelib.timers.claims import Leases
from chalicelib.timers.event import Event, Kind, Status, Target
from chalicelib.timers.firing import Delivery, Firing
from tests.laws.faults import Fault, Faults, Faulty, FaultyQueue, FaultyTable
from tests.unit.timers import fire

SCHEDULE = (5.0, 600.0)
START = 1_800_000_000_000
OK = Delivery(code=200)
REFUSED = Delivery(code=500, error="status 500")
GONE = Delivery(code=410, error="status 410", is_final=True)


@dataclass
class Waiting:
    """A message and the earliest time of its delivery."""

    body: str
    visible: int


class Mail:
    """A queue that keeps all it was ever sent: any message may come again."""

    def __init__(self, now: Callable[[], int]) -> None:
        self.messages: list[Waiting] = []
        self._now = now

    def send(self, body: str, *, delay: float = 0.0) -> None:
        self.send_all([ports.Message(body, delay)])

    def send_all(self, messages: Sequence[ports.Message]) -> None:
        for one in messages:
            assert 0 <= one.delay <= ports.MAX_DELAY_SECONDS
            self.messages.append(Waiting(one.body, self._now() + round(one.delay * 1000)))

    def ready(self) -> list[str]:
        return [one.body for one in self.messages if one.visible <= self._now()]


class TimersWorld:
    """The state of it all, and what was promised to whom."""

    def __init__(self, table: Table) -> None:
        self.now = START
        self.faults = Faults()
        self.table = table
        self.fire_mail = Mail(lambda: self.now)
        self.group_mail = Mail(lambda: self.now)
        self.answers: list[Delivery] = []
        self.meanwhile: Callable[[], None] = lambda: None
        self.accepted: set[str] = set()
        self.cancelled: set[str] = set()
        self.succeeded: set[str] = set()
        self.under_way: defaultdict[str, int] = defaultdict(int)
        self.deliveries: defaultdict[str, int] = defaultdict(int)
        faulty_table = FaultyTable(table, self.faults, lambda _: None)
        self._table = faulty_table
        self._queue = FaultyQueue(self.fire_mail, self.faults)
        self._groups = FaultyQueue(self.group_mail, self.faults)
        self._claims = Leases()
        self._firing = Firing(
            table=faulty_table,
            queue=self._queue,
            deliver=self._deliver,
            claims=self._claims,
            clock=lambda: self.now / 1000,
            schedule=SCHEDULE,
            jitter=lambda: 0.5,
        )

    def accept(self, name: str, at: int, faults: Sequence[Fault] = ()) -> None:
        """Somebody asks for an event, by a request that is always the same for one name."""
        event = Event(name, at, START, Target(Kind.LOG), "{}", request=f"{name} at {at}")
        with self._under(faults), suppress(scheduling.IdTakenError):
            scheduling.accept(event, self._table, self._queue, self.now)
            self.accepted.add(name)

    def cancel(self, name: str, faults: Sequence[Fault] = ()) -> None:
        """Somebody cancels it; once that is answered, no delivery may begin or be under way."""
        with self._under(faults), suppress(scheduling.EventError):
            scheduling.cancel(self._table, self._claims, name, self.now)
            assert not self.under_way[name], "cancelled while it is delivered"
            assert name not in self.succeeded
            self.cancelled.add(name)

    def sweep(self, faults: Sequence[Fault] = ()) -> None:
        with self._under(faults):
            sweeping.sweep(self._table, self._groups, self.now)

    def distribute(self, faults: Sequence[Fault] = ()) -> None:
        """Every message of the sweep comes, again if it came before."""
        for body in self.group_mail.ready():
            with self._under(faults):
                sweeping.distribute(body, self._queue, self.now)

    def fire(self, which: int, faults: Sequence[Fault] = ()) -> None:
        """One of the messages comes, maybe not for the first time."""
        if ready := self.fire_mail.ready():
            self._fire(ready[which % len(ready)], faults)

    def fire_all(self) -> None:
        for body in self.fire_mail.ready():
            self._fire(body, ())

    def _fire(self, body: str, faults: Sequence[Fault]) -> None:
        with self._under(faults):
            claimed = self._firing.claim(events.named_in(body))
            if claimed is not None:
                fire(self._firing, claimed)

    def _deliver(self, event: Event) -> Delivery:
        name = event.event_id
        assert self.now >= event.at, "before its time"
        assert self.now >= self._read(name).next_at, "before its next attempt was due"
        assert name not in self.cancelled, "after it was cancelled"
        assert name not in self.succeeded, "after its success"
        assert not self.under_way[name], "by two at once"
        self.under_way[name] += 1
        self.deliveries[name] += 1
        try:
            self.meanwhile()
            return self.faults.call(self._answer)
        finally:
            self.under_way[name] -= 1

    def _read(self, name: str) -> Event:
        return scheduling.read(self.table, name)

    def _answer(self) -> Delivery:
        return self.answers.pop() if self.answers else OK

    def note_success(self) -> None:
        """What the table says is done is done for good."""
        for name in self.accepted:
            if self._read(name).status is Status.SUCCESS:
                self.succeeded.add(name)

    def redrive(self) -> None:
        """All that was given up is tried anew."""
        for batch in events.batches(Status.ERROR):
            for due in self.table.query_due(batch, limit=1_000):
                item = self.table.get(due.key)
                assert item is not None
                firing.redrive(self.table, self.fire_mail, Event.of(item), self.now)

    def pass_time(self, milliseconds: int) -> None:
        self.now += milliseconds

    def end(self) -> None:
        """Nothing fails any more, and all messages so far are forgotten: the sweep finds all."""
        self.faults.plan([])
        self.meanwhile = lambda: None
        self.answers = []
        self.fire_mail.messages.clear()
        self.group_mail.messages.clear()
        for _ in range(40):
            self.pass_time(60_000)
            self.sweep()
            self.distribute()
            self.group_mail.messages.clear()
            for _ in range(7):
                self.fire_all()
                self.pass_time(60_000)
        self.note_success()
        for name in self.accepted:
            self._check_done(self._read(name))

    def _check_done(self, event: Event) -> None:
        name = event.event_id
        assert event.status is not Status.ACTIVE, f"{event} is not done"
        assert event.claim == ""
        if name in self.cancelled:
            assert event.status is Status.CANCELLED
        if event.status is Status.SUCCESS:
            assert self.deliveries[name] >= 1
            assert event.attempts[-1].error == ""
        assert event.tries >= self.deliveries[name] or event.tries == len(event.attempts)
        started = [attempt.started for attempt in event.attempts]
        assert started == sorted(started)

    def _under(self, faults: Sequence[Fault]) -> Faulty:
        return Faulty(self.faults, faults)
