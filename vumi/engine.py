"""The engine of one machine, which opens the file, makes the resources, and runs the loops."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from chalicelib.counting import keys
from chalicelib.events.sender import sender_of
from chalicelib.events.webhook_schedule import EventSchedule
from chalicelib.history.routes import Top
from chalicelib.http.authentication import RefusalLog
from chalicelib.outgoing.fetching import fetcher_of
from chalicelib.resources import Limits, NoLimits, Room
from chalicelib.settings import Feature, Settings
from chalicelib.units import Seconds
from chalicelib.wallets.wallet import ENTRY
from vumi.folder import lock_folder, prepare_secret, refuse_foreign, warn_of_others
from vumi.metrics import storage
from vumi.metrics.counters import Family
from vumi.resources import EVENT_QUEUE, StandaloneResources
from vumi.storage import archive
from vumi.storage.archive import FolderArchive
from vumi.storage.badges import count_badges
from vumi.storage.database import FILE, Database
from vumi.storage.limits import BadgeQuota, FileBans, ViewClock
from vumi.storage.private_files import FOLDER_MODE
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.storage.upkeep import sample_size, vacuum
from vumi.tokens import TokenStore
from vumi.workers.deliveries import (
    FOLDS,
    LINGER_SECONDS,
    ChangeDelivery,
    archive_changes,
    deliver_messages,
)
from vumi.workers.events import (
    DELIVERY,
    DELIVERY_QUEUE,
    MILESTONES_QUEUE,
    EventWorker,
    ProcessClaims,
    distribute_messages,
    find_queue,
    sweep_step,
)
from vumi.workers.expiry import remove_expired
from vumi.workers.loops import Loop
from vumi.workers.views import CommitBuffer, ViewWorker

Result = TypeVar("Result")

VIEWS_QUEUE = "vu-mi-views"
DISTRIBUTION_QUEUE = "vu-mi-distribution"
VIEWS_MAX_RECEIVES = 1_000
"""The message of a view that is neither young nor old is delivered again until the view is old."""
DELIVERY_THREADS = 128
"""Events that are delivered concurrently: fewer receivers that hang delay no other event."""
MILESTONE_THREADS = 64
"""Webhooks of milestones that are delivered concurrently, on threads of their own."""
DELIVERY_VISIBILITY_SECONDS = 90
"""Longer than a delivery may take, so that its message is not delivered again meanwhile."""
NO_LIMITS = NoLimits()
ARCHIVE_SECONDS = 10.0
"""The time that an entry may wait for others to share its object."""


class Engine:
    """The file of one machine, the resources of its requests, and the loops that work on it.

    Raises `ReportedError`, `SettingsError`, `UnsafeFileError` if another user controls the
    folder, `OSError` if it can't be made, and a `StorageError` if the file can't be opened.
    """

    resources: StandaloneResources

    def __init__(  # noqa: PLR0913, PLR0917  parts of the engine
        self,
        folder: Path,
        settings: Settings,
        clock: Callable[[], Seconds] = time.time,
        limits: Limits = NO_LIMITS,
        room: Callable[[], Room] = lambda: Room.ALL,
        max_badges: int = 0,
    ) -> None:
        sender_of(settings)  # a wrong setting is reported before anything is made
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        refuse_foreign(folder)
        self._folder, self._settings, self._clock, self._limits = folder, settings, clock, limits
        self._room = room
        self._lock = lock_folder(folder)
        self.is_new = not (folder / FILE).exists()
        self.database = Database(folder / FILE, migrates=True)
        self.table = SqliteTable(self.database)
        self._bans = FileBans(self.database, self.table)
        self.queue = SqliteQueue(self.database, VIEWS_QUEUE, clock, max_receives=VIEWS_MAX_RECEIVES)
        self._deliveries, self._milestones = (
            SqliteQueue(self.database, name, clock, visibility_timeout=DELIVERY_VISIBILITY_SECONDS)
            for name in (DELIVERY_QUEUE, MILESTONES_QUEUE)
        )
        self._deliveries.route = find_queue
        self._groups = SqliteQueue(self.database, DISTRIBUTION_QUEUE, clock)
        for queue in (self.queue, self._deliveries, self._milestones, self._groups):
            queue.release()
        self.view_queue = CommitBuffer(self.queue)
        in_one_commit: Callable[[Callable[[], int]], int] = self.database.in_one_commit
        quota = BadgeQuota(max_badges, self.badges, in_one_commit, time.monotonic)
        self.quota = quota if max_badges else None
        self._loops: list[Loop] = []
        self._events: list[EventWorker] = []

    def prepare(self, top: Top | None = None) -> str:
        """Make the resources and the loops after the server got its port.

        Return the token if it was created now, because no operator has one; it can't be shown
        later. Raises `OSError`, `SettingsError` and `StorageError`.
        """
        warn_of_others(self._folder)
        settings = prepare_secret(self._settings, self._folder)
        has_events = Feature.EVENTS in settings.features
        self.resources = StandaloneResources(
            settings=settings,
            clock=self._clock,
            view_clock=ViewClock(self.database, self.queue, self._clock),
            map_parallel=self.database.map_in_commits,
            limits=self._limits,
            room=self._room,
            quota=self.quota,
            bans=self._bans,
            table=self.table,
            top=top,
            views_queue=self.view_queue,
            delivery_queue=self._deliveries,
            distribution_queue=self._groups,
            archive=FolderArchive(self._folder / archive.FOLDER),
            claims=ProcessClaims(),
            refusals=RefusalLog(self._clock),
            resolver_of_threads=socket.getaddrinfo,
            sender=sender_of(settings),
            fetcher_of_threads=fetcher_of(settings),
            # Without events, nothing would deliver webhooks.
            webhooks=EventSchedule(lambda: self._milestones, self._clock) if has_events else None,
        )
        self._views = ViewWorker(self.view_queue, self.resources)
        self._loops = [*self._view_loops(), *self._quota_loops()]
        if has_events:
            self._loops += self._event_loops()
        if settings.api_token_digests:
            return ""
        return TokenStore(self.table, self._clock).create_first()

    def in_one_commit(self, function: Callable[[], Result], /) -> Result:
        """Run requests in one commit, which also stores their views."""

        def commit() -> Result:
            self._bans.refresh()
            return self._views.commit(function)

        return self.database.in_one_commit(commit)

    def limits_left(self) -> dict[str, int]:
        """Return how far away the limits of all badges and of the busiest clients are."""
        return {**self._limits.left(), **({"badges": self.quota.left} if self.quota else {})}

    def badges(self, most: int) -> int:
        """Return the number of badges, or `most` if there are more."""
        return count_badges(self.database.read, most)

    def _view_loops(self) -> list[Loop]:
        in_one_commit = self.database.in_one_commit
        views = partial(deliver_messages, self.queue, self._views.store_messages, in_one_commit)
        markers = ChangeDelivery(
            self.database,
            FOLDS,
            self._views.fold,
            sort=keys.WINDOW,
            in_one_commit=in_one_commit,
        )
        archive_removed = partial(archive_changes, resources=self.resources)
        entries = ChangeDelivery(self.database, "archive_entries", archive_removed, sort=ENTRY)
        put = Loop("put_views", views, LINGER_SECONDS)
        fold = Loop(FOLDS, markers.step)
        archiving = Loop("archive_entries", entries.step, ARCHIVE_SECONDS)

        def wake() -> None:
            fold.wake()
            archiving.wake()

        expiry = partial(remove_expired, self.database, self.queue, self._clock, wake)
        self.queue.on_send = put.wake
        sizes = Loop("file_size", partial(sample_size, self.database, self._clock))
        shrinking = Loop("vacuum", partial(vacuum, self.database))
        return [put, Loop("expiry", expiry), fold, archiving, sizes, shrinking]

    def _quota_loops(self) -> Iterator[Loop]:
        if self.quota:
            self.quota.step()
            loop = Loop("count_badges", self.quota.step)
            self.quota.on_refusal = loop.wake
            yield loop

    def _event_loops(self) -> list[Loop]:
        handle = partial(distribute_messages, resources=self.resources)
        groups = partial(deliver_messages, self._groups, handle, self.database.in_one_commit)
        distribute = Loop("distribute_events", groups)
        self._groups.on_send = distribute.wake
        sender = self.resources.sender
        strangers = replace(
            self.resources,
            delivery_queue=self._milestones,
            sender=sender and replace(sender, http=sender.http.for_strangers()),
        )
        return [
            distribute,
            self._delivery_loop(self.resources, DELIVERY_THREADS),
            self._delivery_loop(strangers, MILESTONE_THREADS),
            Loop("sweep_events", partial(sweep_step, self.resources)),
        ]

    def _delivery_loop(self, resources: StandaloneResources, threads: int) -> Loop:
        worker = EventWorker(resources.delivery_queue, resources, threads)
        self._events.append(worker)
        loop = Loop(DELIVERY, worker.step)
        resources.delivery_queue.on_send = worker.on_attempt = loop.wake
        return loop

    def metrics(self) -> Iterator[Family]:
        named = (EVENT_QUEUE + name for name in self._settings.event_queues)
        names = (VIEWS_QUEUE, DELIVERY_QUEUE, MILESTONES_QUEUE, DISTRIBUTION_QUEUE, *named)
        yield from storage.read(self.database, names, self._clock)
        meaning = "Badges, and actions of the busiest client, that a limit has left."
        yield Family.by_label("vumi_limit_left", meaning, "limit", self.limits_left())

    def start(self) -> None:
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        """End the loops and close the file; queued messages are delivered after the next start."""
        for loop in self._loops:
            loop.stop()
        for worker in self._events:
            worker.stop()
        self.database.close()
        self._lock.close()
