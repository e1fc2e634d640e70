"""The metrics of requests and of their common commits, and the access log."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial

from chalicelib import telemetry
from chalicelib.http.messages import Response
from chalicelib.http.routing import RouteTable
from chalicelib.units import Seconds
from vumi.metrics.families import Family, Histogram

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bounds of the times of requests and commits, in seconds."""
SIZES = (1, 2, 5, 10, 20, 50, 100)
"""Bounds of the number of requests in a commit."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
"""The label of every other method, because a client may send any text."""
NO_ROUTE = "none"
"""The label of a path without a route."""


class RequestMetrics:
    """The number and the times of requests by route, and the times and sizes of common commits.

    The thread of the event loop adds them.
    """

    def __init__(self, table: RouteTable, *, access_log: bool) -> None:
        self._table = table
        self._access_log = access_log
        self._numbers = Counter[tuple[str, ...]]()
        self._times = defaultdict[str, Histogram](partial(Histogram, BOUNDS))
        self._commit_times, self._commit_sizes = Histogram(BOUNDS), Histogram(SIZES)

    def add(self, method: str, path: str, response: Response, seconds: Seconds) -> None:
        """Count an answered request, and log it if the operator wants that.

        The path of a badge is the template of its route, so it needs no search.
        """
        status = str(response.status)
        if (method, path, status) not in self._numbers:
            method, path = self._route(method, path)
        self._numbers[method, path, status] += 1
        self._times[path].add(seconds)
        if self._access_log:
            _log(method, path, response, seconds)

    def add_commit(self, requests: int, seconds: Seconds) -> None:
        self._commit_times.add(seconds)
        self._commit_sizes.add(requests)

    def _route(self, method: str, path: str) -> tuple[str, str]:
        """Return the labels of a request, none of which a client chooses."""
        match = self._table.find(path)
        if match is None:
            return method if method in METHODS else OTHER, NO_ROUTE
        route = match.routes.get(method)
        if route is None:
            other = next(iter(match.routes.values()))
            return method if method in METHODS else OTHER, other.path
        return method, route.path

    def families(self) -> Iterator[Family]:
        yield Family(
            "vumi_http_requests_total",
            "Requests that were answered.",
            dict(self._numbers),
            ("method", "route", "status"),
        )
        yield Family.by_label(
            "vumi_http_request_duration_seconds",
            "Time from the head of a request to its answer.",
            "route",
            dict(self._times),
        )
        meaning = "Time of a common commit of requests, with the wait for its turn."
        yield Family.of("vumi_commit_duration_seconds", meaning, self._commit_times)
        meaning = "Requests that shared a common commit."
        yield Family.of("vumi_commit_requests", meaning, self._commit_sizes)


def _log(method: str, route: str, response: Response, seconds: Seconds) -> None:
    """Log a request without anything that its client sent but the method."""
    telemetry.event(
        logging.INFO,
        "request_answered",
        method=method,
        route=route,
        status=response.status,
        duration_ms=round(seconds * 1000, 3),
        bytes=0 if method == "HEAD" else len(response.body),
    )
