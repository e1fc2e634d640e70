"""An installation in memory, which commands work on in tests."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from io import BytesIO

from chalicelib.concurrency import MapParallel
from chalicelib.counting import keys
from chalicelib.counting.view import Counting, Windows
from chalicelib.settings import Settings
from chalicelib.storage.items import Item, text
from chalicelib.storage.ports import Queue, Table
from chalicelib.units import Seconds
from simulation.storage import FakeArchive, FakeQueue, MemoryTable
from vumi.cli.options import Invocation
from vumi.journals import MALFORMED, ArchivedObject, first_name
from vumi.operate.admin import overview
from vumi.operate.admin.installation import Installation, LetterOutcome, Source
from vumi.operate.admin.overview import BadgeOverview
from vumi.operate.exchange.table_source import read_groups


@dataclass
class MemoryInstallation:
    """A `vumi.operate.admin.installation.Installation` in memory."""

    memory: MemoryTable = field(default_factory=MemoryTable)
    settings: Settings = field(default_factory=Settings)
    archive: FakeArchive = field(default_factory=FakeArchive)
    views_queue: Queue = field(default_factory=FakeQueue)
    delivery_queue: Queue = field(default_factory=FakeQueue)
    map_parallel: MapParallel = map
    clock: Callable[[], Seconds] = time.time
    event_queues: dict[str, Queue] = field(default_factory=dict)
    sleep: Callable[[Seconds], None] = lambda _: None
    view_times: list[Seconds] = field(default_factory=list)
    faulty: Table | None = None
    """A table over the memory, which fails or lets others write."""

    @property
    def table(self) -> Table:
        return self.faulty or self.memory

    @property
    def view_clock(self) -> Callable[[], Seconds]:
        return self.clock

    def keep_view_time(self, at: Seconds) -> None:
        self.view_times.append(at)

    @property
    def counting(self) -> Counting:
        return Counting(self.table, Windows.of(self.settings), self.clock)

    def event_queue(self, name: str) -> Queue | None:
        return self.event_queues.get(name)

    @contextmanager
    def open_source(self) -> Iterator[Source]:
        objects = sorted(self.archive.objects.items())
        yield Source("AWS", read_groups(self, self.sleep), objects)

    def items(self) -> Iterator[Item]:
        return (dict(self.memory.items[key]) for key in sorted(self.memory.items))

    def badges(self, now: Seconds) -> Iterator[BadgeOverview]:
        return overview.of_items(self.items(), now)

    def archived(self, since: date | None = None) -> Iterator[ArchivedObject]:
        for name, body in sorted(self.archive.objects.items()):
            if name >= first_name(since) and not name.startswith(MALFORMED):
                yield ArchivedObject(name, partial(BytesIO, body))

    def viewed_ids(self) -> Iterator[str]:
        views = (item for item in self.items() if text(item, "SK").startswith(keys.VIEW))
        return (text(item, "PK").removeprefix(keys.PARTITION) for item in views)

    def redrive_views(self) -> Counter[LetterOutcome]:
        return Counter()


@dataclass(frozen=True)
class InMemory(Invocation):
    """An invocation whose commands work on an installation in memory."""

    memory: Installation = field(default_factory=MemoryInstallation)

    @contextmanager
    def open_installation(self, stack_name: str | None) -> Iterator[Installation]:
        assert stack_name is None
        yield self.memory


def invoke_on(installation: Installation) -> InMemory:
    """Return an invocation on an installation, without any setting."""
    return InMemory({}, installation.clock, installation)
