"""The resources of one machine: all of them are in one folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from chalicelib.concurrency import MapParallel
from chalicelib.events.claims import Claims
from chalicelib.events.webhooks.sender import Sender
from chalicelib.http.refusals import RefusalLog
from chalicelib.limits import Limits, Room
from chalicelib.outgoing.fetching import Fetcher
from chalicelib.outgoing.urls import Resolver
from chalicelib.outgoing.webhooks import WebhookSchedule
from chalicelib.settings import Settings
from chalicelib.storage.ports import Archive
from chalicelib.units import Seconds
from chalicelib.views.view_queue import ViewQueue
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.storage.view_clock import ViewClock

EVENT_QUEUE = "event-"
"""The beginning of the name of each queue of `EVENT_QUEUES` in the file."""


@dataclass(frozen=True, slots=True)
class StandaloneResources:
    """The `chalicelib.resources.Resources` of one machine."""

    settings: Settings
    clock: Callable[[], Seconds]
    view_clock: ViewClock
    map_parallel: MapParallel
    limits: Limits
    room: Callable[[], Room]
    table: SqliteTable
    views_queue: ViewQueue
    delivery_queue: SqliteQueue
    distribution_queue: SqliteQueue
    archive: Archive
    claims: Claims
    refusals: RefusalLog
    resolver: Resolver
    sender: Sender | None
    fetcher: Fetcher
    webhooks: WebhookSchedule | None

    def event_queue(self, name: str) -> SqliteQueue | None:
        if name not in self.settings.event_queues:
            return None
        return self.delivery_queue.sibling(EVENT_QUEUE + name)
