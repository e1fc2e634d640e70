"""The routes of owners that need the history: their badges, the page `/own`, GitHub's numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from chalicelib.badges.options import MAX_BASE
from chalicelib.counting import ids, keys
from chalicelib.counting.summary import Summary
from chalicelib.history import periods
from chalicelib.history.github import CLONES, NAMES, VIEWS, Traffic, prepare
from chalicelib.history.periods import Period, Show
from chalicelib.http import page, responses
from chalicelib.http.errors import BadRequestError
from chalicelib.http.fields import Body, Field, Json, Options, array, integer, schema, string
from chalicelib.http.messages import Change, Request, Response
from chalicelib.http.query import shown
from chalicelib.http.routing import ANY_OPTIONS, Route
from chalicelib.http.tokens import digest
from chalicelib.lazy import lazy
from chalicelib.owners import routes as owners
from chalicelib.owners.routes import OwnerResources
from chalicelib.storage.items import text
from chalicelib.storage.ports import Table
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.owners import finding
    from chalicelib.owners.finding import OwnedBadge
else:
    finding = lazy("chalicelib.owners.finding")

FILE = Path(__file__).with_name("own.html")
PAGE = 25
"""Badges of a page. Each needs the two queries of a badge that shows today's views."""
MAX_DAYS = 31
"""GitHub tells 15 days at most, the present one among them."""
MIDNIGHT = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T00:00:00Z")
COUNT = integer(0, MAX_BASE)


class OwnedOptions(Options):
    """The id of one badge, or the page of all badges of a secret."""

    badge_id = Field(
        ids.normalise,
        ids.ID,
        "The badge. Without it, the badges of the secret are listed.",
        name="id",
        default="",
        example="owner/name",
        may_be_empty=True,
    )
    cursor = Field(
        ids.normalise,
        ids.ID,
        "The `next` of the page before; none for the first page.",
        default="",
    )


def get_badges(request: Request, resources: OwnerResources) -> Response:
    """Show a badge to its owner, or list the badges of a secret."""
    asked = OwnedOptions(request.query)
    if asked.badge_id:
        return owners.get_badge(request, resources)
    found = list(_read(resources, digest(owners.secret_of(request)), asked.cursor))
    if not found and not asked.cursor:
        raise finding.WrongSecretError("no badge has this secret")
    page = [_to_json(owned, resources) for owned in found[:PAGE]]
    more = {"next": found[PAGE - 1].badge_id} if found[PAGE:] else {}
    return responses.json({"badges": page, **more})


def _read(resources: OwnerResources, own_digest: str, cursor: str) -> Iterator[OwnedBadge]:
    """Yield the badges of a secret after the cursor: a page, and one if there are more.

    They are in the order of the ids under which they are stored. Raises `StorageError`.
    """
    pk, first = keys.owned(own_digest, cursor)
    found = resources.table.query(pk, first=first, limit=PAGE + 2, attributes=("SK",))
    listed = [text(item, "SK").removeprefix(keys.OWNED) for item in found]
    places = [badge_id for badge_id in listed if badge_id != cursor][: PAGE + 1]
    for owner in resources.table.get_all([keys.owner(badge_id) for badge_id in places]):
        yield finding.OwnedBadge.of(text(owner, "PK").removeprefix(keys.PARTITION), owner)


def _to_json(owned: OwnedBadge, resources: OwnerResources) -> dict[str, Any]:
    """Return the present name and the numbers of a badge, which are null if it is banned."""
    if resources.bans.cover(owned.names[-1]):
        return {"id": owned.names[-1], "count": None, "today": None}
    today = Period(Show.TODAY)
    numbers = periods.read(resources.table, owned.badge_id, today, resources.view_clock)
    return {
        "id": owned.names[-1],
        "count": numbers.total.shown,
        "today": numbers.of_period,
    }


def get_own_page(_: Request, __: OwnerResources) -> Response:
    """Show the page on which owners get and change their badges."""
    return page.respond(page.load(FILE, page.style()))


# ---- GitHub's numbers of a repository


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


ROUTES = (
    Route("GET", "/own", get_own_page, with_head=True, options=ANY_OPTIONS),
    Route("GET", owners.BADGES, get_badges, options=OwnedOptions),
    Route("PUT", f"{owners.BADGES}/traffic", put_traffic, options=ids.IdOption),
)
