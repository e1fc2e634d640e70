"""The metrics of a server, put together: all parts, the route, and their connection to the core."""

from __future__ import annotations

import platform
import resource
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import TypeAlias

from chalicelib import VERSION, telemetry
from chalicelib.http.authentication import AuthenticationResources
from chalicelib.http.messages import Request, Response
from chalicelib.http.responses import NOSNIFF, NOT_STORED
from chalicelib.http.routing import ANY_OPTIONS, Route, RouteTable
from chalicelib.resources import Action
from chalicelib.units import Seconds
from vumi.metrics.counters import CONTENT_TYPE, Family, LogEvents, RequestMetrics, Totals, render
from vumi.server.clients import ClientLimits
from vumi.server.common_commits import METRICS

KEPT_SECONDS = 1.0
"""The time for which a scrape is the answer to others, so that many scrapes slow no visitor."""
HEADERS = {
    "Content-Type": CONTENT_TYPE,
    "Cross-Origin-Resource-Policy": "same-origin",
    **NOT_STORED,
    **NOSNIFF,
}

Part: TypeAlias = Callable[[], Iterable[Family]]
Check: TypeAlias = Callable[[Request, AuthenticationResources], None]
"""A function that raises a `ClientError` unless a request may read the metrics."""


def read_process(started_at: Seconds, proc: Path = Path("/proc/self")) -> Iterator[Family]:
    """Yield the metrics of this process, with the names that Prometheus' own clients give them.

    Those of `proc` are only where the system has it, as Linux has. Source: proc(5).
    """
    versions = (VERSION, platform.python_version(), sqlite3.sqlite_version)
    meaning = "1, with the versions of vu-mi, Python and SQLite as labels."
    yield Family("vumi_build_info", meaning, {versions: 1}, ("version", "python", "sqlite"))
    meaning = "Time of the start of the process, since 1970."
    yield Family.of("process_start_time_seconds", meaning, started_at)
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = used.ru_utime + used.ru_stime
    yield Family.of("process_cpu_seconds_total", "Processor time of the process.", seconds)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    yield Family.of("process_max_fds", "Maximum number of open file descriptors.", files)
    if not proc.exists():
        return
    memory = int((proc / "statm").read_text().split()[1]) * resource.getpagesize()
    yield Family.of("process_resident_memory_bytes", "Resident memory of the process.", memory)
    files = sum(1 for _ in (proc / "fd").iterdir())
    yield Family.of("process_open_fds", "Open file descriptors of the process.", files)


class Monitoring:
    """The metrics of a server, and its table of routes with the route of the metrics."""

    def __init__(  # noqa: PLR0913  the parts of a server
        self,
        routes: Iterable[Route],
        parts: Sequence[Part],
        limits: ClientLimits,
        check: Check,
        *,
        access_log: bool,
        stopwatch: Callable[[], Seconds] = time.monotonic,
    ) -> None:
        own = Route("GET", METRICS, self._get, options=ANY_OPTIONS)
        self.table = RouteTable((*routes, own))
        self.requests = RequestMetrics(self.table, access_log=access_log)
        self._totals, self._log_events = Totals(), LogEvents()
        self._limits, self._check, self._stopwatch = limits, check, stopwatch
        self._lock = Lock()
        self._kept, self._kept_until = b"", stopwatch()
        self._parts = (
            self.requests.families,
            self._refusals,
            self._totals.families,
            self._log_events.families,
            *parts,
        )

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

    def _get(self, request: Request, resources: AuthenticationResources) -> Response:
        self._check(request, resources)
        with self._lock:
            if self._stopwatch() >= self._kept_until:
                self._kept = render(family for part in self._parts for family in part()).encode()
                self._kept_until = self._stopwatch() + KEPT_SECONDS
            return Response(200, HEADERS, self._kept)

    def _refusals(self) -> Iterator[Family]:
        refused = {action.name.lower(): self._limits.refused[action] for action in Action}
        meaning = "Actions that a limit per client address refused."
        yield Family.by_label("vumi_limit_refusals_total", meaning, "limit", refused)
