"""The builder at `/`, on which users choose a badge and copy its line, and the logos it offers."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import quote

from chalicelib.badges.badge import Badge
from chalicelib.badges.options import STYLES
from chalicelib.http import responses
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import ANY_OPTIONS, Route, public_read
from chalicelib.lazy import lazy
from chalicelib.settings import Feature

if TYPE_CHECKING:
    from chalicelib.badges import logos, svg
    from chalicelib.history import buckets, chart, history
    from chalicelib.http import page
    from chalicelib.resources import Resources
else:
    logos, svg = lazy("chalicelib.badges.logos"), lazy("chalicelib.badges.svg")
    buckets, chart = lazy("chalicelib.history.buckets"), lazy("chalicelib.history.chart")
    history, page = lazy("chalicelib.history.history"), lazy("chalicelib.http.page")

DAYS = (3, 5, 4, 6, 9, 7, 6, 8, 12, 10, 9, 8, 11, 15, 13, 10, 12, 14, 19, 16, 13, 15, 17, 22, 19)
BADGES = {
    **{style: Badge("views", "1.2k", style=style) for style in STYLES},
    "period": Badge("views", "12 today \u00b7 1234"),
    "spark": Badge("views", "1234", spark=DAYS),
    "logo": Badge("views", "1234", logo="github"),
}
"""The pictures of the page, by the name that an `img` has after `example:`. Another is a chart."""
EXAMPLE = re.compile(r'"example:([a-z-]+)"')
OF_EVENTS = re.compile(r"<!-- events -->.*?<!-- /events -->", re.DOTALL)
LOGOS_SECONDS = 86_400


def get_page(_: Request, resources: Resources) -> Response:
    """Answer the page."""
    return page.respond(text(has_events=Feature.EVENTS in resources.settings.features))


def get_logos(_: Request, __: Resources) -> Response:
    """Return the path of each logo by its name, which is drawn in a box of 24 x 24."""
    return Response(
        200, {**responses.TYPES, "Cache-Control": f"public, max-age={LOGOS_SECONDS}"}, _logos()
    )


@cache
def text(*, has_events: bool) -> str:
    """Return the page with its pictures, and with countdowns only if there are events."""
    whole = EXAMPLE.sub(lambda found: f'"{_draw(found[1])}"', page.text())
    return whole if has_events else OF_EVENTS.sub("", whole)


def _draw(name: str) -> str:
    drawn = svg.draw(BADGES[name]) if name in BADGES else _draw_chart()
    return f"data:image/svg+xml,{quote(drawn, safe=' /:=;,')}"


def _draw_chart() -> str:
    first = datetime(2026, 1, 1, tzinfo=UTC)
    days = tuple(
        history.Bucket(first + timedelta(place), views) for place, views in enumerate(DAYS)
    )
    month = history.History(buckets.Interval.DAY, len(days), first.date(), days, is_current=False)
    return chart.draw(month, chart.Look(320, 110))


@cache
def _logos() -> bytes:
    return json.dumps(logos.paths(), separators=(",", ":")).encode()


ROUTES = (
    Route("GET", "/", get_page, with_head=True, options=ANY_OPTIONS),
    public_read("/logos.json", get_logos, options=ANY_OPTIONS),
)
