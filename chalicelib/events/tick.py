"""`sweep_timers`: once a minute, what is due soon goes on its way."""

from __future__ import annotations

from chalice.app import Blueprint, CloudWatchEvent

from chalicelib import telemetry
from chalicelib.aws import resources

blueprint = Blueprint(__name__)


@blueprint.schedule("rate(1 minute)", name="sweep_timers")
def sweep_timers(event: CloudWatchEvent) -> dict[str, int]:
    """Sweep; returns how much was found. A failed sweep leaves all to the next one."""
    from chalicelib.events.sweep import sweep  # noqa: PLC0415  the API imports this too

    telemetry.begin("sweep_timers", event.context)
    use = resources.for_timers()
    swept = sweep(use.table, use.distribution_queue, int(use.clock() * 1000), use.each)
    return {"sent": swept.sent, "overdue": swept.overdue}
