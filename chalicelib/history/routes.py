"""The routes of a badge's history, as JSON and as a chart. Neither counts a view."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from chalicelib.badges.badge import explain
from chalicelib.badges.responses import image
from chalicelib.counting import ids
from chalicelib.http import responses
from chalicelib.http.errors import BadRequestError
from chalicelib.http.messages import Query, Request, Response
from chalicelib.http.query import among, one, shown, whole_number
from chalicelib.http.routing import Route
from chalicelib.lazy import lazy
from chalicelib.resources import Resources

if TYPE_CHECKING:
    from chalicelib.badges import colors
    from chalicelib.history import buckets, chart, history
else:
    colors = lazy("chalicelib.badges.colors")
    buckets = lazy("chalicelib.history.buckets")
    chart = lazy("chalicelib.history.chart")
    history = lazy("chalicelib.history.history")

MAX_DAYS = 9_999
WIDTHS, HEIGHTS = range(200, 1201), range(80, 401)
"""Pixels of a chart."""
FIRST = "first"
"""The value of `from` for the first day with a view."""
OPTIONS = ("id", "days", "from", "to", "by")
DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
EARLIEST = date(1970, 1, 1)


def get_history(request: Request, resources: Resources) -> Response:
    """Answer the views by hour, day, week or month; `next` is the `from` of the next page."""
    badge_id = _id(request, resources)
    found = _read(badge_id, request.query, resources)
    return responses.json(history.to_json(badge_id, found))


def get_history_svg(request: Request, resources: Resources) -> Response:
    """Draw the history; an error is drawn too, with the status of a badge."""
    look = _look(request.query)
    badge_id = _id(request, resources)
    found = _read(badge_id, request.query, resources)
    if found.following:
        raise BadRequestError(
            f"by={found.by}: a chart has at most {found.by.most} {found.by}s: give a longer unit,"
            " or fewer days"
        )
    return image(chart.draw(found, look))


def _draw_failure(failure: Exception, request: Request) -> Response:
    look = chart.Look()
    with suppress(BadRequestError):
        look = _look(request.query)
    return image(chart.draw_error(explain(failure), look))


def _id(request: Request, resources: Resources) -> str:
    badge_id = ids.parse(request.query.get("id", ()))
    ids.check_counted(badge_id, resources.settings)
    return badge_id


def _read(badge_id: str, query: Query, resources: Resources) -> history.History:
    return history.read_span(resources.table, badge_id, _span(query), resources.view_clock())


def _span(query: Query) -> buckets.Span:
    """Return the time that a query asks for. Raises `BadRequestError`."""
    by = one(query, "by", _by, default=None)
    is_by_hour = by is buckets.By.HOUR
    known = range(1, (buckets.MAX_DAYS_BY_HOUR if is_by_hour else MAX_DAYS) + 1)
    where = "with by=hour " if is_by_hour else ""
    days = one(query, "days", partial(whole_number, known, where=where), default=None)
    is_whole = query.get("from") == [FIRST]
    first = None if is_whole else one(query, "from", partial(_date, "first or "), default=None)
    if days and (first or is_whole):
        raise BadRequestError("days: give days or from, not both")
    last = one(query, "to", partial(_date, ""), default=None)
    return buckets.Span(days or buckets.DAYS, first, last, is_whole=is_whole, by=by)


def _look(query: Query) -> chart.Look:
    usual = chart.Look()
    return chart.Look(
        width=one(query, "width", partial(whole_number, WIDTHS), default=usual.width),
        height=one(query, "height", partial(whole_number, HEIGHTS), default=usual.height),
        color=one(query, "color", colors.parse, default=usual.color),
        theme=one(query, "theme", partial(among, chart.THEMES), default=usual.theme),
        scale=one(query, "scale", partial(among, chart.SCALES), default=usual.scale),
    )


def _by(given: str) -> buckets.By:
    return buckets.By(among([*buckets.By], given))


def _date(other: str, given: str) -> date:
    """Return a day; `other` says what else the option takes. Raises `ValueError`."""
    with suppress(ValueError):
        if DATE.fullmatch(given) and (day := date.fromisoformat(given)) >= EARLIEST:
            return day
    raise ValueError(f"give {other}a day like 2026-11-21, from {EARLIEST} on, not {shown(given)}")


_route = partial(Route, "GET", with_head=True, from_any_site=True)
ROUTES = (
    _route("/api/v1/views/history", get_history, options=OPTIONS),
    _route(
        "/api/v1/views/history.svg",
        get_history_svg,
        on_failure=_draw_failure,
        options=(*OPTIONS, "color", "theme", "scale", "width", "height"),
    ),
)
