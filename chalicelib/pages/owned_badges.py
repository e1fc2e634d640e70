"""The badges of a secret, which its owner lists a page at a time, and the page `/own` for them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chalicelib.counting import ids, keys
from chalicelib.history import periods
from chalicelib.history.periods import Period, Show
from chalicelib.http import page, responses
from chalicelib.http.fields import Field, Options
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import ANY_OPTIONS, Route
from chalicelib.http.tokens import digest
from chalicelib.lazy import lazy
from chalicelib.owners import routes as owners
from chalicelib.owners.routes import OwnerResources
from chalicelib.storage.items import text

if TYPE_CHECKING:
    from chalicelib.owners import finding
    from chalicelib.owners.finding import OwnedBadge
else:
    finding = lazy("chalicelib.owners.finding")

FILE = Path(__file__).with_name("own.html")
PAGE = 25
"""Badges of a page. Each needs the two queries of a badge that shows today's views."""


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
    today, now = Period(Show.TODAY), resources.view_clock()
    numbers = periods.read(resources.table, owned.badge_id, today, now)
    return {
        "id": owned.names[-1],
        "count": numbers.total.shown,
        "today": numbers.of_period,
    }


def get_own_page(_: Request, __: OwnerResources) -> Response:
    """Show the page on which owners get and change their badges."""
    return page.respond(page.load(FILE, page.style()))


ROUTES = (
    Route("GET", "/own", get_own_page, with_head=True, options=ANY_OPTIONS),
    Route("GET", owners.BADGES, get_badges, options=OwnedOptions),
)
