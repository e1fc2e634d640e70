"""One machine's engine: opens the file, gives the handlers their storage, and runs the loops."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from chalicelib import resources
from chalicelib.concurrency import Each
from chalicelib.settings import Settings
from chalicelib.views.fold import fold_views
from chalicelib.views.put import put_views
from local.database import FILE, Database
from local.delivery import LINGER_SECONDS, Expiry, MessageDelivery, StreamDelivery
from local.loops import Loop
from local.queue import SqliteQueue
from local.table import SqliteTable
from local.web import Together

VIEWS_QUEUE = "vu-mi-views"
LOCK = "vu-mi.lock"


class AlreadyRunningError(Exception):
    """Another vu-mi runs on this folder."""


@dataclass(frozen=True, slots=True)
class LocalResources:
    """A `resources.Resources` on one machine."""

    settings: Settings
    clock: Callable[[], float]
    each: Each
    table: SqliteTable
    views_queue: SqliteQueue


class Engine:
    """Everything behind the web server, from `start` to `stop`.

    Raises `AlreadyRunningError`, `OSError` where the folder can't be made, and a `StorageError`
    where the file can't be opened.
    """

    def __init__(
        self, folder: Path, settings: Settings, clock: Callable[[], float] = time.time
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(folder)
        self._database = Database(folder / FILE)
        self.table = SqliteTable(self._database)
        self.queue = SqliteQueue(self._database, VIEWS_QUEUE, clock)
        self.queue.release()
        put = Loop("put_views", MessageDelivery(self.queue, put_views, clock).step, LINGER_SECONDS)
        fold = Loop("fold_views", StreamDelivery(self._database, "fold_views", fold_views).step)
        expiry = Loop("expiry", Expiry(self._database, VIEWS_QUEUE, clock, fold.wake).step)
        self.queue.on_send = put.wake
        self._loops = (put, expiry, fold)
        resources.use(LocalResources(settings, clock, self._database.each, self.table, self.queue))

    @property
    def together(self) -> Together:
        """Runs requests so that they share a commit."""
        return self._database.in_one_commit

    def start(self) -> None:
        for loop in self._loops:
            loop.start()

    def stop(self) -> None:
        """End the loops and close the file; what is queued goes on after the next start."""
        for loop in self._loops:
            loop.stop()
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
