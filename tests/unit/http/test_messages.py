"""The caller that an authorizer's context or a token's item names: malformed fields name nobody."""

from __future__ import annotations

from typing import Any

import pytest

from chalicelib.http.messages import Caller, Role

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"


@pytest.mark.parametrize("caller", [Caller(Role.OPERATOR), Caller(Role.USER, USER)])
def test_the_fields_of_a_caller_name_this_caller(caller: Caller) -> None:
    assert Caller.of(caller.fields) == Caller.of(caller.fields | {"principalId": "x"}) == caller
    assert caller.is_operator is (caller.role == "operator")


@pytest.mark.parametrize(
    "context",
    [
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
        {"role": "user", "user": [USER]},
        {"role": ["operator"]},
        {"claims": {"role": "operator"}},
    ],
)
def test_other_fields_name_nobody(context: dict[str, Any]) -> None:
    assert Caller.of(context) is None


@pytest.mark.parametrize(
    ("role", "user"), [(Role.OPERATOR, USER), (Role.USER, ""), (Role.USER, "eva")]
)
def test_no_caller_is_made_of_a_role_and_a_user_that_contradict(role: Role, user: str) -> None:
    with pytest.raises(ValueError, match="a caller is an operator, or a user with a UUID"):
        Caller(role, user)
