"""Tokens: they are stored as digests, and a header has one token or none."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.http import tokens
from chalicelib.settings import DIGEST

TOKEN = "a-token"  # noqa: S105  of these tests
KNOWN = (tokens.digest("another"), tokens.digest(TOKEN))


def test_a_token_has_32_random_bytes_and_fits_into_a_header() -> None:
    made = {tokens.new_token() for _ in range(100)}
    assert len(made) == 100
    assert {len(token) for token in made} == {43}, "32 bytes in base64 without padding"
    for token in made:
        assert token.isascii()
        assert tokens.holder(f"Bearer {token}", [tokens.digest(token)]) == tokens.digest(token)


def test_a_digest_is_the_sha_256_that_a_setting_takes() -> None:
    assert tokens.digest(TOKEN) == hashlib.sha256(b"a-token").hexdigest()
    assert DIGEST.fullmatch(tokens.digest(TOKEN))


@pytest.mark.parametrize(
    "header",
    ["Bearer a-token", "bearer a-token", "BEARER a-token", "Bearer  a-token", "Bearer a-token "],
)
def test_the_digest_of_a_known_token_identifies_its_caller(header: str) -> None:
    assert tokens.holder(header, KNOWN) == tokens.digest(TOKEN)


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Bearer",
        "Bearer ",
        "a-token",
        "Basic a-token",
        "Bearer: a-token",
        "Bearer a-toke",
        "Bearer a-tokens",
        "Bearer A-TOKEN",
        "Bearer a-token b",
        f"Bearer {KNOWN[1]}",
        "Bearer \ud800",
        "Bearer ü",
    ],
)
def test_another_header_has_no_caller(header: str) -> None:
    assert tokens.holder(header, KNOWN) is None


def test_without_known_tokens_there_is_no_caller() -> None:
    assert tokens.holder("Bearer a-token", ()) is None


@given(st.text())
def test_a_guessed_token_is_refused(guess: str) -> None:
    known = [tokens.digest("the token that nobody guesses")]
    assert tokens.holder(guess, known) is None
    assert tokens.holder(f"Bearer {guess}", known) is None
