"""The resources of one machine: all of them are in one folder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from chalicelib.concurrency import MapParallel
from chalicelib.counting.view import ViewQueue
from chalicelib.events.event import Claims
from chalicelib.events.sender import Sender
from chalicelib.history.routes import Top
from chalicelib.http.authentication import RefusalLog
from chalicelib.outgoing.fetching import Fetcher
from chalicelib.outgoing.urls import Resolver
from chalicelib.outgoing.webhooks import WebhookSchedule
from chalicelib.resources import Bans, Limits, Quota, Room
from chalicelib.settings import Settings
from chalicelib.storage.ports import Archive
from chalicelib.units import Seconds
from vumi.storage.limits import ViewClock
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable

EVENT_QUEUE = "event-"
"""The beginning of the name of each queue of `EVENT_QUEUES` in the file."""


class MayWait(BaseException):
    """A request on the thread of the event loop came to the network, and must leave that thread.

    A route takes its resource of the network after all that may refuse the request, and before its
    first write.
    """


@dataclass(frozen=True, slots=True)
class StandaloneResources:
    """The `chalicelib.resources.Resources` of one machine."""

    map_reads: ClassVar[MapParallel] = map

    settings: Settings
    clock: Callable[[], Seconds]
    view_clock: ViewClock
    map_parallel: MapParallel
    limits: Limits
    room: Callable[[], Room]
    quota: Quota | None
    bans: Bans
    table: SqliteTable
    top: Top | None
    views_queue: ViewQueue
    delivery_queue: SqliteQueue
    distribution_queue: SqliteQueue
    archive: Archive
    claims: Claims
    refusals: RefusalLog
    resolver_of_threads: Resolver
    sender: Sender | None
    fetcher_of_threads: Fetcher
    webhooks: WebhookSchedule | None

    @property
    def resolver(self) -> Resolver:
        """Return the resolver. Raises `MayWait` on the thread of the event loop."""
        _leave_event_loop()
        return self.resolver_of_threads

    @property
    def fetcher(self) -> Fetcher:
        """Return the fetcher. Raises `MayWait` on the thread of the event loop."""
        _leave_event_loop()
        return self.fetcher_of_threads

    def event_queue(self, name: str) -> SqliteQueue | None:
        if name not in self.settings.event_queues:
            return None
        return self.delivery_queue.sibling(EVENT_QUEUE + name)


def is_on_event_loop() -> bool:
    """Return whether this thread is that of the event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _leave_event_loop() -> None:
    if is_on_event_loop():
        raise MayWait
