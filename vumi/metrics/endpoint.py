"""The route of the metrics, `GET /metrics`, which only one machine has."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import TypeAlias

from chalicelib.http.messages import Request, Response
from chalicelib.http.responses import NOSNIFF, NOT_STORED
from chalicelib.http.routing import ANY_OPTIONS, Route
from chalicelib.resources import Resources
from chalicelib.units import Seconds
from vumi.metrics import access
from vumi.metrics.access import MetricsAccess
from vumi.metrics.families import CONTENT_TYPE, Family, render
from vumi.server.common_commits import METRICS
from vumi.server.proxies import TrustedProxies

KEPT_SECONDS = 1.0
"""The time for which a scrape is the answer to others, so that many scrapes slow no visitor."""
HEADERS = {
    "Content-Type": CONTENT_TYPE,
    "Cross-Origin-Resource-Policy": "same-origin",
    **NOT_STORED,
    **NOSNIFF,
}

Part: TypeAlias = Callable[[], Iterable[Family]]


class MetricsEndpoint:
    """The endpoint of the metrics of some parts; `stopwatch` is monotonic."""

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
