"""One machine's engine: opens the file, gives the handlers their storage, and runs the loops."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from chalicelib.aws import resources
from chalicelib.concurrency import Each
from chalicelib.events.claims import Claims
from chalicelib.events.distribute import distribute_timers
from chalicelib.events.tick import sweep_timers
from chalicelib.events.webhooks.sender import Sender
from chalicelib.settings import Settings
from chalicelib.views.fold import fold_views
from chalicelib.views.put import put_views
from chalicelib.wallets.archive_consumer import archive_entries
from chalicelib.wallets.wallet import ENTRY
from vumi import secrets
from vumi.fair_lock import Turns
from vumi.storage import archive
from vumi.storage.archive import FolderArchive
from vumi.storage.backup import LOCK
from vumi.storage.database import FILE, Database
from vumi.storage.queue import SqliteQueue
from vumi.storage.table import SqliteTable
from vumi.storage.view_clock import ViewClock
from vumi.workers.delivery import (
    LINGER_SECONDS,
    DeliveryAtOnce,
    Expiry,
    MessageDelivery,
    StreamDelivery,
    Sweeping,
)
from vumi.workers.events_delivery import FiringDelivery, ProcessClaims
from vumi.workers.loops import Loop

Result = TypeVar("Result")

VIEWS_QUEUE = "vu-mi-views"
TIMERS_QUEUE = "vu-mi-timers"
DISTRIBUTION_QUEUE = "vu-mi-distribution"
VIEWS_MAX_RECEIVES = 1_000
"""A view that is neither young nor old comes again until it is old."""
EVENT_QUEUE = "event-"
"""What the name of a queue that events go to has before it in the file."""
FIRED_AT_ONCE = 128
"""Events that are delivered at the same time: so many URLs may hang and delay nobody."""
FIRING_VISIBILITY_SECONDS = 90
"""Longer than a delivery may take, so that its message does not come again meanwhile."""
ARCHIVE_SECONDS = 10.0
"""How long an entry may wait for others to share its object: as many come as moved in that time."""


class AlreadyRunningError(Exception):
    """Another vu-mi runs on this folder."""


@dataclass(frozen=True, slots=True)
class LocalResources:
    """A `resources.Resources` on one machine; its clock of views never goes back."""

    settings: Settings
    clock: Callable[[], float]
    view_clock: Callable[[], float]
    each: Each
    table: SqliteTable
    views_queue: SqliteQueue
    timers_queue: SqliteQueue
    distribution_queue: SqliteQueue
    archive: FolderArchive
    claims: Claims
    sender: Sender | None

    def event_queue(self, name: str) -> SqliteQueue | None:
        if name not in self.settings.event_queues:
            return None
        return self.timers_queue.sibling(EVENT_QUEUE + name)


class Engine:
    """Everything behind the web server, from `start` to `stop`; `prepare` makes its `resources`.

    Raises `AlreadyRunningError`, `SettingsError`, `OSError` where the folder can't be made, and a
    `StorageError` where the file can't be opened.
    """

    resources: LocalResources

    def __init__(
        self, folder: Path, settings: Settings, clock: Callable[[], float] = time.time
    ) -> None:
        resources.sender_of(settings)  # what is wrong is told before anything is made
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(folder)
        self._database = Database(folder / FILE)
        self.table = SqliteTable(self._database)
        self.queue = SqliteQueue(
            self._database, VIEWS_QUEUE, clock, max_receives=VIEWS_MAX_RECEIVES
        )
        timers = SqliteQueue(
            self._database, TIMERS_QUEUE, clock, visibility_timeout=FIRING_VISIBILITY_SECONDS
        )
        groups = SqliteQueue(self._database, DISTRIBUTION_QUEUE, clock)
        for queue in (self.queue, timers, groups):
            queue.release()
        self.turns = Turns()
        self._view_clock = ViewClock(self._database, self.queue, clock)
        put_handler = self._view_clock.kept_by(put_views)
        self._at_once = DeliveryAtOnce(self.queue, put_handler, clock)
        put = Loop(
            "put_views",
            MessageDelivery(self.queue, put_handler, clock, self._database.in_one_commit).step,
            LINGER_SECONDS,
            self.turns,
        )
        distribute = Loop(
            "distribute_timers",
            MessageDelivery(groups, distribute_timers, clock, self._database.in_one_commit).step,
        )
        self._firing = FiringDelivery(timers, clock, FIRED_AT_ONCE)
        fire = Loop("fire_timers", self._firing.step)
        sweep = Loop("sweep_timers", Sweeping(sweep_timers).step)
        stream = StreamDelivery(
            self._database,
            "fold_views",
            self._view_clock.kept_by(fold_views),
            together=self._database.in_one_commit,
        )
        fold = Loop("fold_views", stream.step, turn=self.turns)
        journal = StreamDelivery(self._database, "archive_entries", archive_entries, sort=ENTRY)
        archiving = Loop("archive_entries", journal.step, ARCHIVE_SECONDS)

        def on_removal() -> None:
            fold.wake()
            archiving.wake()

        expiring = Expiry(self._database, self.queue, clock, on_removal)
        expiry = Loop("expiry", expiring.step, turn=self.turns)
        self.queue.on_send = put.wake
        groups.on_send = distribute.wake
        timers.on_send = self._firing.on_attempt = fire.wake
        self._loops = (put, expiry, fold, archiving, distribute, fire, sweep)
        self._folder, self._settings, self._clock = folder, settings, clock
        self._timers, self._groups = timers, groups

    def together(self, function: Callable[[], Result], /) -> Result:
        """Run requests in one commit, which has their views stored too; a `gateway.Together`."""
        return self._database.in_one_commit(partial(self._at_once, function))

    def prepare(self) -> str:
        """Give the handlers their storage; once the server has its port, for this may make a token.

        Returns the token if it was made just now: nobody can tell it later. Raises `OSError` and
        `SettingsError`.
        """
        settings, new_token = secrets.prepare(self._settings, self._folder)
        sender = resources.sender_of(settings)
        self.resources = LocalResources(
            settings,
            self._clock,
            self._view_clock,
            self._database.each,
            self.table,
            self.queue,
            self._timers,
            self._groups,
            FolderArchive(self._folder / archive.FOLDER),
            ProcessClaims(),
            sender,
        )
        of_views = replace(self.resources, clock=self._view_clock)
        resources.use(of_views, self.resources, self.resources)
        return new_token

    def start(self) -> None:
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        """End the loops and close the file; what is queued goes on after the next start."""
        for loop in self._loops:
            loop.stop()
        self._firing.stop()
        resources.use(None)
        self._database.close()
        self._lock.close()


def _lock(folder: Path) -> IO[str]:
    """Hold the folder until closed or killed: two engines would deliver every message twice."""
    lock = (folder / LOCK).open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        process = lock.read().strip()
        lock.close()
        raise AlreadyRunningError(
            f"vu-mi already runs on {folder}/ (process {process}): stop it, or set DATA to"
            " another folder"
        ) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock
