"""The memory of the bodies of requests, which has a bound for all and a share for each client.

A client may hold as much as is free (the dynamic threshold of Choudhury and Hahne, 1998). So one
client holds at most half of the memory, and many clients leave some for the next one. A client is
the one that a trusted proxy names, so a proxy has no share of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from chalicelib.http import errors
from chalicelib.http.errors import ClientError
from vumi.server.client_limits import network_of

MAX_MEMORY_BYTES = 32 * 1024 * 1024
"""128 of the longest bodies."""


class TooManyBodiesError(ClientError):
    """The bodies that a client sends concurrently take too much memory."""

    status = 429
    code = "too_many_requests"
    headers: Mapping[str, str] = {"Retry-After": errors.RETRY_SECONDS}

    def __init__(self, held: int) -> None:
        super().__init__(
            f"bodies from your address take {held} bytes of memory: send one after another"
        )


class BodyMemory:
    """The memory that bodies take, from the head of a request to its response."""

    def __init__(self, most: int = MAX_MEMORY_BYTES) -> None:
        self.free = most
        self._held = Counter[str]()

    @contextmanager
    def hold(self, client: str, size: int) -> Iterator[None]:
        """Hold memory for a body. Raises `TooManyBodiesError` without a share left."""
        holder = network_of(client)
        held = self._held[holder]
        if held + size > self.free:
            raise TooManyBodiesError(held)
        self._add(holder, size)
        try:
            yield
        finally:
            self._add(holder, -size)

    def _add(self, holder: str, size: int) -> None:
        self.free -= size
        self._held[holder] += size
        if not self._held[holder]:
            del self._held[holder]
