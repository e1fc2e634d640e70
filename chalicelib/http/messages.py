"""The request that a route gets and the response that it returns, of no framework.

The values that each hit makes are named tuples, here and in `counting`: a frozen dataclass takes
three times as long to make.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar

from chalicelib.settings import UUID

Name = TypeVar("Name")
Value = TypeVar("Value")


class Unchanging(dict[Name, Value]):
    """A mapping that nobody changes. Its hash is its identity's, so functions of it are cached."""

    __hash__ = object.__hash__  # type: ignore[assignment]


Query: TypeAlias = Mapping[str, Sequence[str]]
"""The values of each query parameter, percent-decoded, in the order in which they were given."""


EMPTY: Mapping[str, Any] = MappingProxyType({})
OWNER = "owner"
"""The name in the log of whoever has the secret of a badge."""


class Role(StrEnum):
    """The role of a token."""

    OPERATOR = "operator"
    """Its holder may call every route."""
    USER = "user"
    """Its holder may call the routes of wallets, for their own wallet."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The holder of a request's token: an operator, or the user `user`, a UUID.

    `name` is that of the token, if it has one. Raises `ValueError` for a user without a UUID and
    for an operator with one.
    """

    role: Role
    user: str = ""
    name: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        valid = not self.user if self.is_operator else UUID.fullmatch(self.user)
        if not valid:
            raise ValueError(f"a caller is an operator, or a user with a UUID, not {self.fields}")

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Caller | None:
        """Return the caller that `role` and `user` name, or None if they name nobody."""
        user, name = (str(fields.get(part) or "") for part in ("user", "name"))
        try:
            return cls(Role(str(fields.get("role"))), user, name)
        except ValueError:
            return None

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields from which `of` makes the same caller."""
        named = {"name": self.name} if self.name else {}
        return {"role": str(self.role), "user": self.user, **named}

    @property
    def is_operator(self) -> bool:
        """Return whether the token is an operator's, which is valid for every route."""
        return self.role is Role.OPERATOR


class Request(NamedTuple):
    """An HTTP request after its route was found.

    `path` and `path_parameters` are percent-decoded. The names of `headers` are in lower case.
    `caller` is None on a route without authentication. `client` is the address of the client, or
    empty where no client is limited. Nothing may store or log it.
    """

    method: str
    path: str
    path_parameters: Mapping[str, str] = EMPTY
    query: Query = EMPTY
    headers: Mapping[str, str] = EMPTY
    body: bytes = b""
    caller: Caller | None = None
    client: str = ""

    def __repr__(self) -> str:
        """Return the request without its client."""
        return f"Request({self.method} {self.path})"


@dataclass(frozen=True, slots=True)
class Change:
    """A change that a request has made, for the log: what `id` was before, or None if it is new.

    Nothing in it is secret. `fields` are those of the body. `by` is the owner of a badge, or the
    name of the token; that of an authenticated caller takes precedence.
    """

    id: str
    before: Mapping[str, Any] | None = None
    fields: Collection[str] = ()
    by: str = OWNER


class Response(NamedTuple):
    """An HTTP response. A body of text is in UTF-8.

    The server adds `Content-Length`, and sends no body to HEAD. A badge that says why its request
    is refused has status 200, and `is_refusal`.
    """

    status: int = 200
    headers: Mapping[str, str] = EMPTY
    body: bytes = b""
    change: Change | None = None
    is_refusal: bool = False

    @property
    def is_binary(self) -> bool:
        """Return whether the body is no text."""
        return self.headers.get("Content-Type") == "image/png"
