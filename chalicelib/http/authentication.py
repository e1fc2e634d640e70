"""The authentication of callers by their bearer tokens, of which only digests are stored.

The tokens of operators and users are items of the table. The tokens in API_TOKEN_DIGESTS are
operators' too, so that an operator needs no access to the table to make the first one.
"""

from __future__ import annotations

import re
from typing import Protocol

from chalicelib.http import tokens
from chalicelib.http.errors import ForbiddenError, UnauthorizedError
from chalicelib.http.messages import Caller, Role
from chalicelib.http.refusals import Reason, RefusalLog
from chalicelib.resources import Resources
from chalicelib.storage.items import Key

NO_TOKEN = "give a token: Authorization: Bearer TOKEN"  # noqa: S105  a message, not a secret
PARTITION = "TOKEN#"
SORT = "TOKEN"
SHOWN_DIGITS = 12
"""Digits of a digest by which a token is named."""
BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9_-]{20,200}) *")
"""The header of a request with a token. On AWS, the authorizer gets no other header."""


class AuthenticationResources(Resources, Protocol):
    """The resources that check tokens."""

    @property
    def refusals(self) -> RefusalLog: ...


def key(digest: str) -> Key:
    """Return the key of a token's item."""
    return Key(PARTITION + digest, SORT)


def authenticate(authorization: str, resources: AuthenticationResources) -> Caller:
    """Return the caller by the header `Authorization`, and log a refusal.

    Raises `UnauthorizedError`, `ForbiddenError` and `StorageError`.
    """
    if not BEARER.fullmatch(authorization):
        resources.refusals.add(Reason.MALFORMED if authorization else Reason.MISSING)
        raise UnauthorizedError(NO_TOKEN)
    caller = find(authorization, resources)
    if caller is None:
        resources.refusals.add(Reason.UNKNOWN)
        raise ForbiddenError("this token opens nothing here")
    return caller


def find(authorization: str, resources: Resources) -> Caller | None:
    """Return the caller by the header `Authorization`, or None. Raises `StorageError`."""
    bearer = BEARER.fullmatch(authorization)
    if bearer is None:
        return None
    digest = tokens.digest(bearer[1])
    if digest in resources.settings.api_token_digests:
        return Caller(Role.OPERATOR, name=f"API_TOKEN_DIGESTS {digest[:SHOWN_DIGITS]}")
    return Caller.of(resources.table.get(key(digest)) or {})
