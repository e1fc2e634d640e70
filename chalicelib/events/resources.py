"""The resources of scheduled events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from chalicelib.resources import Resources

if TYPE_CHECKING:
    from chalicelib.concurrency import MapParallel
    from chalicelib.events.claims import Claims
    from chalicelib.events.webhooks.sender import Sender
    from chalicelib.outgoing.urls import Resolver
    from chalicelib.storage.ports import Queue


class EventResources(Resources, Protocol):
    """The resources of the routes and the consumers of events."""

    @property
    def map_parallel(self) -> MapParallel: ...
    @property
    def delivery_queue(self) -> Queue: ...
    @property
    def distribution_queue(self) -> Queue: ...
    @property
    def claims(self) -> Claims: ...
    @property
    def resolver(self) -> Resolver:
        """Return the resolver of the host names in the URLs of new events."""

    @property
    def sender(self) -> Sender | None:
        """Return the sender of webhooks, or None without a secret to sign them with."""

    def event_queue(self, name: str) -> Queue | None:
        """Return the queue for events that the operator has listed under this name."""
