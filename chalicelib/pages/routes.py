"""The public page of a badge and its picture for link previews. Neither counts a view."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from chalicelib.counting import badge_count, ids
from chalicelib.http import responses
from chalicelib.http.messages import Request, Response
from chalicelib.http.query import one, whole_number
from chalicelib.http.routing import Route
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.badges import responses as badge_responses
    from chalicelib.history import history
    from chalicelib.http import page
    from chalicelib.pages import badge_page, preview
else:
    badge_responses = lazy("chalicelib.badges.responses")
    page = lazy("chalicelib.http.page")
    badge_page = lazy("chalicelib.pages.badge_page")
    history = lazy("chalicelib.history.history")
    preview = lazy("chalicelib.pages.preview")

DAYS = 30
"""Days of the chart without the option."""
MAX_DAYS = 365


def get_badge_page(request: Request, resources: Resources) -> Response:
    """Show a badge as a page for people: its count, its periods, its chart, and lines to copy."""
    badge_id = _id(request, resources)
    read_days = partial(whole_number, range(1, MAX_DAYS + 1))
    days = one(request.query, "days", read_days, default=DAYS)
    now = resources.view_clock()
    # The history is read first, so that no period is higher than the count, which never falls.
    found = history.read(resources.table, badge_id, max(days, _days_of_year(now)), now)
    count = badge_count.read(resources.table, badge_id)
    shown = badge_page.BadgePage(
        badge_id,
        count.shown,
        found,
        badge_page.root_url(request, resources.settings),
        days,
        is_frozen=count.summary.frozen,
    )
    headers = {**page.restrictions(badge_page.template()), **responses.NOT_STORED}
    return Response(200, headers, shown.to_html().encode())


def get_badge_picture(request: Request, resources: Resources) -> Response:
    """Draw the count and the last 30 days as a PNG of 1200 x 630 pixels, for link previews."""
    badge_id = _id(request, resources)
    found = history.read(resources.table, badge_id, preview.DAYS, resources.view_clock())
    count = badge_count.read(resources.table, badge_id)
    drawn = preview.draw(count.shown, [bucket.views for bucket in found.buckets])
    return Response(200, {"Content-Type": "image/png", **badge_responses.HEADERS}, drawn)


def _id(request: Request, resources: Resources) -> str:
    badge_id = ids.parse(request.query.get("id", ()))
    ids.check_counted(badge_id, resources.settings)
    return badge_id


def _days_of_year(now: Seconds) -> int:
    """Return the days since the first of January or the last Monday, and one more.

    Another clock may be ahead, and a history ends with the day of its latest view.
    """
    today = datetime.fromtimestamp(now, UTC).timetuple()
    return max(today.tm_yday, today.tm_wday + 1) + 1


ROUTES = (
    Route("GET", "/s", get_badge_page, with_head=True, options=("id", "days")),
    Route(
        "GET",
        "/s.png",
        get_badge_picture,
        with_head=True,
        from_any_site=True,
        options=("id",),
    ),
)
