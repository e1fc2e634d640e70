"""The log and the metrics of the program: one JSON object per line.

On AWS, metrics have CloudWatch's embedded metric format, so they cost only a log line. No line has
anything about a visitor.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial
from types import MappingProxyType
from typing import Any, TextIO

from chalicelib.units import Seconds, to_iso8601, to_milliseconds

NAMESPACE = "vu-mi"

log = logging.getLogger("vu-mi")
metrics = logging.getLogger("vu-mi.metrics")


_invocation: ContextVar[Mapping[str, str]] = ContextVar(
    "invocation", default=MappingProxyType({"function": "vu-mi"})
)
"""The current function and its request id, which are in every line that it writes."""

_kept: ContextVar[list[Callable[[], object]] | None] = ContextVar("kept", default=None)
"""The lines of the current commit, which may fail; None outside of a commit."""

on_count: list[Callable[[Mapping[str, int]], object]] = []
"""Functions that get the metrics too: one machine adds them up for its route of metrics."""


def begin(function: str, context: Any) -> None:
    """Set the current function, with the name in Lambda's `context` if there is one.

    Lambda's name of a function has the stage in it, so two stages never mix their metrics.
    Source: the Lambda developer guide, "Using the Lambda context object to retrieve Python
    function information".
    """
    if context is None:
        _invocation.set(_named(function))
        return
    fields = {"function": getattr(context, "function_name", None) or function}
    if request_id := getattr(context, "aws_request_id", None):
        fields["request_id"] = request_id
    _invocation.set(fields)


@cache
def _named(function: str) -> Mapping[str, str]:
    return {"function": function}


def event(level: int, what: str, **fields: Any) -> None:
    """Log an event, with the fields that an operator needs to act on it."""
    extra = {"fields": {**_invocation.get(), **fields}}
    log.log(level, what, extra=extra, exc_info=level >= logging.ERROR)


def changed(by: str, action: str, changed_id: str, **values: Any) -> None:
    """Log a change by a token, a secret or a command; in a commit on one machine, after it."""
    _keep(partial(event, logging.INFO, "changed", by=by, action=action, id=changed_id, **values))


def count(**values: int) -> None:
    """Write metrics of the current function, unless all of them are 0.

    A metric whose name ends in `_seconds` has that unit; all others are counts. In a commit on one
    machine, they are kept until it is committed.
    """
    if any(values.values()):
        _keep(partial(_write, values))


def _keep(write: Callable[[], object]) -> None:
    """Write a line when the current commit is done, or immediately without one."""
    kept = _kept.get()
    if kept is None:
        write()
    else:
        kept.append(write)


@contextmanager
def writing_on_success() -> Iterator[None]:
    """Write the metrics and the changes of a block when it ends without an error.

    They are part of a block around it.
    """
    kept: list[Callable[[], object]] = []
    token = _kept.set(kept)
    try:
        yield
    finally:
        _kept.reset(token)
    for write in kept:
        _keep(write)


def _write(values: Mapping[str, int]) -> None:
    metrics.info("metrics", extra={"fields": {**_invocation.get(), **values}})
    for function in on_count:
        function(values)


class JsonFormatter(logging.Formatter):
    """The formatter of log records as lines of JSON, and of metrics in the embedded metric format.

    Lambda's filter of log levels reads `timestamp` and `level`. Sources: the
    CloudWatch user guide, "Specification: Embedded metric format"; the Lambda developer guide,
    "Log-level filtering".
    """

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, Any] = dict(getattr(record, "fields", {}))
        if record.name == metrics.name:
            return json.dumps(_embed_metrics(record.created, fields))
        line = {
            **fields,
            "timestamp": to_iso8601(to_milliseconds(record.created)),
            "level": record.levelname,
            "message": record.getMessage(),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def _embed_metrics(created: Seconds, fields: dict[str, Any]) -> dict[str, Any]:
    named = [
        {"Name": name, "Unit": "Seconds" if name.endswith("_seconds") else "Count"}
        for name, value in fields.items()
        if isinstance(value, int)
    ]
    directive = {"Namespace": NAMESPACE, "Dimensions": [["function"]], "Metrics": named}
    return {
        "_aws": {"Timestamp": to_milliseconds(created), "CloudWatchMetrics": [directive]},
        **fields,
    }


def write_to(stream: TextIO, *, with_metrics: bool) -> None:
    """Write all lines to a stream, in place of the process's handlers.

    One machine has a route of metrics instead.
    """
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    log.setLevel(logging.INFO)
    metrics.setLevel(logging.INFO if with_metrics else logging.WARNING)
