"""Events on a simulated clock, each from its acceptance to its end.

Messages are delivered when their delay is over, in the batches of the deployed event sources.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bench import aws_events as events
from bench.cost.deployed import Deployed
from bench.cost.invocations import (
    ACCEPT,
    AUTHORIZE,
    DISTRIBUTE,
    DISTRIBUTION_URL,
    FIRE,
    ORDERS,
    ORDERS_URL,
    SWEEP,
    TIMERS_URL,
    TOKEN,
    Design,
    Invocation,
    Runner,
    Sent,
    running,
)
from bench.cost.simulate_views import Agenda
from chalicelib.events.event import Event, Status, Target, TargetKind, key
from chalicelib.events.sweep import AHEAD_SECONDS, CURSOR
from chalicelib.storage.items import Item, number, text
from simulation.aws_events import tick

LOG: Mapping[str, Any] = {"log": True}
QUEUE: Mapping[str, Any] = {"queue": ORDERS}
PAYLOAD = {"text": "the hour has come"}
STORED_PAYLOAD = '{"text":"the hour has come"}'
SOON, FAR = 400, 86_400
"""Seconds ahead; events that are due within 420 go to the queue immediately."""
MINUTE = 60


@dataclass
class EventRun:
    """The functions of events; `invocations` has their runs, by function."""

    runner: Runner
    deployed: Deployed
    agenda: Agenda
    invocations: defaultdict[str, list[Invocation]] = field(
        default_factory=lambda: defaultdict(list)
    )
    _due: defaultdict[float, list[str]] = field(default_factory=lambda: defaultdict(list))

    def authorize(self) -> None:
        """Run the authorizer, as API Gateway does once in five minutes."""
        self._invoke(AUTHORIZE, 0, events.authorization(TOKEN))

    def accept(self, name: str, delay: int, target: Mapping[str, Any]) -> None:
        """Accept an event, which is queued immediately if it is due soon."""
        document = {"id": name, "delay": delay, "target": target, "payload": PAYLOAD}
        soon = int(delay == SOON)
        self._enqueue(self._invoke(ACCEPT, soon, events.post_event(document, TOKEN)))

    def sweep(self, found: int = 0) -> list[Sent]:
        """Sweep. Raises `RuntimeError` if it finds another number of events."""
        groups = self._invoke(SWEEP, found, tick())
        swept = sum(group.body.count('["') for group in groups)
        if swept != found:
            raise RuntimeError(f"{swept:,} events were swept, not {found:,}")
        return groups

    def distribute(self, group: Sent) -> None:
        """Put the events of a group on the queue."""
        if group.queue != DISTRIBUTION_URL:
            raise RuntimeError(f"{group} is no group of events")
        size = group.body.count('["')
        event = events.messages([group.body])
        self._enqueue(self._invoke(DISTRIBUTE, size, event))

    def run(self) -> None:
        """Fire all queued events."""
        self.agenda.run()

    def fire_first(self, most: int) -> None:
        """Fire at most this many of the events that are due first."""
        self.agenda.now = min(self._due)
        self._fire(self._due[self.agenda.now][:most])

    def events(self, *names: str) -> Sequence[Event]:
        """Return events as they are stored."""
        return [Event.of(self.runner.table.get(key(name)) or {}) for name in names]

    def _enqueue(self, sent: Sequence[Sent]) -> None:
        for message in sent:
            if message.queue == TIMERS_URL:
                moment = self.agenda.now + message.delay
                if moment not in self._due:
                    self.agenda.at(moment, partial(self._fire_at, moment))
                self._due[moment].append(message.body)
            elif message.queue != ORDERS_URL:
                raise RuntimeError(f"{message} goes where no event goes")

    def _fire_at(self, moment: float) -> None:
        self._fire(self._due.pop(moment))

    def _fire(self, due: Sequence[str]) -> None:
        for start in range(0, len(due), self.deployed.fire_batch):
            batch = due[start : start + self.deployed.fire_batch]
            event = events.messages(batch)
            self._enqueue(self._invoke(FIRE, len(batch), event))

    def _invoke(self, function: str, records: int, event: Mapping[str, Any]) -> list[Sent]:
        invocation, sent = self.runner.invoke(function, records, event)
        self.invocations[function].append(invocation)
        return sent


@contextmanager
def event_run_of(deployed: Deployed, *, on_moto: bool = False) -> Iterator[EventRun]:
    """Run a stack without events, in which the last minute's sweep found nothing."""
    agenda = Agenda()
    with running(
        Design.vu_mi, deployed.function_names, lambda: agenda.now, on_moto=on_moto
    ) as runner:
        swept = (agenda.now - MINUTE + AHEAD_SECONDS) * 1000
        runner.table.put_all([{"PK": CURSOR.pk, "SK": CURSOR.sk, "swept": int(swept)}])
        yield EventRun(runner, deployed, agenda)


def soon(timers: EventRun, target: Mapping[str, Any]) -> None:
    """Run an event that is due before a sweep would find it."""
    timers.accept("event", SOON, target)
    timers.run()


def far_ahead(timers: EventRun, target: Mapping[str, Any]) -> None:
    """Run an event of tomorrow, which is swept half a minute before it would be due soon."""
    timers.accept("event", FAR, target)
    timers.agenda.now += FAR - AHEAD_SECONDS - MINUTE / 2
    _sweep_before(timers)
    timers.agenda.now += MINUTE
    for group in timers.sweep(found=1):
        timers.distribute(group)
    timers.run()


def failed_once(timers: EventRun, target: Mapping[str, Any]) -> None:
    """Run an event that the target queue refuses first, and accepts at the second attempt."""
    timers.runner.mailbox.closed.add(ORDERS_URL)
    timers.accept("event", SOON, target)
    # The first attempt is when the event is due; the message comes again for the second attempt.
    timers.agenda.at(
        timers.agenda.now + SOON + 1, lambda: timers.runner.mailbox.closed.discard(ORDERS_URL)
    )
    timers.run()


def _sweep_before(timers: EventRun) -> None:
    """Run the sweep of the minute before, which does not find this event."""
    timers.sweep()
    timers.invocations.pop(SWEEP)


def far_off(place: int, at: int) -> Item:
    """Return an event for the log, stored since yesterday and named like a ULID."""
    event = Event(
        f"{place:026}", at, at - FAR * 1000, Target(TargetKind.LOG), STORED_PAYLOAD, f"{place:064}"
    )
    return event.new_item()


def check_fired(timers: EventRun, names: Sequence[str], tries: int = 1) -> None:
    """Check that events were delivered. Raises `RuntimeError` if one was not."""
    for event in timers.events(*names):
        if event.status is not Status.SUCCESS or event.tries != tries:
            raise RuntimeError(f"{event} was not delivered by attempt {tries}")


def stored(timers: EventRun, name: str) -> Item:
    """Return an event as it is stored."""
    item = timers.runner.table.get(key(name)) or {}
    if text(item, "batch") == "" or number(item, "due") == 0:
        raise RuntimeError(f"{item} is no event in the index")
    return item
