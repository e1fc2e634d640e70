"""The consumers of events on one machine.

Events are claimed and settled in common commits, and each is delivered on its own thread: a slow
receiver delays no other event.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from chalicelib import telemetry
from chalicelib.counting import milestones
from chalicelib.events import sweep
from chalicelib.events.delivery import DeliveryTask, delivery_over
from chalicelib.events.event import LEASE_SECONDS, DeliveryResult, Event, event_id_in
from chalicelib.events.routes import EventResources
from chalicelib.storage.errors import StorageError
from chalicelib.storage.messages import handle_messages, log_malformed_message, parse_records
from chalicelib.units import Milliseconds, Seconds, to_milliseconds
from vumi.storage.queue import Message, SqliteQueue
from vumi.workers.deliveries import IDLE_SECONDS

DELIVERY_QUEUE = "vu-mi-deliveries"
MILESTONES_QUEUE = "vu-mi-milestones"
DELIVERY = "deliver_events"
"""The name of the Lambda function that delivers events; on one machine, log lines have it too."""
SWEEP_SECONDS = 60.0
MIN_REST_SECONDS = 0.005
"""The shortest rest of the loop; an event may be late by this much."""


class ProcessClaims:
    """The `Claims` of the one process that delivers: they hold while it delivers, by any clock.

    A new process holds none, so the claims of a killed process are free.
    """

    def __init__(self) -> None:
        self._held: set[str] = set()

    def hold(self, claim: str) -> None:
        self._held.add(claim)

    def release(self, claim: str) -> None:
        self._held.discard(claim)

    def held_until(self, event: Event, now: Milliseconds) -> Milliseconds:
        return now + to_milliseconds(LEASE_SECONDS) if event.claim in self._held else 0


def find_queue(body: str) -> str:
    """Return the queue of a delivery: strangers' webhooks wait apart from the operator's events."""
    is_milestone = event_id_in(body).startswith(milestones.EVENT)
    return MILESTONES_QUEUE if is_milestone else DELIVERY_QUEUE


def sweep_step(resources: EventResources) -> Seconds:
    """Sweep; return the time that may pass until the next sweep."""
    sweep.sweep_now(resources)
    return SWEEP_SECONDS


def distribute_messages(bodies: Mapping[int, str], resources: EventResources) -> list[int]:
    """Enqueue the events of groups; return the ids of the messages to deliver again."""
    distribute = partial(sweep.distribute_now, resources=resources)
    return handle_messages(bodies, sweep.group_in, distribute)


class EventWorker:
    """The worker that delivers the events of a queue, up to `threads` concurrently.

    `on_attempt` is called when an attempt has ended, because a step must settle it.
    """

    def __init__(self, queue: SqliteQueue, resources: EventResources, threads: int) -> None:
        self.on_attempt: Callable[[], None] = lambda: None
        self._queue = queue
        self._resources = resources
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=DELIVERY)
        self._free = threads
        self._attempted: deque[tuple[Message, DeliveryTask]] = deque()

    def step(self) -> Seconds:
        """Settle ended attempts, and begin one for each free thread."""
        self._settle()
        if not self._free:
            return IDLE_SECONDS
        messages = self._queue.receive(self._free)
        if not messages:
            return self._queue.seconds_until_visible(MIN_REST_SECONDS, IDLE_SECONDS)
        self._begin(messages)
        return 0.0

    def stop(self) -> None:
        """Wait for the current attempts and settle them; no step follows.

        If an outcome can't be written, its event is delivered again after the next start, as after
        a kill.
        """
        telemetry.begin(DELIVERY, None)
        self._threads.shutdown()
        try:
            self._settle()
        except StorageError as error:
            telemetry.event(logging.WARNING, "events_left_to_next_start", reason=str(error))

    def _settle(self) -> None:
        """Settle the attempts that have ended since the last call, each once."""
        attempted = [self._attempted.popleft() for _ in range(len(self._attempted))]
        if not attempted:
            return
        self._free += len(attempted)
        tasks = [task for _, task in attempted]
        try:
            list(self._resources.map_parallel(DeliveryTask.settle, tasks))
        finally:
            _release(tasks)
        self._delete(attempted)

    def _begin(self, messages: Sequence[Message]) -> None:
        received = self._claim(messages)
        for message, task in received:
            if task.is_claimed:
                self._free -= 1
                self._threads.submit(self._attempt, message, task)
        self._delete([(message, task) for message, task in received if not task.is_claimed])

    def _claim(self, messages: Sequence[Message]) -> list[tuple[Message, DeliveryTask]]:
        delivery = delivery_over(self._resources)
        received, _ = parse_records(
            messages,
            lambda message: DeliveryTask(delivery, event_id_in(message.body)),
            lambda message: log_malformed_message(message.id),
        )
        tasks = [task for _, task in received]
        try:
            list(self._resources.map_parallel(DeliveryTask.claim, tasks))
        except BaseException:
            _release(tasks)
            raise
        return received

    def _attempt(self, message: Message, task: DeliveryTask) -> None:
        telemetry.begin(DELIVERY, None)
        task.attempt()
        _count_webhook(task.webhook)
        self._attempted.append((message, task))
        self.on_attempt()

    def _delete(self, handled: Sequence[tuple[Message, DeliveryTask]]) -> None:
        """Delete handled messages; others are delivered again after their visibility timeout."""
        self._queue.delete([message for message, task in handled if task.is_done])


def _count_webhook(result: DeliveryResult | None) -> None:
    """Count the result of a POST, if the attempt of an event sent one."""
    if result is not None:
        telemetry.count(
            webhooks_delivered=int(not result.error),
            webhooks_refused=int(bool(result.error and result.code)),
            webhooks_unanswered=int(bool(result.error and not result.code)),
        )


def _release(tasks: Iterable[DeliveryTask]) -> None:
    for task in tasks:
        task.release()
