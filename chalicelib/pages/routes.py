"""The public page of a badge and its picture for link previews. Neither counts a view."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chalicelib.counting import badge_count, ids
from chalicelib.http import responses
from chalicelib.http.fields import number
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import Route, public_read
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.badges import responses as badge_responses
    from chalicelib.history import buckets, history
    from chalicelib.http import page
    from chalicelib.pages import badge_page, preview
else:
    badge_responses = lazy("chalicelib.badges.responses")
    page = lazy("chalicelib.http.page")
    badge_page = lazy("chalicelib.pages.badge_page")
    buckets = lazy("chalicelib.history.buckets")
    history = lazy("chalicelib.history.history")
    preview = lazy("chalicelib.pages.preview")


class PageOptions(ids.IdOption):
    """The options of a badge's page."""

    days = number(range(1, 366), "The days of the chart, up to today.", 30)


def get_badge_page(request: Request, resources: Resources) -> Response:
    """Show a badge as a page for people: its count, its periods, its chart, and lines to copy."""
    asked = ids.read(PageOptions, request.query, resources)
    badge_id, days = asked.badge_id, asked.days
    now = resources.view_clock()
    # The history is read first, so that no period is higher than the count, which never falls.
    most = max(days, _days_of_year(now))
    found = _read_days(badge_id, most, resources, with_github=True)
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
    """Draw the last 30 days as a PNG of 1200 x 630 pixels, for link previews."""
    badge_id = ids.read(ids.IdOption, request.query, resources).badge_id
    found = _read_days(badge_id, preview.DAYS, resources)
    drawn = preview.draw([bucket.views for bucket in found.buckets])
    return Response(200, {"Content-Type": "image/png", **badge_responses.HEADERS}, drawn)


def _read_days(
    badge_id: str, days: int, resources: Resources, *, with_github: bool = False
) -> history.History:
    table, now = resources.table, resources.view_clock()
    return history.read(table, badge_id, buckets.Span(days), now, with_github=with_github)


def _days_of_year(now: Seconds) -> int:
    """Return the days since the first of January or the last Monday, and one more.

    Another clock may be ahead, and a history ends with the day of its latest view.
    """
    today = datetime.fromtimestamp(now, UTC).timetuple()
    return max(today.tm_yday, today.tm_wday + 1) + 1


ROUTES = (
    Route("GET", "/s", get_badge_page, with_head=True, options=PageOptions),
    public_read("/s.png", get_badge_picture, options=ids.IdOption),
)
