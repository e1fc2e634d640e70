"""The authentication of callers by their bearer tokens, of which only digests are stored.

The tokens of operators and users are items of the table. The tokens in API_TOKEN_DIGESTS are
operators' too, so that an operator needs no access to the table to make the first one.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Literal, Protocol, TypeAlias

from chalicelib import telemetry
from chalicelib.http import tokens
from chalicelib.http.errors import ForbiddenError, UnauthorizedError
from chalicelib.http.messages import Caller, Role
from chalicelib.resources import Resources
from chalicelib.storage.items import Key
from chalicelib.units import Seconds

NO_TOKEN = "give a token: Authorization: Bearer TOKEN"  # noqa: S105  a message, not a secret
PARTITION = "TOKEN#"
SORT = "TOKEN"
SHOWN_DIGITS = 12
"""Digits of a digest by which a token is named."""
BEARER = re.compile(r"[Bb][Ee][Aa][Rr][Ee][Rr] +([A-Za-z0-9_-]{20,200}) *")
"""The header of a request with a token. On AWS, the authorizer gets no other header."""
LOG_SECONDS = 60
"""The shortest time between two lines with one reason."""
Reason: TypeAlias = Literal["missing", "malformed", "unknown"]
"""Why a request with authentication was refused: it had no header `Authorization`, one that was not
`Bearer` and a token, or a token that nobody has."""


class RefusalLog:
    """The log of refused tokens: at most one line a minute for each reason, and never a token.

    A line has the number of refusals since the line before it that have no line of their own.
    """

    def __init__(self, clock: Callable[[], Seconds]) -> None:
        self._clock = clock
        self._lock = Lock()
        self._logged_at: dict[Reason, Seconds] = {}
        self._left_out: Counter[Reason] = Counter()

    def add(self, reason: Reason) -> None:
        """Log a refusal, or count it for the next line with its reason."""
        with self._lock:
            now = self._clock()
            logged_at = self._logged_at.get(reason)
            # A clock that was set back must not end the log until it is there again.
            if logged_at is not None and logged_at <= now < logged_at + LOG_SECONDS:
                self._left_out[reason] += 1
                return
            self._logged_at[reason] = now
            left_out = self._left_out.pop(reason, 0)
        telemetry.event(logging.WARNING, "token_refused", reason=reason, left_out=left_out)


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
        resources.refusals.add("malformed" if authorization else "missing")
        raise UnauthorizedError(NO_TOKEN)
    caller = find(authorization, resources)
    if caller is None:
        resources.refusals.add("unknown")
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
