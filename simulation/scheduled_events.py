"""A scheduled event for a given time, and an attempt to deliver it."""

from __future__ import annotations

from chalicelib.events.delivery import EventDelivery
from chalicelib.events.event import Event, Target, TargetKind
from chalicelib.units import Milliseconds, to_milliseconds
from simulation.clocks import NOON

AT: Milliseconds = to_milliseconds(NOON)


def deliver(delivery: EventDelivery, event: Event) -> None:
    """Attempt a claimed event and settle it, as a worker does."""
    if attempted := delivery.attempt(event):
        delivery.settle(attempted)


def an_event(name: str = "e", at: Milliseconds = AT) -> Event:
    """Return an event for the log that was accepted at noon."""
    return Event(name, at, AT, Target(TargetKind.LOG), '"hello"', f"{name} at {at}")
