"""Log lines that a test reads, and the logging of the process restored after it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chalicelib import telemetry


@contextmanager
def logging_put_back() -> Iterator[None]:
    """Undo what a test's code does to the handlers and levels of the process."""
    root = logging.getLogger()
    handlers, loggers = list(root.handlers), (root, telemetry.log, telemetry.metrics)
    levels = [logger.level for logger in loggers]
    try:
        yield
    finally:
        root.handlers[:] = handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def told(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str, dict[str, object]]]:
    """What was logged beside metrics: level, message and fields, without the function."""
    return [
        (
            record.levelno,
            record.message,
            {name: value for name, value in vars(record)["fields"].items() if name != "function"},
        )
        for record in caplog.records
        if record.name == telemetry.log.name
    ]
