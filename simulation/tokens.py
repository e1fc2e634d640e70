"""Known tokens in a table, for tests and measurements."""

from __future__ import annotations

from chalicelib.http import tokens
from chalicelib.http.messages import Caller, Role
from chalicelib.storage.ports import Table
from chalicelib.storage.writes import Put
from vumi.tokens import StoredToken


def store_token(table: Table, token: str, user: str = "") -> None:
    """Store a token of an operator, or of a user."""
    holder = Caller(Role.USER, user) if user else Caller(Role.OPERATOR)
    table.write(Put(StoredToken(tokens.digest(token), "a-test", holder, 0).item))
