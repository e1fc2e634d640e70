"""What no engine makes of its own: the retries of a call, messages, and conditions."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.storage.conditions import attr, unchanged
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from chalicelib.storage.messages import MalformedError, handle_messages, parse_records
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import ConditionFailedError
from simulation.clocks import FakeTime
from simulation.logs import counting_metrics, logged_events

ROUNDING = 1e-9
"""Sums of the waits differ from the budget by less, in seconds."""


class Calls:
    """An operation that fails a number of times, with numbered errors, and then succeeds."""

    def __init__(self, failures: int, takes: float = 0.0, time: FakeTime | None = None) -> None:
        self.made = 0
        self._failures = failures
        self._takes = takes
        self._time = time or FakeTime()

    def __call__(self) -> str:
        self.made += 1
        self._time.now += self._takes
        if self.made <= self._failures:
            raise UnavailableError(f"failure {self.made}")
        return "done"


def test_waits_double_up_to_the_cap() -> None:
    time, calls = FakeTime(), Calls(failures=6)
    retry = time.retry(attempts=7, base=0.05, cap=0.5, budget=60.0)
    assert retry.call(calls) == "done"
    # 0.05 * 2^0, 2^1, 2^2, 2^3; 0.05 * 2^4 = 0.8 and all that follow are capped.
    assert time.slept == [0.05, 0.1, 0.2, 0.4, 0.5, 0.5]


@given(st.lists(st.floats(min_value=0, max_value=1, exclude_max=True), min_size=4, max_size=4))
def test_each_wait_is_a_random_part_of_its_maximum(jitters: list[float]) -> None:
    time, left = FakeTime(), iter(jitters)
    retry = time.retry(attempts=5, base=0.05, cap=0.5, budget=60.0, jitter=lambda: next(left))
    assert list(retry.rounds()) == [0, 1, 2, 3, 4]
    longest = [0.05, 0.1, 0.2, 0.4]
    assert time.slept == [jitter * wait for jitter, wait in zip(jitters, longest, strict=True)]


def test_after_the_last_try_its_error_is_raised() -> None:
    time, calls = FakeTime(), Calls(failures=9)
    with pytest.raises(UnavailableError, match="failure 3"):
        time.retry(attempts=3).call(calls)
    assert (calls.made, len(time.slept)) == (3, 2)


@pytest.mark.parametrize(
    "error", [StorageRefusedError("no right"), ConditionFailedError({0: None}), KeyError("x")]
)
def test_only_unavailable_is_retried(error: Exception) -> None:
    time, made = FakeTime(), 0

    def operation() -> None:
        nonlocal made
        made += 1
        raise error

    with pytest.raises(type(error)) as raised:
        time.retry().call(operation)
    assert raised.value is error
    assert (made, time.slept) == (1, [])


def test_quick_errors_are_retried_until_the_budget_is_spent() -> None:
    """A call takes 0.2 s and each wait 0.1 s: tries begin at 0, 0.3, 0.6 and 0.9 s."""
    time = FakeTime()
    calls = Calls(failures=99, takes=0.2, time=time)
    with pytest.raises(UnavailableError, match="failure 3"):
        time.retry(attempts=99, base=0.1, cap=0.1, budget=0.85).call(calls)
    assert calls.made == 3


def test_the_slowest_calls_end_before_the_timeout_of_a_badge() -> None:
    """shields.io waits for 3.5 s, and a GET makes up to three calls: two reads and a send.

    Each call begins its last try within the budget, 0.9 s, and that try takes 1 s or less.
    """
    assert Retry().budget + 1.0 <= 3.5 - 1.0


@given(
    st.integers(min_value=1, max_value=8),
    st.floats(min_value=0, max_value=2),
    st.floats(min_value=0, max_value=2),
)
def test_no_try_begins_after_the_budget_or_the_last_try(
    attempts: int, budget: float, takes: float
) -> None:
    time = FakeTime()
    started: list[float] = []
    for _ in time.retry(attempts=attempts, budget=budget).rounds():
        started.append(time.now - 1_000.0)
        time.now += takes
    assert 1 <= len(started) <= attempts
    assert all(at <= budget + ROUNDING for at in started[1:])


# ---- messages


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


# ---- conditions


@pytest.mark.parametrize(
    "condition",
    [attr("n") == 1, attr("n").exists(), attr("n").exists() & attr("m").exists()],
)
def test_a_condition_is_not_combined_by_the_words_and_and_or(condition: object) -> None:
    """Python's `and` would drop one of the two."""
    with pytest.raises(TypeError, match="combine conditions by"):
        bool(condition)


@pytest.mark.parametrize("value", [1, -1, "x", ["x"], {"x": 1}, 0, "", [], {}])
def test_an_attribute_is_unchanged_if_it_has_its_value_or_is_missing_if_it_was_empty(
    value: int | str,
) -> None:
    assert unchanged("n", value) == (attr("n") == value if value else attr("n").missing())
