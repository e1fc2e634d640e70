"""The threads that repeat a step: woken, lingering, stopped, and not ended by an error."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeAlias

import pytest

from simulation.logs import logged_events
from vumi.storage.database import CorruptFileError
from vumi.workers import loops
from vumi.workers.loops import Loop

PATIENCE = 10.0
"""Seconds after which a step counts as hung."""
SOON = 0.05
"""Seconds in which a step comes that should not come."""
LONG = 600.0
"""A rest that no test waits for."""

TraceFunction: TypeAlias = Callable[[FrameType, str, Any], Any]


class Steps:
    """A step that rests or raises by a script, whose last entry repeats; it waits for `go_on`."""

    def __init__(self, *script: float | Exception) -> None:
        self._script = script
        self.calls = 0
        self._called = threading.Condition()
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self) -> float:
        with self._called:
            rest = self._script[min(self.calls, len(self._script) - 1)]
            self.calls += 1
            self._called.notify_all()
        assert self.go_on.wait(PATIENCE)
        if isinstance(rest, Exception):
            raise rest
        return rest

    def come(self, number: int, within: float = PATIENCE) -> bool:
        """Return whether this many calls come within a time."""
        with self._called:
            return self._called.wait_for(lambda: self.calls >= number, within)


Start = Callable[[Steps, float], Loop]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start loops, whose first step comes. They are stopped at the end of the test."""
    made: list[Loop] = []

    def started(steps: Steps, linger: float = 0.0) -> Loop:
        made.append(Loop("under test", steps, linger))
        made[-1].start()
        assert steps.come(1)
        return made[-1]

    yield started
    for loop in made:
        loop.stop()


def stops(loop: Loop) -> bool:
    """Return whether a stop ends soon."""
    stopper = threading.Thread(target=loop.stop)
    stopper.start()
    stopper.join(PATIENCE)
    return not stopper.is_alive()


@pytest.mark.parametrize("rest", [0.0, 0.001])
def test_a_step_is_repeated_after_its_rest_without_being_woken(start: Start, rest: float) -> None:
    steps = Steps(rest, rest, LONG)
    start(steps, LONG)
    assert steps.come(3)


def test_while_there_is_more_to_do_being_woken_does_not_make_it_linger(start: Start) -> None:
    steps = Steps(0.0, LONG)
    steps.go_on.clear()
    start(steps, LONG).wake()
    steps.go_on.set()
    assert steps.come(2)


def test_a_resting_loop_that_is_woken_makes_one_step(start: Start) -> None:
    steps = Steps(LONG)
    start(steps, 0.0).wake()
    assert steps.come(2)
    assert not steps.come(3, SOON)


@pytest.mark.parametrize("times", [1, 100])
def test_being_woken_during_a_step_makes_one_more(start: Start, times: int) -> None:
    steps = Steps(LONG)
    steps.go_on.clear()
    loop = start(steps, 0.01)
    for _ in range(times):
        loop.wake()
    assert steps.calls == 1
    steps.go_on.set()
    assert steps.come(2)
    assert not steps.come(3, SOON)


def test_a_woken_loop_lingers_before_its_step_and_a_stop_ends_that(start: Start) -> None:
    steps = Steps(LONG)
    loop = start(steps, LONG)
    loop.wake()
    assert not steps.come(2, SOON)
    assert stops(loop)


def test_a_stop_ends_a_long_rest(start: Start) -> None:
    steps = Steps(LONG)
    assert stops(start(steps, 0.0))
    assert steps.calls == 1


def test_a_stop_waits_for_the_step_under_way_and_lets_no_other_begin(start: Start) -> None:
    steps = Steps(0.0)  # there would be more to do
    steps.go_on.clear()
    loop = start(steps, 0.0)
    stopper = threading.Thread(target=loop.stop)
    stopper.start()
    stopper.join(SOON)
    assert stopper.is_alive()
    steps.go_on.set()
    stopper.join(PATIENCE)
    assert not stopper.is_alive()
    assert steps.calls == 1


def test_a_stop_before_the_start_and_a_second_stop_do_no_harm(start: Start) -> None:
    Loop("never started", Steps(LONG)).stop()
    loop = start(Steps(LONG), 0.0)
    loop.stop()
    loop.stop()
    loop.wake()
    assert "under test" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("line", range(1, 13))
def test_a_stop_at_any_line_ends_the_loop(line: int) -> None:
    """A stop once came between two lines of the loop, and the loop rested before it ended."""
    loop = Loop("under test", Steps(0.0, LONG))
    stopper = threading.Thread(target=loop.stop, daemon=True)
    stops_waiting, lines = threading.Event(), 0

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        nonlocal lines
        if threading.current_thread() is stopper:
            if frame.f_code.co_name == "join":
                stops_waiting.set()
        elif frame.f_code.co_filename == loops.__file__ and event == "line":
            lines += 1
            if lines == line:
                stopper.start()
                assert stops_waiting.wait(PATIENCE)
        return trace

    threading.settrace(trace)
    try:
        loop.start()
        assert stops_waiting.wait(PATIENCE)
        stopper.join(PATIENCE)
    finally:
        threading.settrace(None)
    assert not stopper.is_alive()


@pytest.mark.parametrize("woken", [False, True])
def test_a_step_that_raises_is_logged_and_repeated_a_second_later_unless_woken(
    start: Start, caplog: pytest.LogCaptureFixture, *, woken: bool
) -> None:
    steps = Steps(OSError("a step failed"), LONG)
    loop = start(steps, 0.0)
    assert not steps.come(2, SOON)
    if woken:
        loop.wake()
    assert steps.come(2, 0.8 if woken else PATIENCE)
    assert logged_events(caplog) == [(logging.ERROR, "loop_failed", {})]
    [record] = caplog.records
    assert vars(record)["fields"] == {"function": "under test"}
    assert record.exc_info is not None
    assert record.exc_info[0] is OSError


def test_a_loop_with_a_corrupt_file_pauses_and_can_be_stopped(start: Start) -> None:
    """Otherwise the log would repeat the same error without end."""
    steps = Steps(CorruptFileError("as SQLite says"))
    loop = start(steps, 0.0)
    assert not steps.come(2, 0.2)
    assert stops(loop)
    assert steps.calls == 1
