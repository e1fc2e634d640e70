"""Tokens: each is new, and is stored as a digest."""

from __future__ import annotations

import hashlib

from chalicelib.http import tokens
from chalicelib.http.authentication import BEARER
from chalicelib.settings import DIGEST

TOKEN = "a-token"  # noqa: S105  of these tests


def test_a_token_has_32_random_bytes_and_fits_into_a_header() -> None:
    made = {tokens.new_token() for _ in range(100)}
    assert len(made) == 100
    assert {len(token) for token in made} == {43}, "32 bytes in base64 without padding"
    assert all(BEARER.fullmatch(f"Bearer {token}") for token in made)


def test_a_digest_is_the_sha_256_that_a_setting_takes() -> None:
    assert tokens.digest(TOKEN) == hashlib.sha256(b"a-token").hexdigest()
    assert DIGEST.fullmatch(tokens.digest(TOKEN))
