"""Working through independent parts at once: the badges of a batch, each waiting for storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

WORKERS = 8

Part = TypeVar("Part")
Result = TypeVar("Result")


class Each(Protocol):
    """Applies a function to every part; the results come in the order of the parts.

    The built-in `map` is one too.
    """

    def __call__(
        self, function: Callable[[Part], Result], parts: Iterable[Part], /
    ) -> Iterable[Result]: ...


def concurrently(function: Callable[[Part], Result], parts: Iterable[Part], /) -> Iterable[Result]:
    """Apply a function to every part on up to eight threads; one part alone needs none."""
    parts = list(parts)
    if len(parts) <= 1:
        return [function(part) for part in parts]
    return list(_pool().map(function, parts))


def at_once(function: Callable[[Part], Result], parts: Iterable[Part], /) -> Iterable[Result]:
    """Apply a function to every part, each on a thread of its own: none waits for another."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  paid for at cold start

    parts = list(parts)
    if len(parts) <= 1:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(len(parts), thread_name_prefix="part") as threads:
        # Each in the context of the caller, whose function the metrics are of.
        contexts = [copy_context() for _ in parts]
        return list(threads.map(lambda own, part: own.run(function, part), contexts, parts))


@cache
def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  paid for at cold start

    return ThreadPoolExecutor(WORKERS, thread_name_prefix="part")
