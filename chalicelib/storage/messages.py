"""The messages of a queue and the records of a stream: their values, and which to deliver again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TypeVar

from chalicelib import telemetry
from chalicelib.units import Seconds, WholeSeconds

MessageId = TypeVar("MessageId", str, int)
Record = TypeVar("Record")
Value = TypeVar("Value")
HashableValue = TypeVar("HashableValue", bound=Hashable)


class MalformedError(ValueError):
    """A message or a stream record that vu-mi did not write; the text says what is wrong."""


def handle_messages(
    bodies: Mapping[MessageId, object],
    parse: Callable[[object], HashableValue],
    handle: Callable[[list[HashableValue]], Collection[HashableValue]],
) -> list[MessageId]:
    """Handle the values of messages; return the ids of the messages to deliver again.

    `parse` raises `MalformedError`, and `handle` returns the values that it has not handled. A
    malformed message is delivered until it ends in the dead-letter queue, and delays no other.
    """
    parsed, malformed = parse_records(
        bodies, lambda message_id: parse(bodies[message_id]), log_malformed_message
    )
    failed = set(handle(list(dict.fromkeys(value for _, value in parsed))))
    return malformed + [message_id for message_id, value in parsed if value in failed]


def parse_records(
    records: Iterable[Record],
    parse: Callable[[Record], Value | None],
    log_malformed: Callable[[Record], None],
) -> tuple[list[tuple[Record, Value]], list[Record]]:
    """Return the value of each record that has one, and the malformed records."""
    parsed: list[tuple[Record, Value]] = []
    malformed: list[Record] = []
    for record in records:
        try:
            if (value := parse(record)) is not None:
                parsed.append((record, value))
        except MalformedError:
            log_malformed(record)
            malformed.append(record)
    telemetry.count(malformed=len(malformed))
    return parsed, malformed


def log_malformed_message(message_id: str | int) -> None:
    """Log a malformed message by its id."""
    telemetry.event(logging.ERROR, "malformed_message", message_id=message_id)


def log_malformed_record(record: object) -> None:
    """Log a malformed stream record with all its content.

    It is not delivered again, because it would delay all later records until it expires.
    """
    telemetry.event(logging.ERROR, "malformed_stream_record", record=record)


def lag_seconds(removed: Iterable[Seconds], now: Seconds) -> WholeSeconds:
    """Return how long the first removal of a batch waited; a time is 0 if it is unknown."""
    return max(0, round(now - min((at or now for at in removed), default=now)))
