"""The metrics of a server, put together: all parts, the route, and their connection to the core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from chalicelib import telemetry
from chalicelib.http.routing import Route, RouteTable
from chalicelib.limits import Action
from chalicelib.units import Seconds
from chalicelib.version import VERSION
from vumi.metrics import catalogue
from vumi.metrics.access import MetricsAccess
from vumi.metrics.endpoint import MetricsEndpoint, Part
from vumi.metrics.families import Family
from vumi.metrics.process import ProcessMetrics
from vumi.metrics.requests import CommitMetrics, RequestMetrics
from vumi.metrics.storage import StorageMetrics
from vumi.metrics.totals import LogEvents, Totals
from vumi.server.client_limits import ClientLimits
from vumi.server.proxies import TrustedProxies


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
