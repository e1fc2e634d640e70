"""The request that a route gets and the response that it returns, of no framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

Query: TypeAlias = Mapping[str, Sequence[str]]
"""The values of each query parameter, percent-decoded, in the order in which they were given."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a request's token: an operator, or the user `user`, a UUID."""

    user: str = ""

    @property
    def is_operator(self) -> bool:
        """Return whether the token is an operator's, which is valid for every route."""
        return not self.user


@dataclass(frozen=True, slots=True)
class Request:
    """An HTTP request after its route was found.

    `path` and `path_parameters` are percent-decoded. The names of `headers` are in lower case.
    `caller` is None on a route without authentication. `client` is the address of the client, or
    empty where no client is limited. Nothing may store or log it.
    """

    method: str
    path: str
    path_parameters: Mapping[str, str] = field(default_factory=dict)
    query: Query = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    caller: Caller | None = None
    client: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """An HTTP response. A body of text is in UTF-8.

    The server adds `Content-Length`, and sends no body to HEAD.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
