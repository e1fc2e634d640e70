"""An event loop for tests that share their thread with others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Result = TypeVar("Result")


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in a loop of its own."""
    result: Result = on_own_thread(asyncio.run, coroutine)
    return result


def on_own_thread(function: Callable[..., Result], *arguments: object) -> Result:
    """Call a function on a thread of its own: Playwright keeps a loop running on the main one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(function, *arguments).result()
