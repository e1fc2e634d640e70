"""The caller in an authorizer's context: a malformed context names nobody."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.aws import callers
from chalicelib.http.messages import Caller

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"


@pytest.mark.parametrize("user", ["", USER])
def test_a_context_names_the_caller_that_it_was_made_for(user: str) -> None:
    assert callers.from_context(callers.to_context(user)) == Caller(user)
    assert callers.from_context(callers.to_context(user) | {"principalId": "x"}) == Caller(user)


@pytest.mark.parametrize(
    "context",
    [
        None,
        {},
        {"user": ""},
        {"user": USER},
        {"role": "", "user": ""},
        {"role": None, "user": None},
        {"role": "admin", "user": ""},
        {"role": "Operator", "user": ""},
        {"role": "operator", "user": USER},
        {"role": "user"},
        {"role": "user", "user": ""},
        {"role": "user", "user": "eva"},
        {"role": "user", "user": f"{USER}\n"},
    ],
)
def test_any_other_context_names_nobody(context: dict[str, Any] | None) -> None:
    assert callers.from_context(context) is None
