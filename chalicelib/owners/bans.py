"""The routes by which an operator lists, sets and lifts bans."""

from __future__ import annotations

from functools import partial
from typing import Any

from chalicelib.counting import bans, ids
from chalicelib.counting.bans import Ban
from chalicelib.http import guards, responses
from chalicelib.http.fields import Body, Field, Options, check_empty, string
from chalicelib.http.messages import Change, Request, Response
from chalicelib.http.query import short_text
from chalicelib.http.routing import Authentication, Route
from chalicelib.resources import Resources
from chalicelib.storage.ports import Table
from chalicelib.units import to_iso8601, to_milliseconds

PATH = "/api/v1/bans"
PATTERN = string(ids.CHARACTERS, minLength=1, maxLength=ids.MAX_CHARACTERS)
OPERATOR = "operator"
"""The name of an operator whose token has none."""


def parse_pattern(given: str | None) -> str:
    """Return a pattern as it is stored. Raises `ValueError`."""
    if given is None:
        raise ValueError("give an id, or a pattern such as spammer/*")
    return ids.normalise(given)


def parse_reason(given: object) -> str:
    """Return the reason of a ban. Raises `ValueError`."""
    if not isinstance(given, str):
        raise ValueError("give a text")  # noqa: TRY004  the error of a parser
    return short_text(bans.MAX_REASON, given)


class ListOptions(Options):
    """The pattern of one ban, or none for all."""

    pattern = Field(parse_pattern, PATTERN, "Lists the ban of this pattern alone.", default="")


class BanOptions(Options):
    """The pattern of a ban."""

    pattern = Field(
        parse_pattern,
        PATTERN,
        "The ids that are banned: one, or a pattern in which only `*` has a meaning: any"
        " characters.",
        example="spammer/*",
    )


class BanBody(Body):
    """The reason of a ban, for operators."""

    reason = Field(
        parse_reason,
        string(maxLength=bans.MAX_REASON),
        "For operators alone: no visitor is told it.",
        default="",
        example="spam",
    )


def get_bans(request: Request, resources: Resources) -> Response:
    """List the bans by pattern."""
    wanted = ListOptions(request.query).pattern
    found = bans.read_all(resources.table)
    return responses.json({"bans": [to_json(one) for one in found if wanted in {"", one.pattern}]})


def set_ban(request: Request, resources: Resources) -> Response:
    """Ban the ids that match a pattern, from now on."""
    pattern, reason = BanOptions(request.query).pattern, BanBody(request.body).reason
    by = guards.caller_of(request).name or OPERATOR
    ban = Ban(pattern, reason, by, to_milliseconds(resources.clock()))
    change = Change(pattern, find(resources.table, pattern))
    bans.put(resources.table, ban)
    resources.bans.forget()
    return responses.json(to_json(ban), change=change)


def lift_ban(request: Request, resources: Resources) -> Response:
    """Lift a ban; all numbers are shown again."""
    check_empty(request.body)
    pattern = BanOptions(request.query).pattern
    change = Change(pattern, find(resources.table, pattern))
    bans.lift(resources.table, pattern)
    resources.bans.forget()
    return responses.no_content(change)


def find(table: Table, pattern: str) -> dict[str, Any] | None:
    """Return the ban of a pattern as JSON, or None."""
    item = table.get(bans.key(pattern))
    return to_json(Ban.of(item)) if item else None


def to_json(ban: Ban) -> dict[str, Any]:
    """Return a ban as JSON."""
    return {
        "pattern": ban.pattern,
        "reason": ban.reason,
        "by": ban.by,
        "at": to_iso8601(ban.at),
    }


_route = partial(Route, path=PATH, authentication=Authentication.OPERATOR)
ROUTES = (
    _route("GET", handler=get_bans, options=ListOptions),
    _route("PUT", handler=set_ban, options=BanOptions),
    _route("DELETE", handler=lift_ban, options=BanOptions),
)
