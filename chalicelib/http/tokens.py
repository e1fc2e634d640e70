"""The tokens of operators, users and owners, of which only digests are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.lazy import lazy

if TYPE_CHECKING:
    import hashlib
    import secrets
else:
    hashlib, secrets = lazy("hashlib"), lazy("secrets")


def new_token() -> str:
    """Generate a token of 43 letters, digits, `-` and `_`."""
    return secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """Return the SHA-256 of a token, which has at least 24 random bytes and needs no slow hash."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).hexdigest()
