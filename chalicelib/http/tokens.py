"""The tokens that open the token routes, known by their digests alone."""

from __future__ import annotations

from collections.abc import Collection

TOKEN_BYTES = 32


def new_token() -> str:
    """A token, for whoever is to have it; only its digest is kept."""
    import secrets  # noqa: PLC0415  no request makes one

    return secrets.token_urlsafe(TOKEN_BYTES)


def digest(token: str) -> str:
    """SHA-256: 24 random bytes or more need no slow hash."""
    import hashlib  # noqa: PLC0415  no badge needs it

    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()


def holder(authorization: str, digests: Collection[str]) -> str | None:
    """The digest of the bearer token in a header, if it is one of these; else None.

    In a time that tells nothing of the right tokens.
    """
    import hmac  # noqa: PLC0415  no badge needs it

    kind, _, token = authorization.partition(" ")
    if kind.lower() != "bearer":
        return None
    given = digest(token.strip())
    known = [one for one in digests if hmac.compare_digest(one, given)]
    return known[0] if known else None
