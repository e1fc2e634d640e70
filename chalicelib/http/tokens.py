"""The tokens of operators and users, of which only digests are stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from chalicelib.http.authorization import NO_TOKEN
from chalicelib.http.errors import ForbiddenError, UnauthorizedError
from chalicelib.http.messages import Caller
from chalicelib.lazy import lazy

if TYPE_CHECKING:
    import hashlib
    import hmac
    import secrets

    from chalicelib.settings import Settings
else:
    hashlib, hmac, secrets = lazy("hashlib"), lazy("hmac"), lazy("secrets")

TOKEN_BYTES = 32


def new_token() -> str:
    """Generate a token."""
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest(token: str) -> str:
    """Return the SHA-256 of a token, which has at least 24 random bytes and needs no slow hash."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def holder(authorization: str, digests: Collection[str]) -> str | None:
    """Return the digest of the bearer token in a header if it is among `digests`, else None.

    The time that it takes reveals nothing about the known tokens.
    """
    kind, _, token = authorization.partition(" ")
    if kind.lower() != "bearer":
        return None
    given = digest(token.strip())
    known = [one for one in digests if hmac.compare_digest(one, given)]
    return known[0] if known else None


def is_operator(headers: Mapping[str, str], settings: Settings) -> bool:
    """Return whether a request has an operator's token."""
    operators = settings.api_token_digests - settings.token_users.keys()
    return holder(headers.get("authorization", ""), operators) is not None


def authenticate(headers: Mapping[str, str], settings: Settings) -> Caller:
    """Return the caller by their token. Raises `UnauthorizedError` and `ForbiddenError`."""
    authorization = headers.get("authorization", "")
    if not authorization:
        raise UnauthorizedError(NO_TOKEN)
    held = holder(authorization, settings.api_token_digests)
    if held is None:
        raise ForbiddenError("this token opens nothing here")
    return Caller(settings.token_users.get(held, ""))
