"""A table with the tokens that the tests of both authorizers know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chalicelib.aws import resources
from chalicelib.http import tokens
from chalicelib.settings import Settings
from simulation.memory_table import MemoryTable
from simulation.resources import GivenResources
from simulation.tokens import store_token

TOKEN, BOOTSTRAP, USERS_TOKEN = (name * 6 for name in ("operator", "bootstrap", "users"))
SETTINGS = Settings(api_token_digests=frozenset({tokens.digest(BOOTSTRAP)}))
BOOTSTRAP_NAME = f"API_TOKEN_DIGESTS {tokens.digest(BOOTSTRAP)[:12]}"
USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"


@contextmanager
def known_tokens() -> Iterator[MemoryTable]:
    """Give the functions on AWS a table with the tokens."""
    table = MemoryTable()
    store_token(table, TOKEN)
    store_token(table, USERS_TOKEN, USER)
    resources.use(GivenResources(table, settings=SETTINGS))
    try:
        yield table
    finally:
        resources.use(None)
