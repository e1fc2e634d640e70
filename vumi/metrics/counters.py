"""Prometheus' text format of metrics, and those counted: of requests, of the core, and of the log.

The format is written here because prometheus_client costs a hit 11 µs, and an idle server 4.7 MB.
Source: Prometheus documentation, "Exposition formats", "Text-based format".

Requests may be in the access log. The core counts by `chalicelib.telemetry`; on AWS, the same calls
write CloudWatch's metrics.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, groupby
from threading import Lock
from typing import TypeAlias

from chalicelib import telemetry
from chalicelib.http.messages import Response
from chalicelib.http.routing import RouteTable
from chalicelib.units import Seconds

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Bounds of the times of requests and commits, in seconds."""
SIZES = (1, 2, 5, 10, 20, 50, 100)
"""Bounds of the number of requests in a commit."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
OTHER = "other"
"""The label of every other method, because a client may send any text."""
NO_ROUTE = "none"
"""The label of a path without a route."""
DELAYS = (1, 2, 5, 15, 60, 300, 900, 3_600)
"""Bounds of delays, which are in whole seconds."""
LEVELS = ("WARNING", "ERROR", "CRITICAL")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Histogram:
    """The number of values up to each bound, and their sum. One thread adds values."""

    __slots__ = ("_bounds", "_numbers", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._numbers = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._numbers[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def samples(self) -> Iterator[tuple[str, str, float]]:
        """Yield the suffix, the bound and the value of each sample."""
        numbers, total = list(accumulate(self._numbers)), self._sum
        for bound, number in zip(self._bounds, numbers, strict=False):
            yield "_bucket", f"{bound:g}", number
        yield "_bucket", "+Inf", numbers[-1]
        yield "_sum", "", total
        yield "_count", "", numbers[-1]


Value: TypeAlias = float | Histogram


@dataclass(frozen=True, slots=True)
class Family:
    """A metric and its values, each by the values of its labels; `meaning` is its help text."""

    name: str
    meaning: str
    values: Mapping[tuple[str, ...], Value]
    labels: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, meaning: str, value: Value) -> Family:
        return cls(name, meaning, {(): value})

    @classmethod
    def by_label(cls, name: str, meaning: str, label: str, values: Mapping[str, Value]) -> Family:
        return cls(name, meaning, {(given,): value for given, value in values.items()}, (label,))

    @property
    def type(self) -> str:
        """Return Prometheus' type of the metric."""
        if self.name.endswith("_total"):
            return "counter"
        first = next(iter(self.values.values()))
        return "histogram" if isinstance(first, Histogram) else "gauge"


