"""Resources made of the parts that a test or a measurement gives, and hosts among those parts."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from chalicelib.concurrency import MapParallel
from chalicelib.counting.view import ViewQueue
from chalicelib.events.event import Claims, Leases
from chalicelib.events.sender import Sender
from chalicelib.history.routes import Top
from chalicelib.http.authentication import RefusalLog
from chalicelib.outgoing.fetching import Fetcher
from chalicelib.outgoing.urls import Record, Resolver
from chalicelib.outgoing.webhooks import WebhookSchedule
from chalicelib.resources import Bans, Limits, NoLimits, Quota, Room
from chalicelib.settings import Settings
from chalicelib.storage.ports import Archive, Queue, Table
from chalicelib.units import Seconds

MISSING: Any = None
"""The value of a part that was not given; its use fails."""


@dataclass
class Host:
    """A host whose files have these lines, or a failure; `asked` records its fetches."""

    lines: Sequence[str] = ()
    failure: Exception | None = None
    asked: list[tuple[str, bool]] = field(default_factory=list)

    def fetch(self, url: str, *, is_listed: bool) -> bytes:
        self.asked.append((url, is_listed))
        if self.failure:
            raise self.failure
        return "\n".join(self.lines).encode(errors="surrogateescape")


class Names:
    """A resolver that gives its answers in turn, and then always the last one."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.asked: list[tuple[str, int]] = []
        self._answers = list(answers)

    def __call__(self, host: str, port: int, **options: Any) -> list[Record]:
        assert options == {"type": socket.SOCK_STREAM}
        self.asked.append((host, port))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        family = socket.AF_INET
        return [(family, socket.SOCK_STREAM, 6, "", (address, port)) for address in answer]


@dataclass
class Places:
    """A `limits.Quota` with places for so many new badges."""

    left: int

    def admit(self) -> bool:
        self.left -= 1
        return self.left >= 0


class NoBans:
    """The bans of an engine that bans nobody."""

    def cover(self, badge_id: str) -> bool:  # noqa: ARG002  the port's
        return False

    def forget(self) -> None:
        """Do nothing."""


@dataclass
class GivenResources:
    """A `resources.Resources` made of these parts."""

    table: Table = MISSING
    views_queue: ViewQueue = MISSING
    delivery_queue: Queue = MISSING
    distribution_queue: Queue = MISSING
    archive: Archive = MISSING
    settings: Settings = field(default_factory=Settings)
    clock: Callable[[], Seconds] = time.time
    map_parallel: MapParallel = map
    map_reads: MapParallel = map
    limits: Limits = field(default_factory=NoLimits)
    room: Callable[[], Room] = lambda: Room.ALL
    quota: Quota | None = None
    bans: Bans = field(default_factory=NoBans)
    top: Top | None = None
    claims: Claims = field(default_factory=Leases)
    sender: Sender | None = None
    fetcher: Fetcher = MISSING
    resolver: Resolver = MISSING
    webhooks: WebhookSchedule | None = None
    event_queues: Mapping[str, Queue] = field(default_factory=dict)

    @cached_property
    def refusals(self) -> RefusalLog:
        return RefusalLog(self.clock)

    @property
    def view_clock(self) -> Callable[[], Seconds]:
        return self.clock

    def event_queue(self, name: str) -> Queue | None:
        return self.event_queues.get(name)
