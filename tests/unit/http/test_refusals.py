"""The log of refusals: at most one line a minute for each reason, with the number left out."""

from __future__ import annotations

import pytest

from chalicelib.http.refusals import LOG_SECONDS, Reason, RefusalLog
from simulation.clocks import NOON, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock) -> RefusalLog:
    return RefusalLog(clock)


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int]]:
    """Return the reason and the number left out of each line."""
    assert set(caplog.messages) <= {"token_refused"}
    fields = [vars(record)["fields"] for record in caplog.records]
    return [(one["reason"], one["left_out"]) for one in fields]


def test_a_line_a_minute_has_the_number_of_refusals_without_a_line(
    caplog: pytest.LogCaptureFixture, clock: Clock, log: RefusalLog
) -> None:
    for seconds in (0, 1, 59.9, 60, 60, 119, 120, 400):
        clock.now = NOON + seconds
        log.add(Reason.UNKNOWN)
    assert LOG_SECONDS == 60
    assert lines(caplog) == [("unknown", 0), ("unknown", 2), ("unknown", 2), ("unknown", 0)]


def test_each_reason_has_lines_of_its_own(
    caplog: pytest.LogCaptureFixture, clock: Clock, log: RefusalLog
) -> None:
    for reason in (*Reason, *Reason, Reason.MISSING):
        log.add(reason)
    clock.now += LOG_SECONDS
    for reason in Reason:
        log.add(reason)
    first = [(str(reason), 0) for reason in Reason]
    assert lines(caplog) == [*first, ("missing", 2), ("malformed", 1), ("unknown", 1)]


def test_a_clock_that_was_set_back_does_not_end_the_log(
    caplog: pytest.LogCaptureFixture, clock: Clock, log: RefusalLog
) -> None:
    log.add(Reason.UNKNOWN)
    clock.now -= 86_400
    log.add(Reason.UNKNOWN)
    assert lines(caplog) == [("unknown", 0), ("unknown", 0)]