def render(families: Iterable[Family]) -> str:
    """Return the families that have values in Prometheus' text format."""
    return "".join(f"{line}\n" for family in families if family.values for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    name = family.name
    yield f"# HELP {name} {family.meaning}"
    yield f"# TYPE {name} {family.type}"
    for given, value in family.values.items():
        labels = list(zip(family.labels, given, strict=True))
        if not isinstance(value, Histogram):
            yield f"{name}{_braced(labels)} {value}"
            continue
        for suffix, bound, number in value.samples():
            bucket = [*labels, ("le", bound)] if bound else labels
            yield f"{name}{suffix}{_braced(bucket)} {number}"


def _braced(labels: Sequence[tuple[str, str]]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{value.translate(ESCAPES)}"' for name, value in labels) + "}"


class RequestMetrics:
    """The number and the times of requests by route, and the times and sizes of common commits.

    The thread of the event loop adds them.
    """

    def __init__(self, table: RouteTable, *, access_log: bool) -> None:
        self._table = table
        self._access_log = access_log
        self._numbers = Counter[tuple[str, str, int]]()
        self._times = defaultdict[str, Histogram](partial(Histogram, BOUNDS))
        self._commit_times, self._commit_sizes = Histogram(BOUNDS), Histogram(SIZES)

    def add(self, method: str, path: str, response: Response, seconds: Seconds) -> None:
        """Count an answered request, and log it if the operator wants that.

        The path of a badge is the template of its route, so it needs no search.
        """
        if (method, path, response.status) not in self._numbers:
            method, path = self._route(method, path)
        self._numbers[method, path, response.status] += 1
        self._times[path].add(seconds)
        if self._access_log:
            _log(method, path, response, seconds)

    def add_commit(self, requests: int, seconds: Seconds) -> None:
        self._commit_times.add(seconds)
        self._commit_sizes.add(requests)

    def _route(self, method: str, path: str) -> tuple[str, str]:
        """Return the labels of a request, none of which a client chooses."""
        label, match = method if method in METHODS else OTHER, self._table.find(path)
        if match is None:
            return label, NO_ROUTE
        first = next(iter(match.routes.values()))
        return label, match.routes.get(method, first).path

    def families(self) -> Iterator[Family]:
        yield Family(
            "vumi_http_requests_total",
            "Requests that were answered.",
            {(*route, str(status)): number for (*route, status), number in self._numbers.items()},
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


@dataclass(frozen=True, slots=True)
class Counted:
    """The metric of a name that the core counts by, with a label if several names share it."""

    metric: str
    meaning: str
    label: tuple[str, ...] = ()
    value: tuple[str, ...] = ()


FOLDED = partial(Counted, "vumi_views_folded_total", "Views that folds counted.", ("cause",))
ATTEMPTS = partial(
    Counted, "vumi_events_total", "Attempts of events by their outcome.", ("outcome",)
)
SWEPT = partial(Counted, "vumi_events_swept_total", "Events that the sweep queued.", ("due",))
POSTED = partial(
    Counted,
    "vumi_webhook_attempts_total",
    "Attempts to post an event to a URL by their outcome.",
    ("outcome",),
)
COUNTED: Mapping[str, Counted] = {
    "views_taken": Counted("vumi_views_taken_total", "Views that were taken."),
    "views_put": Counted("vumi_views_stored_total", "Views that were stored, or counted at once."),
    "queue_refusals": Counted(
        "vumi_queue_refusals_total",
        "Views that the queue refused. They are stored without it, unless the table refuses"
        " them too.",
    ),
    "views_waiting": Counted(
        "vumi_views_waiting_total",
        "Deliveries of views that were neither young nor old, and are delivered again.",
    ),
    "views_folded": FOLDED(("marker",)),
    "views_folded_early": FOLDED(("visitor",)),
    "folds_postponed": Counted("vumi_folds_postponed_total", "Folds whose markers were put again."),
    "fold_lag_seconds": Counted(
        "vumi_fold_delay_seconds", "Age of the oldest removed marker in each batch of folds."
    ),
    "events_delivered": ATTEMPTS(("delivered",)),
    "attempts_failed": ATTEMPTS(("repeated",)),
    "events_failed": ATTEMPTS(("failed",)),
    "event_lateness_seconds": Counted(
        "vumi_event_lateness_seconds",
        "Time between the schedule of an event and its delivery.",
    ),
    "events_swept": SWEPT(("soon",)),
    "events_overdue": SWEPT(("overdue",)),
    "webhooks_delivered": POSTED(("delivered",)),
    "webhooks_refused": POSTED(("refused",)),
    "webhooks_unanswered": POSTED(("unanswered",)),
    "entries_archived": Counted(
        "vumi_entries_archived_total", "Journal entries written to the archive."
    ),
    "archive_lag_seconds": Counted(
        "vumi_archive_lag_seconds",
        "Age of the oldest entry in each archived object since its removal.",
    ),
    "malformed": Counted("vumi_malformed_messages_total", "Malformed messages and changes."),
}
"""Names that end with `_seconds` are measured, all others are counted."""


class Totals:
    """The totals since the start of the process. Any thread adds to them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers: Counter[str] = Counter()
        self._delays = {name: Histogram(DELAYS) for name in COUNTED if name.endswith("_seconds")}

    def add(self, values: Mapping[str, int]) -> None:
        """Add what `telemetry.count` was called with."""
        with self._lock:
            for name, value in values.items():
                if (delays := self._delays.get(name)) is not None:
                    delays.add(value)
                else:
                    self._numbers[name] += value

    def families(self) -> Iterator[Family]:
        """Yield the metrics, also those that were never counted."""
        for metric, named in groupby(COUNTED.items(), lambda item: item[1].metric):
            found = list(named)
            first = found[0][1]
            values: dict[tuple[str, ...], Value] = {
                one.value: self._delays.get(name, self._numbers[name]) for name, one in found
            }
            yield Family(metric, first.meaning, values, first.label)


class LogEvents(logging.Handler):
    """The number of log events by name and level. Each name is a constant of the code."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._numbers: Counter[tuple[str, ...]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        self._numbers[record.getMessage(), record.levelname] += 1

    def families(self) -> Iterator[Family]:
        numbers = dict(self._numbers)
        lines = Counter(dict.fromkeys(LEVELS, 0))
        for (_, level), number in numbers.items():
            lines[level] += number
        meaning = "Lines of the log that report problems"
        yield Family.by_label("vumi_log_lines_total", f"{meaning}.", "level", lines)
        labels = ("event", "level")
        yield Family("vumi_log_events_total", f"{meaning}, by event.", numbers, labels)
