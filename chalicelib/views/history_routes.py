"""The routes of a badge's history, as JSON and as a chart. Neither counts a view."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from chalicelib.badges.badge import explain
from chalicelib.badges.responses import image
from chalicelib.http import responses
from chalicelib.http.errors import BadRequestError
from chalicelib.http.messages import Query, Request, Response
from chalicelib.http.query import one, shown, whole_number
from chalicelib.http.routing import Route
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.views import ids

if TYPE_CHECKING:
    from chalicelib.badges import colors
    from chalicelib.views import chart, history
else:
    colors = lazy("chalicelib.badges.colors")
    chart = lazy("chalicelib.views.chart")
    history = lazy("chalicelib.views.history")

DAYS = 30
"""Days of a history without the option."""
WIDTHS, HEIGHTS = range(200, 1201), range(80, 401)
"""Pixels of a chart."""


def get_history(request: Request, resources: Resources) -> Response:
    """Answer the views of each of the last `days` days, or with `by=hour` of each hour."""
    badge_id = _id(request, resources)
    by = one(request.query, "by", _by, default=history.By.DAY)
    found = _read(badge_id, request.query, by, resources)
    return responses.json(history.to_json(badge_id, found))


def get_history_svg(request: Request, resources: Resources) -> Response:
    """Draw the history by day; an error is drawn too, with the status of a badge."""
    look = _look(request.query)
    badge_id = _id(request, resources)
    found = _read(badge_id, request.query, history.By.DAY, resources)
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


def _read(badge_id: str, query: Query, by: history.By, resources: Resources) -> history.History:
    known = range(1, by.most_days + 1)
    where = f"with by={by} " if by is history.By.HOUR else ""
    days = one(query, "days", partial(whole_number, known, where=where), default=DAYS)
    return history.read(resources.table, badge_id, days, resources.view_clock(), by)


def _look(query: Query) -> chart.Look:
    usual = chart.Look()
    return chart.Look(
        width=one(query, "width", partial(whole_number, WIDTHS), default=usual.width),
        height=one(query, "height", partial(whole_number, HEIGHTS), default=usual.height),
        color=one(query, "color", colors.parse, default=usual.color),
    )


def _by(given: str) -> history.By:
    if given not in set(history.By):
        raise ValueError(f"give day or hour, not {shown(given)}")
    return history.By(given)


ROUTES = (
    Route(
        "GET",
        "/api/v1/views/history",
        get_history,
        with_head=True,
        options=("id", "days", "by"),
    ),
    Route(
        "GET",
        "/api/v1/views/history.svg",
        get_history_svg,
        with_head=True,
        on_failure=_draw_failure,
        options=("id", "days", "color", "width", "height"),
    ),
)
