"""The metrics of a server, put together: all parts, the route, and their connection to the core."""

from __future__ import annotations

import platform
import resource
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.http.messages import Request, Response
from chalicelib.http.responses import NOSNIFF, NOT_STORED
from chalicelib.http.routing import ANY_OPTIONS, Route, RouteTable
from chalicelib.limits import Action
from chalicelib.resources import Resources
from chalicelib.units import Seconds
from chalicelib.version import VERSION
from vumi.metrics import access, catalogue
from vumi.metrics.access import MetricsAccess
from vumi.metrics.families import CONTENT_TYPE, Family, render
from vumi.metrics.requests import CommitMetrics, RequestMetrics
from vumi.metrics.storage import StorageMetrics
from vumi.metrics.totals import LogEvents, Totals
from vumi.server.client_limits import ClientLimits
from vumi.server.common_commits import METRICS
from vumi.server.proxies import TrustedProxies

PROC = Path("/proc/self")
KEPT_SECONDS = 1.0
"""The time for which a scrape is the answer to others, so that many scrapes slow no visitor."""
HEADERS = {
    "Content-Type": CONTENT_TYPE,
    "Cross-Origin-Resource-Policy": "same-origin",
    **NOT_STORED,
    **NOSNIFF,
}

Part: TypeAlias = Callable[[], Iterable[Family]]


@dataclass(frozen=True, slots=True)
class ProcessMetrics:
    """The metrics of this process, with the names that Prometheus' own clients give them.

    Those of `proc` are only where the system has it, as Linux has.
    """

    version: str
    started_at: Seconds
    proc: Path = PROC

    def families(self) -> Iterator[Family]:
        versions = (self.version, platform.python_version(), sqlite3.sqlite_version)
        yield Family(catalogue.BUILD, {versions: 1})
        yield Family.of(catalogue.START, self.started_at)
        used = resource.getrusage(resource.RUSAGE_SELF)
        yield Family.of(catalogue.CPU, used.ru_utime + used.ru_stime)
        yield Family.of(catalogue.MAX_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        if self.proc.exists():
            yield Family.of(catalogue.MEMORY, _resident_bytes(self.proc / "statm"))
            yield Family.of(catalogue.OPEN_FILES, sum(1 for _ in (self.proc / "fd").iterdir()))


def _resident_bytes(statm: Path) -> int:
    """Return the resident memory. Source: proc(5), "/proc/pid/statm"."""
    return int(statm.read_text().split()[1]) * resource.getpagesize()


class MetricsEndpoint:
    """The route `GET /metrics` with the metrics of some parts; `stopwatch` is monotonic."""

    def __init__(
        self,
        parts: Sequence[Part],
        allowed: MetricsAccess,
        proxies: TrustedProxies,
        stopwatch: Callable[[], Seconds] = time.monotonic,
    ) -> None:
        self._parts = parts
        self._allowed = allowed
        self._proxies = proxies
        self._stopwatch = stopwatch
        self._lock = Lock()
        self._kept, self._kept_until = b"", stopwatch()

    @property
    def route(self) -> Route:
        return Route("GET", METRICS, self._get, options=ANY_OPTIONS)

    def _get(self, request: Request, resources: Resources) -> Response:
        access.check(request, resources, self._allowed, self._proxies)
        return Response(200, HEADERS, self._text())

    def _text(self) -> bytes:
        with self._lock:
            if self._stopwatch() >= self._kept_until:
                self._kept = render(family for part in self._parts for family in part()).encode()
                self._kept_until = self._stopwatch() + KEPT_SECONDS
            return self._kept


@dataclass(frozen=True, slots=True)
class Monitored:
    """The parts of a server that have metrics, and the time of its start."""

    routes: Iterable[Route]
    storage: StorageMetrics
    limits: ClientLimits
    started_at: Seconds


class Monitoring:
    """The metrics of a server, and its table of routes with the route of the metrics."""

    def __init__(
        self,
        monitored: Monitored,
        allowed: MetricsAccess,
        proxies: TrustedProxies,
        *,
        access_log: bool,
    ) -> None:
        parts: list[Part] = []
        endpoint = MetricsEndpoint(parts, allowed, proxies)
        self.table = RouteTable((*monitored.routes, endpoint.route))
        self.requests = RequestMetrics(self.table, access_log=access_log)
        self.commits = CommitMetrics()
        self._totals, self._log_events = Totals(), LogEvents()
        self._limits = monitored.limits
        parts += [
            self.requests.families,
            self._refusals,
            self.commits.families,
            self._totals.families,
            self._log_events.families,
            monitored.storage.families,
            ProcessMetrics(VERSION, monitored.started_at).families,
        ]

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the metrics and the log events of the core during the block."""
        telemetry.on_count.append(self._totals.add)
        telemetry.log.addHandler(self._log_events)
        try:
            yield
        finally:
            telemetry.log.removeHandler(self._log_events)
            telemetry.on_count.remove(self._totals.add)

    def _refusals(self) -> Iterator[Family]:
        refused = {action.name.lower(): self._limits.refused[action] for action in Action}
        yield Family.by_label(catalogue.LIMIT_REFUSALS, refused)
