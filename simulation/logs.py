"""Log lines for tests, and a way to restore the logging of the process."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chalicelib import telemetry


@contextmanager
def logging_put_back() -> Iterator[None]:
    """Restore the log handlers and levels of the process afterwards."""
    root = logging.getLogger()
    handlers, loggers = list(root.handlers), (root, telemetry.log, telemetry.metrics)
    levels = [logger.level for logger in loggers]
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def logged_events(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str, dict[str, object]]]:
    """Return the level, message and fields of each log line that is not a metric."""
    return [
        (
            record.levelno,
            record.message,
            {name: value for name, value in vars(record)["fields"].items() if name != "function"},
        )
        for record in caplog.records
        if record.name == telemetry.log.name
    ]


@contextmanager
def counting_metrics() -> Iterator[dict[str, dict[str, int]]]:
    """Sum the metrics that are logged, by function and name."""
    sums: dict[str, dict[str, int]] = {}

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            line = json.loads(telemetry.JsonFormatter().format(record))
            own = sums.setdefault(line["function"], {})
            for metric in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]:
                name = metric["Name"]
                own[name] = own.get(name, 0) + line[name]

    handler, level = Collect(), telemetry.metrics.level
    telemetry.metrics.addHandler(handler)
    telemetry.metrics.setLevel(logging.INFO)
    try:
        yield sums
    finally:
        telemetry.metrics.setLevel(level)
        telemetry.metrics.removeHandler(handler)
