"""Firing events on one machine: claimed and settled together, delivered each on its own thread.

`fire_timers` answers for a batch once all of it is delivered. Here a URL that takes long is to hold
up nobody else, and a commit is to be shared by many.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.events.claims import LEASE_SECONDS
from chalicelib.events.consumers import Work, firing_with
from chalicelib.events.event import Event
from chalicelib.events.fire import NAME
from chalicelib.storage.errors import StorageError
from vumi.storage.queue import Message, SqliteQueue
from vumi.workers import events
from vumi.workers.delivery import IDLE_SECONDS, rest

LEAST_REST_SECONDS = 0.005
"""An event is late by at most so much for the loop's sake."""


class ProcessClaims:
    """`Claims` of the one process that delivers: they hold as long as it delivers, by any clock.

    A new process holds none, so the claims of a killed one are free.
    """

    def __init__(self) -> None:
        self._held: set[str] = set()

    def hold(self, claim: str) -> None:
        self._held.add(claim)

    def release(self, claim: str) -> None:
        self._held.discard(claim)

    def held_until(self, event: Event, now: int) -> int:
        return now + LEASE_SECONDS * 1000 if event.claim in self._held else 0


class FiringDelivery:
    """Fires the events of a queue, so many at the same time.

    `on_attempt` is called whenever an attempt has ended: there is a step to do then.
    """

    def __init__(self, queue: SqliteQueue, clock: Callable[[], float], at_once: int) -> None:
        self.on_attempt: Callable[[], None] = lambda: None
        self._queue = queue
        self._clock = clock
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix=NAME)
        self._free = at_once
        self._attempted: deque[tuple[Message, Work]] = deque()

    def step(self) -> float:
        """Settle what was attempted, claim as many events as may fire, and let them."""
        telemetry.begin(NAME, None)
        self._settle(self._ended())
        if not self._free:
            return IDLE_SECONDS
        messages = self._queue.receive(self._free)
        if not messages:
            return rest(self._queue, self._clock, LEAST_REST_SECONDS)
        self._fire(messages)
        return 0.0

    def stop(self) -> None:
        """Wait for what is being delivered; no step comes any more.

        What can't be written then comes again after the next start, as if the process were killed.
        """
        telemetry.begin(NAME, None)
        self._threads.shutdown()
        try:
            self._settle(self._ended())
        except StorageError as error:
            telemetry.event(logging.WARNING, "events wait for the next start", reason=str(error))

    def _ended(self) -> list[tuple[Message, Work]]:
        """What was attempted since the last time, each once."""
        return [self._attempted.popleft() for _ in range(len(self._attempted))]

    def _settle(self, attempted: list[tuple[Message, Work]]) -> None:
        if not attempted:
            return
        self._free += len(attempted)
        works = [work for _, work in attempted]
        try:
            resources.for_timers().each(Work.settle, works)
        finally:
            _release(works)
        self._forget(attempted)

    def _fire(self, messages: list[Message]) -> None:
        use = resources.for_timers()
        firing = firing_with(use)
        records = events.queue_event(self._queue.name, messages)["Records"]
        works = [Work(firing, record) for record in records]
        try:
            use.each(Work.claim, works)
        except BaseException:
            _release(works)
            raise
        received = list(zip(messages, works, strict=True))
        for message, work in received:
            if work.is_claimed:
                self._free -= 1
                self._threads.submit(self._attempt, message, work)
        self._forget([(message, work) for message, work in received if not work.is_claimed])

    def _attempt(self, message: Message, work: Work) -> None:
        telemetry.begin(NAME, None)
        work.attempt()
        self._attempted.append((message, work))
        self.on_attempt()

    def _forget(self, done: list[tuple[Message, Work]]) -> None:
        """A message that is not done with comes again after its visibility timeout."""
        self._queue.delete([message for message, work in done if work.is_done])


def _release(works: Iterable[Work]) -> None:
    for work in works:
        work.release()
