"""Claims of events: the worker that may deliver an event, and how long no other worker may.

A claim is stored with its event. Whether it still holds depends on the engine: processes that share
only the table agree on a time, and one process alone knows what it delivers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from chalicelib.units import Milliseconds

if TYPE_CHECKING:
    from chalicelib.events.event import Event

LEASE_SECONDS = 60


class Claims(Protocol):
    """The claims on events, as this process knows them.

    A worker holds its claim before it writes it to the table, and releases it after it wrote the
    outcome. So a claim in the table is held for as long as its worker may deliver.
    """

    def hold(self, claim: str) -> None:
        """Note a claim of this process before it is written to the table."""

    def release(self, claim: str) -> None:
        """Forget a claim after its worker stopped delivering."""

    def held_until(self, event: Event, now: Milliseconds) -> Milliseconds:
        """Return the time until which no other worker may deliver an event; 0 if any may."""


class Leases:
    """`Claims` for processes that share only the table: a claim ends with its lease."""

    def hold(self, claim: str) -> None:
        """Do nothing: the lease is stored with the claim."""

    def release(self, claim: str) -> None:
        """Do nothing: the write of the outcome removes the lease."""

    def held_until(self, event: Event, now: Milliseconds) -> Milliseconds:  # noqa: ARG002  the lease has its own time
        return event.lease
