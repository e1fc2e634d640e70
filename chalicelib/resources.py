"""The storage, queues, clock and settings that the core works with.

`chalicelib.aws.resources` has them for AWS, and `vumi.resources` for one machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.concurrency import MapParallel
    from chalicelib.counting.view_queue import ViewQueue
    from chalicelib.events.claims import Claims
    from chalicelib.events.webhooks.sender import Sender
    from chalicelib.http.refusals import RefusalLog
    from chalicelib.limits import Limits, Room
    from chalicelib.outgoing.fetching import Fetcher
    from chalicelib.outgoing.urls import Resolver
    from chalicelib.outgoing.webhooks import WebhookSchedule
    from chalicelib.settings import Settings
    from chalicelib.storage.ports import Archive, Queue, Table


class Resources(Protocol):
    """Everything outside the process that routes and consumers use.

    `view_clock` is the clock of views, which on one machine never goes back. `map_parallel` works
    on the independent parts of a batch. On AWS, `limits` limits nobody, and there is always `room`.
    """

    @property
    def settings(self) -> Settings: ...
    @property
    def clock(self) -> Callable[[], Seconds]: ...
    @property
    def view_clock(self) -> Callable[[], Seconds]: ...
    @property
    def map_parallel(self) -> MapParallel: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def room(self) -> Callable[[], Room]: ...
    @property
    def table(self) -> Table: ...
    @property
    def views_queue(self) -> ViewQueue: ...
    @property
    def delivery_queue(self) -> Queue: ...
    @property
    def distribution_queue(self) -> Queue: ...
    @property
    def archive(self) -> Archive: ...
    @property
    def claims(self) -> Claims: ...
    @property
    def refusals(self) -> RefusalLog: ...
    @property
    def resolver(self) -> Resolver:
        """Return the resolver of the host names in the URLs of new events."""

    @property
    def fetcher(self) -> Fetcher:
        """Return the fetcher of the files that prove the ownership of badges."""

    @property
    def sender(self) -> Sender | None:
        """Return the sender of webhooks, or None without a secret to sign them with."""

    @property
    def webhooks(self) -> WebhookSchedule | None:
        """Return the schedule of webhooks of other features, or None if events are off."""

    def event_queue(self, name: str) -> Queue | None:
        """Return the queue for events that the operator has listed under this name."""
