"""The check of a count for the next milestone of its badge, which costs other badges nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.lazy import lazy
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds, to_milliseconds
from chalicelib.views.reached import NOTHING, Reached
from chalicelib.views.summary import Summary

if TYPE_CHECKING:
    from chalicelib.outgoing.webhooks import WebhookSchedule
    from chalicelib.views import milestones
else:
    milestones = lazy("chalicelib.views.milestones")


def reach(
    table: Table,
    summary: Summary,
    views: int,
    now: Seconds,
    webhooks: WebhookSchedule | None,
) -> Reached:
    """Return the milestones that a badge reaches with more views. Raises `StorageError`.

    Without `webhooks`, they are left to the next write that has them.
    """
    shown = summary.base + summary.count + views
    if webhooks is None or not views or not 0 < summary.milestone <= shown:
        return NOTHING
    return milestones.reach(table, summary, shown, to_milliseconds(now), webhooks)


def enqueue(reached: Reached, webhooks: WebhookSchedule | None) -> None:
    """Enqueue the events of milestones after they were written."""
    if webhooks is not None and reached.events:
        webhooks.enqueue(reached.events)
