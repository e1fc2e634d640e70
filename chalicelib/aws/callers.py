"""The caller of a request, from the authorizer's context in API Gateway."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalicelib.http.messages import Caller
from chalicelib.settings import UUID

OPERATOR, USER = "operator", "user"


def to_context(user: str) -> dict[str, str]:
    """Return the authorizer's context for a known token; `user` is empty for an operator's."""
    return {"role": USER if user else OPERATOR, "user": user}


def from_context(context: Mapping[str, Any] | None) -> Caller | None:
    """Return the caller of a context; None if it is missing or its role is unknown."""
    role, user = (str((context or {}).get(name) or "") for name in ("role", "user"))
    if role == OPERATOR and not user:
        return Caller()
    if role == USER and UUID.fullmatch(user):
        return Caller(user)
    return None
