"""The authorization of callers. It fails closed, so a request without a caller is refused."""

from __future__ import annotations

from chalicelib.http.errors import ForbiddenError, UnauthorizedError
from chalicelib.http.messages import Caller, Request
from chalicelib.http.routing import Authentication

NO_TOKEN = "give a token: Authorization: Bearer TOKEN"  # noqa: S105  a message, not a secret
OF_A_USER = "the token is a user's: it is good for the user's wallet alone"
OF_AN_OPERATOR = "the token names no user: ask for a wallet by its id"


def check(authentication: Authentication, request: Request) -> None:
    """Raise `UnauthorizedError` or `ForbiddenError` unless the caller may call the route."""
    if authentication is Authentication.NONE:
        return
    caller = caller_of(request)
    if authentication is Authentication.OPERATOR and not caller.is_operator:
        raise ForbiddenError(OF_A_USER)
    if authentication is Authentication.USER and caller.is_operator:
        raise ForbiddenError(OF_AN_OPERATOR)


def caller_of(request: Request) -> Caller:
    """Return the caller. Raises `UnauthorizedError` if none was authenticated."""
    if request.caller is None:
        raise UnauthorizedError(NO_TOKEN)
    return request.caller
