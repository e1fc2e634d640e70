"""The handlers in this process, over the storage that a measurement gives them."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.concurrency import Each
from chalicelib.events.claims import Claims, Leases
from chalicelib.events.webhooks.sender import Sender
from chalicelib.settings import Settings
from chalicelib.storage.ports import Archive, Queue, Table, check_object_name


@dataclass(frozen=True, slots=True)
class Given:
    """A `resources.Resources` made of what is measured."""

    table: Table
    views_queue: Queue
    each: Each
    settings: Settings = field(default_factory=Settings)
    clock: Callable[[], float] = time.time


@dataclass(frozen=True, slots=True)
class GivenForTimers:
    """A `resources.Resources` made of what is measured; no event of it goes to a URL."""

    table: Table
    timers_queue: Queue
    distribution_queue: Queue
    event_queues: Mapping[str, Queue]
    each: Each
    settings: Settings
    clock: Callable[[], float] = time.time
    claims: Claims = field(default_factory=Leases)
    sender: Sender | None = None

    def event_queue(self, name: str) -> Queue | None:
        return self.event_queues.get(name)


@dataclass
class Shelf:
    """An `Archive` that keeps how many bytes each object has that is put into it."""

    _sizes: list[int] = field(default_factory=list)

    def put(self, name: str, body: bytes) -> None:
        check_object_name(name)
        self._sizes.append(len(body))

    def take(self) -> tuple[int, ...]:
        """The sizes of the objects since the last time."""
        taken, self._sizes = tuple(self._sizes), []
        return taken


@dataclass(frozen=True, slots=True)
class GivenForArchive:
    """A `resources.Resources` made of what is measured."""

    archive: Archive = field(default_factory=Shelf)
    clock: Callable[[], float] = time.time


@contextmanager
def handlers_over(
    given: Given, timers: GivenForTimers | None = None, archive: GivenForArchive | None = None
) -> Iterator[None]:
    """Let the handlers use these resources, and log all that they log on Lambda, to nowhere."""
    with Path(os.devnull).open("w") as nowhere:
        telemetry.write_to(nowhere, with_metrics=True)
        resources.use(given, timers, archive)
        try:
            yield
        finally:
            resources.use(None)
            telemetry.write_to(sys.stderr, with_metrics=False)
