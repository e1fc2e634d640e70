"""The bodies of requests: their number and memory have bounds for all, and shares for each client.

A client may hold as much as is free (the dynamic threshold of Choudhury and Hahne, 1998). So one
client holds at most half, and many clients leave some for the next one. A client is the one that a
trusted proxy names, so a proxy has no share of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from chalicelib.http import errors
from chalicelib.http.errors import ClientError
from chalicelib.http.messages import Request
from vumi.server.client_limits import network_of

MAX_BODIES = 400
"""Bodies that are read concurrently. Each takes up to 100 KB of the server's buffers beside it."""
MAX_MEMORY_BYTES = 32 * 1024 * 1024
"""128 of the longest bodies."""


class TooManyBodiesError(ClientError):
    """The bodies that a client sends concurrently are too many, or take too much memory.

    Its connection ends, because its body may not have been read.
    """

    status = 429
    code = "too_many_requests"
    headers: Mapping[str, str] = {"Retry-After": errors.RETRY_SECONDS, "Connection": "close"}

    def __init__(self) -> None:
        super().__init__("your address sends too many bodies: send one after another")


@dataclass(frozen=True, slots=True)
class BodyExpected:
    """A request whose body of `length` bytes must be read before it can be answered.

    The body is not `kept` if the request is refused without it.
    """

    request: Request
    length: int
    kept: bool


Read: TypeAlias = Callable[[], Request | BodyExpected]
"""A function that reads a request from what was received. It may be called again, on a thread."""


class SharedCapacity:
    """What the bodies of all clients use together, from the head of a request to its response."""

    def __init__(self, most: int) -> None:
        self.free = most
        self._held = Counter[str]()

    @contextmanager
    def share(self, client: str, size: int) -> Iterator[None]:
        """Use a part for a client. Raises `TooManyBodiesError` if it has no share for it."""
        holder = network_of(client)
        if size and self._held[holder] + size > self.free:
            raise TooManyBodiesError
        self.free -= size
        self._held[holder] += size
        try:
            yield
        finally:
            self.free += size
            self._held -= Counter({holder: size})
