"""The event loop of the web server: calls from other threads come, in order, by shared wakes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextvars import Context, ContextVar
from typing import Any

import pytest

from tests.event_loop import on_own_thread
from vumi.server.web import SharedWakeLoop

THREADS = 4
CALLS = 2_000


@pytest.fixture
def loop() -> Iterator[SharedWakeLoop]:
    made = SharedWakeLoop()
    yield made
    made.close()


def test_calls_of_concurrent_threads_all_come_in_each_threads_order(loop: SharedWakeLoop) -> None:
    came: list[tuple[int, int]] = []

    def call(thread: int) -> None:
        for number in range(CALLS):
            loop.call_soon_threadsafe(came.append, (thread, number))

    async def run() -> None:
        await asyncio.gather(*[asyncio.to_thread(call, thread) for thread in range(THREADS)])
        await loop.run_in_executor(None, lambda: None)

    on_own_thread(loop.run_until_complete, run())
    for thread in range(THREADS):
        assert [number for of, number in came if of == thread] == [*range(CALLS)]


def test_a_burst_wakes_once(loop: SharedWakeLoop, monkeypatch: pytest.MonkeyPatch) -> None:
    wakes: list[object] = []
    wake = asyncio.SelectorEventLoop.call_soon_threadsafe

    def count(self: SharedWakeLoop, *call: Any) -> asyncio.Handle:
        wakes.append(call)
        return wake(self, *call)

    monkeypatch.setattr(asyncio.SelectorEventLoop, "call_soon_threadsafe", count)
    for _ in range(2):
        for _ in range(CALLS):
            loop.call_soon_threadsafe(int)
        on_own_thread(loop.run_until_complete, asyncio.sleep(0))
    assert len(wakes) == 2


def test_a_cancelled_call_is_not_made(loop: SharedWakeLoop) -> None:
    came: list[str] = []
    loop.call_soon_threadsafe(came.append, "cancelled").cancel()
    loop.call_soon_threadsafe(came.append, "kept")
    loop.call_soon_threadsafe(loop.stop)
    on_own_thread(loop.run_forever)
    assert came == ["kept"]


def test_a_call_has_the_given_context_or_that_of_its_caller(loop: SharedWakeLoop) -> None:
    caller, seen = ContextVar("caller", default="nobody"), list[str]()
    caller.set("this")
    loop.call_soon_threadsafe(lambda: seen.append(caller.get()))
    loop.call_soon_threadsafe(lambda: seen.append(caller.get()), context=Context())
    loop.call_soon_threadsafe(loop.stop)
    on_own_thread(loop.run_forever)
    assert seen == ["this", "nobody"]


def test_a_task_begins_when_it_is_made_if_python_can_do_that(loop: SharedWakeLoop) -> None:
    began: list[str] = []

    async def begin() -> None:
        began.append("task")

    async def run() -> None:
        task = asyncio.create_task(begin())
        began.append("maker")
        await task

    on_own_thread(loop.run_until_complete, run())
    assert began == (["task", "maker"] if sys.version_info >= (3, 12) else ["maker", "task"])


def test_a_call_that_fails_delays_no_other(loop: SharedWakeLoop) -> None:
    failures: list[object] = []
    loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))
    loop.call_soon_threadsafe(lambda: int("no number"))
    loop.call_soon_threadsafe(loop.stop)
    on_own_thread(loop.run_forever)
    assert [type(failure) for failure in failures] == [ValueError]


def test_a_closed_loop_refuses_calls() -> None:
    closed = SharedWakeLoop()
    closed.close()
    with pytest.raises(RuntimeError):
        closed.call_soon_threadsafe(print)
