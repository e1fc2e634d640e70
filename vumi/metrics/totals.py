"""The totals of the metrics that the core counts by `chalicelib.telemetry`.

On AWS, the same calls write CloudWatch's metrics.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from threading import Lock
from types import MappingProxyType

from vumi.metrics import catalogue
from vumi.metrics.families import Family, Histogram, Kind, Metric, Value

DELAYS = (1, 2, 5, 15, 60, 300, 900, 3_600)
"""Bounds of delays, which are in whole seconds."""
LEVELS = ("WARNING", "ERROR", "CRITICAL")
COUNTED: Mapping[str, tuple[Metric, tuple[str, ...]]] = MappingProxyType(
    {
        "views_taken": (catalogue.VIEWS_TAKEN, ()),
        "views_put": (catalogue.VIEWS_STORED, ()),
        "queue_refusals": (catalogue.QUEUE_REFUSALS, ()),
        "views_waiting": (catalogue.VIEWS_WAITING, ()),
        "views_folded": (catalogue.VIEWS_FOLDED, ("marker",)),
        "views_folded_early": (catalogue.VIEWS_FOLDED, ("visitor",)),
        "folds_postponed": (catalogue.FOLDS_POSTPONED, ()),
        "fold_lag_seconds": (catalogue.FOLD_DELAY, ()),
        "events_fired": (catalogue.EVENTS, ("delivered",)),
        "attempts_failed": (catalogue.EVENTS, ("repeated",)),
        "events_failed": (catalogue.EVENTS, ("failed",)),
        "event_lateness_seconds": (catalogue.EVENT_LATENESS, ()),
        "events_swept": (catalogue.EVENTS_SWEPT, ("soon",)),
        "events_overdue": (catalogue.EVENTS_SWEPT, ("overdue",)),
        "webhooks_delivered": (catalogue.WEBHOOKS, ("delivered",)),
        "webhooks_refused": (catalogue.WEBHOOKS, ("refused",)),
        "webhooks_unanswered": (catalogue.WEBHOOKS, ("unanswered",)),
        "entries_archived": (catalogue.ENTRIES_ARCHIVED, ()),
        "archive_lag_seconds": (catalogue.ARCHIVE_LAG, ()),
        "malformed": (catalogue.MALFORMED, ()),
    }
)
"""The metric, and the values of its labels, of each name that the core counts by."""


class Totals:
    """The totals since the start of the process. Any thread adds to them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers: Counter[str] = Counter()
        self._delays = {
            name: Histogram(DELAYS)
            for name, (metric, _) in COUNTED.items()
            if metric.kind is Kind.HISTOGRAM
        }

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
        values: dict[Metric, dict[tuple[str, ...], Value]] = {}
        for name, (metric, labels) in COUNTED.items():
            total = self._delays.get(name, self._numbers[name])
            values.setdefault(metric, {})[labels] = total
        for metric, found in values.items():
            yield Family(metric, found)


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
        yield Family.by_label(catalogue.LOG_LINES, lines)
        yield Family(catalogue.LOG_EVENTS, numbers)
