"""The memory of the bodies of requests, which has a bound for all and a share for each client.

A client may hold as much as is free (the dynamic threshold of Choudhury and Hahne, 1998). So one
client holds at most half of the memory, and many clients leave some for the next one. A client is
the one that a trusted proxy names, so a proxy has no share of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from chalicelib.http import errors
from chalicelib.http.errors import ClientError
from chalicelib.http.messages import Request
from vumi.server.client_limits import network_of

MAX_MEMORY_BYTES = 32 * 1024 * 1024
"""128 of the longest bodies."""


class TooManyBodiesError(ClientError):
    """The bodies that a client sends concurrently take too much memory."""

    status = 429
    code = "too_many_requests"
    headers: Mapping[str, str] = {"Retry-After": errors.RETRY_SECONDS}

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


class BodyMemory:
    """The memory that bodies take, from the head of a request to its response."""

    def __init__(self, most: int = MAX_MEMORY_BYTES) -> None:
        self.free = most
        self._held = Counter[str]()

    def reserve(self, client: str, size: int) -> bool:
        """Reserve memory for a body, and return whether the client has a share for it."""
        holder = network_of(client)
        if self._held[holder] + size > self.free:
            return False
        self.free -= size
        self._held[holder] += size
        return True

    def release(self, client: str, size: int) -> None:
        self.free += size
        self._held -= Counter({network_of(client): size})
