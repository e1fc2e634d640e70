"""Parallel work on the independent parts of a batch, because each waits for storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import TYPE_CHECKING, Protocol, TypeVar

from chalicelib.lazy import lazy

if TYPE_CHECKING:
    from concurrent import futures
else:
    futures = lazy("concurrent.futures")

THREADS = 8

Part = TypeVar("Part")
Result = TypeVar("Result")


class MapParallel(Protocol):
    """A function like `map`, which returns the results in the order of the parts.

    The built-in `map` is one too.
    """

    def __call__(
        self, function: Callable[[Part], Result], parts: Iterable[Part], /
    ) -> Iterable[Result]: ...


def map_parallel(
    function: Callable[[Part], Result], parts: Iterable[Part], /, *, threads: int = THREADS
) -> list[Result]:
    """Apply a function to every part on up to `threads` threads; a single part needs none.

    Each call runs in the context of the caller, so that its metrics name the caller's function.
    """
    parts = list(parts)
    if len(parts) <= 1:
        return [function(part) for part in parts]
    with futures.ThreadPoolExecutor(min(threads, len(parts)), "part") as pool:
        contexts = [copy_context() for _ in parts]
        return list(pool.map(lambda own, part: own.run(function, part), contexts, parts))
