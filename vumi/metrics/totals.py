"""The totals of the metrics that the core counts by `chalicelib.telemetry`.

On AWS, the same calls write CloudWatch's metrics.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from threading import Lock
from types import MappingProxyType

from vumi.metrics.families import Family, Histogram, Value

DELAYS = (1, 2, 5, 15, 60, 300, 900, 3_600)
"""Bounds of delays, which are in whole seconds."""
LEVELS = ("WARNING", "ERROR", "CRITICAL")


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
COUNTED: Mapping[str, Counted] = MappingProxyType(
    {
        "views_taken": Counted("vumi_views_taken_total", "Views that were taken."),
        "views_put": Counted(
            "vumi_views_stored_total", "Views that were stored, or counted at once."
        ),
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
        "folds_postponed": Counted(
            "vumi_folds_postponed_total", "Folds whose markers were put again."
        ),
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
)
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
