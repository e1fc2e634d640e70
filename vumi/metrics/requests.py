"""The metrics of requests and of their common commits, and the access log."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.http.messages import Response
from chalicelib.http.routing import RouteTable
from chalicelib.units import Seconds
from vumi.metrics import catalogue
from vumi.metrics.families import Family, Histogram, Value

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bounds of the times of requests and commits, in seconds."""
SIZES = (1, 2, 5, 10, 20, 50, 100)
"""Bounds of the number of requests in a commit."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
"""The label of every other method, because a client may send any text."""
NO_ROUTE = "none"
"""The label of a path without a route."""

Labels: TypeAlias = tuple[str, str, int]
"""The method, the template of the route, and the status."""


class RequestMetrics:
    """The number and the times of requests by route. The thread of the event loop adds them."""

    def __init__(self, table: RouteTable, *, access_log: bool) -> None:
        self._table = table
        self._access_log = access_log
        self._times: dict[Labels, Histogram] = {}

    def add(self, method: str, path: str, response: Response, seconds: Seconds) -> None:
        """Count an answered request, and log it if the operator wants that.

        The path of a badge is the template of its route, so it needs no search.
        """
        labels = (method, path, response.status)
        times = self._times.get(labels)
        if times is None:
            labels = (*self._route(method, path), response.status)
            times = self._times.setdefault(labels, Histogram(BOUNDS))
        times.add(seconds)
        if self._access_log:
            _log(labels, response, seconds)

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
        times = list(self._times.items())
        numbers: dict[tuple[str, ...], Value] = {
            (method, route, str(status)): one.number for (method, route, status), one in times
        }
        yield Family(catalogue.REQUESTS, numbers)
        by_route: dict[str, Histogram] = {}
        for (_, route, _), one in times:
            by_route[route] = one.plus(by_route.get(route, Histogram(BOUNDS)))
        yield Family.by_label(catalogue.REQUEST_SECONDS, by_route)


def _log(labels: Labels, response: Response, seconds: Seconds) -> None:
    """Log a request without anything that its client sent but the method."""
    method, route, status = labels
    telemetry.event(
        logging.INFO,
        "request_answered",
        method=method,
        route=route,
        status=status,
        duration_ms=round(seconds * 1000, 3),
        bytes=0 if method == "HEAD" else len(response.body),
    )


class CommitMetrics:
    """The times and the sizes of common commits. The thread of the event loop adds them."""

    def __init__(self) -> None:
        self._times, self._sizes = Histogram(BOUNDS), Histogram(SIZES)

    def add(self, requests: int, seconds: Seconds) -> None:
        self._times.add(seconds)
        self._sizes.add(requests)

    def families(self) -> Iterator[Family]:
        yield Family.of(catalogue.COMMIT_SECONDS, self._times)
        yield Family.of(catalogue.COMMIT_REQUESTS, self._sizes)
