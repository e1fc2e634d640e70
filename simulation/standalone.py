"""The resources that views need on one machine, over an open file."""

from __future__ import annotations

from collections.abc import Callable

from chalicelib.resources import NoLimits, Room
from chalicelib.settings import Settings
from chalicelib.units import Seconds
from simulation.resources import MISSING, NoBans
from vumi.resources import StandaloneResources
from vumi.storage.database import Database
from vumi.storage.limits import ViewClock
from vumi.storage.table import SqliteTable
from vumi.workers.views import CommitBuffer


def standalone(
    database: Database,
    views_queue: CommitBuffer,
    clock: Callable[[], Seconds],
    settings: Settings,
    room: Callable[[], Room] = lambda: Room.ALL,
) -> StandaloneResources:
    """Return resources without events and journals."""
    return StandaloneResources(
        settings=settings,
        clock=clock,
        view_clock=ViewClock(database, views_queue.queue, clock),
        map_parallel=database.map_in_commits,
        limits=NoLimits(),
        room=room,
        quota=None,
        bans=NoBans(),
        table=SqliteTable(database),
        top=None,
        views_queue=views_queue,
        delivery_queue=MISSING,
        distribution_queue=MISSING,
        archive=MISSING,
        claims=MISSING,
        refusals=MISSING,
        resolver_of_threads=MISSING,
        sender=None,
        fetcher_of_threads=MISSING,
        webhooks=None,
    )
