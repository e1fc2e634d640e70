"""The retries of a call, on a clock that only the test moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from chalicelib.storage.retry import Retry
from chalicelib.storage.writes import ConditionFailedError
from simulation.clocks import FakeTime

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
