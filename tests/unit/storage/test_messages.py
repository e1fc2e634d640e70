"""Messages: their values are handled, and which are delivered again."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest

from chalicelib.storage.messages import MalformedError, handle_messages, parse_records
from simulation.logs import counting_metrics, logged_events


def number(body: object) -> int:
    try:
        return int(str(body))
    except ValueError as error:
        raise MalformedError(str(error)) from error


def test_each_value_is_handled_once_and_a_failed_one_returns_all_its_messages() -> None:
    handled: list[list[int]] = []

    def handle(values: list[int]) -> Sequence[int]:
        handled.append(values)
        return [2]

    bodies = {"a": "1", "b": "2", "c": "1", "d": "2"}
    assert handle_messages(bodies, number, handle) == ["b", "d"]
    assert handled == [[1, 2]]


def test_malformed_messages_are_logged_counted_and_returned(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with counting_metrics() as counted:
        assert handle_messages({1: "x", 2: "5", 3: "y"}, number, lambda _: ()) == [1, 3]
    assert counted == {"vu-mi": {"malformed": 2}}
    assert logged_events(caplog) == [
        (logging.ERROR, "malformed_message", {"message_id": message_id}) for message_id in (1, 3)
    ]
    errors = [record.exc_info for record in caplog.records if record.levelno == logging.ERROR]
    assert all(error and error[0] is MalformedError for error in errors)


def fail(record: object) -> None:
    raise AssertionError(f"{record} is not malformed")


def test_records_without_a_value_are_neither_parsed_nor_malformed() -> None:
    values = {"a": 0, "b": None, "c": 1}
    assert parse_records(values, values.get, fail) == ([("a", 0), ("c", 1)], [])
