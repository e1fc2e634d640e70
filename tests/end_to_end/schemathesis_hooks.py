"""What schemathesis must be told beyond `schemathesis.toml`: what no OpenAPI says of this API."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import unquote

import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

JSON_BADGES = ("/api/v1/views", "/v1/api/views")
COLORS = ("color: ", "labelColor: ")
"""How a badge begins that refuses a colour: which words are names of one, the description leaves to
CSS and shields.io."""
MOST_DAYS_BY_HOUR = 31

Case: TypeAlias = schemathesis.Case[Any]

secrets: dict[str, str] = {}
"""By each name of a badge that was claimed."""


@schemathesis.hook
def after_call(_context: Any, case: Case, response: schemathesis.Response) -> None:
    """Keep the secret, which only a claim tells; a new name has that of the old one."""
    if response.status_code == HTTPStatus.CREATED:
        claimed = response.json()
        secrets[claimed["id"]] = claimed["secret"]
    elif case.operation.method == "patch" and response.status_code == HTTPStatus.OK:
        secrets[response.json()["id"]] = secrets[_badge(case)]


@schemathesis.auth(refresh_interval=None)
class Owner:
    """Asks with the secret of the badge, or with a wrong one for a badge that is not claimed."""

    def get(self, case: Case, _context: Any) -> str:
        return secrets.get(_badge(case), "of no badge")

    def set(self, case: Case, secret: str, _context: Any) -> None:
        case.headers["Authorization"] = f"Bearer {secret}"


def _badge(case: Case) -> str:
    return unquote(str((case.path_parameters or {}).get("badge_id", "")))


@schemathesis.hook
def filter_query(_context: Any, query: Mapping[str, Any] | None) -> bool:
    """Whether `days` may be so many: a limit that depends on `by`, which no schema can say."""
    days = str((query or {}).get("days", ""))
    by_hour = (query or {}).get("by") == "hour"
    return not (by_hour and days.isdecimal() and int(days) > MOST_DAYS_BY_HOUR)


@schemathesis.check
def badge_is_an_error_where_data_is_bad(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: Case
) -> bool | None:
    """And only there: what a status says of other routes, a badge, which is always 200, says."""
    if case.operation.path not in JSON_BADGES or response.status_code != HTTPStatus.OK:
        return None
    badge = response.json()
    if badge["message"].startswith(COLORS):
        return None
    meant = copy.copy(response)
    meant.status_code = 400 if badge.get("isError") else 200
    negative_data_rejection(ctx, meant, case)
    positive_data_acceptance(ctx, meant, case)
    return None
