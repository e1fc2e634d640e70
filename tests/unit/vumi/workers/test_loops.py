"""The threads that repeat a step: woken, lingering, stopped, and not ended by an error."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, TypeAlias

import pytest

from vumi.storage.database import Corrupt
from vumi.workers import loops
from vumi.workers.loops import Loop

PATIENCE = 10.0
"""Seconds after which a step counts as hung."""
LONG = 600.0
"""A rest that no test waits for."""

TraceFunction: TypeAlias = Callable[[FrameType, str, Any], Any]


class Steps:
    """A step that follows a script, one entry per call; the last entry repeats."""

    def __init__(self, *script: Callable[[], float]) -> None:
        self._script = script
        self._calls = 0
        self._called = threading.Condition()

    def __call__(self) -> float:
        with self._called:
            step = self._script[min(self._calls, len(self._script) - 1)]
            self._calls += 1
            self._called.notify_all()
        return step()

    @property
    def calls(self) -> int:
        return self._calls

    def come(self, number: int, within: float = PATIENCE) -> bool:
        """Return whether this many calls come within a time."""
        with self._called:
            return self._called.wait_for(lambda: self._calls >= number, within)


def rest(seconds: float) -> Callable[[], float]:
    return lambda: seconds


def fail() -> float:
    raise OSError("a step failed")


Start = Callable[[Steps, float], Loop]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start loops that are stopped at the end of the test."""
    loops: list[Loop] = []

    def started(steps: Steps, linger: float = 0.0) -> Loop:
        loop = Loop("under test", steps, linger)
        loops.append(loop)
        loop.start()
        return loop

    yield started
    for loop in loops:
        loop.stop()


def test_a_step_is_repeated_while_there_is_more_to_do(start: Start) -> None:
    steps = Steps(rest(0.0), rest(0.0), rest(LONG))

    start(steps, LONG)

    assert steps.come(3)


def test_while_there_is_more_to_do_being_woken_does_not_make_it_linger(start: Start) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> float:
        entered.set()
        assert go_on.wait(PATIENCE)
        return 0.0

    steps = Steps(slow, rest(LONG))
    loop = start(steps, LONG)
    assert entered.wait(PATIENCE)
    loop.wake()
    go_on.set()

    assert steps.come(2)


def test_a_step_is_repeated_after_its_rest_without_being_woken(start: Start) -> None:
    steps = Steps(rest(0.001), rest(LONG))

    start(steps, LONG)

    assert steps.come(2)


def test_a_resting_loop_is_woken(start: Start) -> None:
    steps = Steps(rest(LONG))
    loop = start(steps, 0.0)
    assert steps.come(1)

    loop.wake()

    assert steps.come(2)


def test_being_woken_during_a_step_is_not_forgotten(start: Start) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> float:
        entered.set()
        assert go_on.wait(PATIENCE)
        return LONG

    steps = Steps(slow, rest(LONG))
    loop = start(steps, 0.0)
    assert entered.wait(PATIENCE)
    loop.wake()
    assert steps.calls == 1
    go_on.set()

    assert steps.come(2)


def test_being_woken_once_makes_one_step(start: Start) -> None:
    steps = Steps(rest(LONG))
    loop = start(steps, 0.0)
    assert steps.come(1)
    loop.wake()
    assert steps.come(2)

    assert not steps.come(3, within=0.05)


def test_a_woken_loop_lingers_before_its_step(start: Start) -> None:
    steps = Steps(rest(LONG))
    loop = start(steps, LONG)
    assert steps.come(1)

    loop.wake()

    assert not steps.come(2, within=0.05)


def test_a_burst_is_handled_in_one_step(start: Start) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def slow() -> float:
        entered.set()
        assert go_on.wait(PATIENCE)
        return LONG

    steps = Steps(slow, rest(LONG))
    loop = start(steps, 0.01)
    assert entered.wait(PATIENCE)
    for _ in range(100):
        loop.wake()
    go_on.set()

    assert steps.come(2)
    assert not steps.come(3, within=0.05)


def test_a_stop_ends_a_long_rest(start: Start) -> None:
    steps = Steps(rest(LONG))
    loop = start(steps, 0.0)
    assert steps.come(1)

    stopper = threading.Thread(target=loop.stop)
    stopper.start()
    stopper.join(PATIENCE)

    assert not stopper.is_alive()
    assert steps.calls == 1


def test_a_stop_ends_a_long_linger(start: Start) -> None:
    steps = Steps(rest(LONG))
    loop = start(steps, LONG)
    assert steps.come(1)
    loop.wake()

    stopper = threading.Thread(target=loop.stop)
    stopper.start()
    stopper.join(PATIENCE)

    assert not stopper.is_alive()


def test_a_stop_waits_for_the_step_under_way_and_lets_no_other_begin(start: Start) -> None:
    entered, go_on, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> float:
        entered.set()
        assert go_on.wait(PATIENCE)
        ended.set()
        return 0.0  # there would be more to do

    steps = Steps(slow)
    loop = start(steps, 0.0)
    assert entered.wait(PATIENCE)
    stopper = threading.Thread(target=loop.stop)
    stopper.start()
    stopper.join(0.05)
    assert stopper.is_alive()

    go_on.set()
    stopper.join(PATIENCE)

    assert not stopper.is_alive()
    assert ended.is_set()
    assert steps.calls == 1


def test_a_stop_before_the_start_and_a_second_stop_do_no_harm(start: Start) -> None:
    Loop("never started", rest(LONG)).stop()
    loop = start(Steps(rest(LONG)), 0.0)

    loop.stop()
    loop.stop()
    loop.wake()

    assert "under test" not in [thread.name for thread in threading.enumerate()]


@pytest.mark.parametrize("line", range(1, 8))
def test_a_stop_at_any_line_ends_the_loop(line: int) -> None:
    """A stop once came between two lines of the loop, and the loop rested before it ended."""
    loop = Loop("under test", rest(LONG))
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


def test_a_step_that_raises_is_logged_and_repeated(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing wakes it. It runs again by itself after a second."""
    steps = Steps(fail, rest(LONG))
    with caplog.at_level(logging.ERROR):
        start(steps, 0.0)

        assert steps.come(2)

    [record] = caplog.records
    assert record.getMessage() == "loop_failed"
    assert record.__dict__["fields"] == {"function": "under test"}
    assert record.exc_info is not None
    assert record.exc_info[0] is OSError


def test_a_step_that_raises_is_not_repeated_immediately(start: Start) -> None:
    steps = Steps(fail)
    start(steps, 0.0)
    assert steps.come(1)

    assert not steps.come(2, within=0.05)


def test_a_step_that_raised_is_woken_like_any_other(start: Start) -> None:
    steps = Steps(fail, rest(LONG))
    loop = start(steps, 0.0)
    assert steps.come(1)

    loop.wake()

    assert steps.come(2, within=0.9)  # sooner than the second that an error costs


def test_a_loop_with_a_corrupt_file_pauses_and_can_be_stopped() -> None:
    """Otherwise the log would repeat the same error without end."""
    again, times = threading.Event(), 0

    def step() -> float:
        nonlocal times
        times += 1
        if times > 1:
            again.set()
        raise Corrupt("as SQLite says")

    loop = Loop("broken", step)
    loop.start()
    assert not again.wait(0.2)
    loop.stop()
    assert times == 1
