"""The route by which an owner tells GitHub's numbers of a repository."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from chalicelib.badges.options import MAX_BASE
from chalicelib.counting import ids
from chalicelib.counting.summary import Summary
from chalicelib.history.github import CLONES, NAMES, VIEWS, Traffic, prepare
from chalicelib.http import responses
from chalicelib.http.errors import BadRequestError
from chalicelib.http.fields import Body, Field, Json, array, integer, schema, string
from chalicelib.http.messages import Change, Request, Response
from chalicelib.http.query import shown
from chalicelib.http.routing import Route
from chalicelib.lazy import lazy
from chalicelib.owners import routes as owners
from chalicelib.owners.routes import OwnerResources
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.owners import finding
else:
    finding = lazy("chalicelib.owners.finding")

MAX_DAYS = 31
"""GitHub tells 15 days at most, the present one among them."""
MIDNIGHT = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T00:00:00Z")
COUNT = integer(0, MAX_BASE)


def _traffic(kind: str, given: object) -> Traffic:
    """Return the response of GitHub. Raises `ValueError`, which says where it is wrong."""
    match given:
        case {"uniques": uniques, **rest} if isinstance(days := rest.get(kind), list):
            if len(days) > MAX_DAYS:
                raise ValueError(f"{kind}: give at most {MAX_DAYS} days, not {len(days)}")
            found = [_day(f"{kind}[{place}]", day) for place, day in enumerate(days)]
            if len(dict(found)) < len(found):
                raise ValueError(f"{kind}: give each timestamp once")
            return Traffic(kind, _count("uniques", uniques), dict(found))
    raise ValueError(
        f"give GitHub's response to GET /repos/OWNER/NAME/traffic/{kind} as it came:"
        f' {{"count": 3, "uniques": 2, "{kind}": [{{"timestamp", "count", "uniques"}}, …]}}'
    )


def _day(place: str, given: object) -> tuple[str, tuple[int, int]]:
    match given:
        case {"timestamp": timestamp, "count": count, "uniques": uniques}:
            numbers = _count(f"{place}.count", count), _count(f"{place}.uniques", uniques)
            return _date(place, timestamp), numbers
    raise ValueError(f"{place}: give timestamp, count and uniques")


def _date(place: str, given: object) -> str:
    with suppress(ValueError):
        if isinstance(given, str) and MIDNIGHT.fullmatch(given):
            return date.fromisoformat(given.partition("T")[0]).isoformat()
    raise ValueError(f"{place}.timestamp: give a day like 2026-11-21T00:00:00Z")


def _count(place: str, given: object) -> int:
    if type(given) is int and 0 <= given <= MAX_BASE:
        return given
    raise ValueError(f"{place}: give a whole number from 0 to {MAX_BASE}, not {shown(str(given))}")


def _response(kind: str) -> Json:
    """Return the schema of a response of GitHub, which may have more fields."""
    numbers = {"count": COUNT, "uniques": COUNT}
    day = {"timestamp": string(MIDNIGHT), **numbers}
    listed = {"type": "object", "required": [*day], "properties": day}
    properties = {**numbers, kind: array(listed, MAX_DAYS)}
    content = {"type": "object", "required": ["uniques", kind], "properties": properties}
    return schema(f"GitHub{kind.title()}", content)


def _field(kind: str) -> Field[Traffic | None]:
    words = f"GitHub's response to `GET /repos/OWNER/NAME/traffic/{kind}`, as it came."
    return Field[Traffic | None](partial(_traffic, kind), _response(kind), words, default=None)


class TrafficBody(Body):
    """GitHub's responses: at least one."""

    max_bytes = 16_384
    rules: ClassVar = {"minProperties": 1}
    views = _field(VIEWS)
    clones = _field(CLONES)

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.told = [one for one in (self.views, self.clones) if one is not None]
        if not self.told:
            raise BadRequestError(f"give at least one of {', '.join(NAMES)}")


def put_traffic(request: Request, resources: OwnerResources) -> Response:
    """Store GitHub's views and clones of a repository beside a badge."""
    badge_id = ids.IdOption(request.query).badge_id
    ids.check_not_banned(badge_id, resources)
    owned = finding.authenticate(resources.table, badge_id, owners.secret_of(request))
    asked = TrafficBody(request.body)
    change = Change(owned.names[-1], finding.describe_for_log(resources.table, owned), asked.given)
    tell(resources.table, owned, asked.told, resources.view_clock())
    days = {one.kind: len(one.days) for one in asked.told}
    return responses.json({"id": owned.names[-1], "days": days}, change=change)


def tell(table: Table, owned: finding.OwnedBadge, told: list[Traffic], now: Seconds) -> None:
    """Store responses of GitHub; telling them again changes nothing.

    Raises `BadRequestError`, `OwnerError` and `StorageError`.
    """
    tomorrow = f"{datetime.fromtimestamp(now, UTC) + timedelta(days=1):%Y-%m-%d}"
    for one in told:
        if (last := one.until("")) > tomorrow:
            raise BadRequestError(f"{one.kind}: {last} is in the future: give days up to today")

    def write(owned: finding.OwnedBadge, summary: Summary) -> None:
        months = prepare(table, owned.badge_id, told, now)
        # With the summary, the months and a deletion exclude each other.
        table.write(summary.update(now, {}), owned.check, *months)

    finding.change_again(table, owned, write)


ROUTES = (Route("PUT", f"{owners.BADGES}/traffic", put_traffic, options=ids.IdOption),)
