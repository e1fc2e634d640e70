"""The routes that take a view and show the count, as a badge or a number, and of the health."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from chalicelib import telemetry
from chalicelib.badges.badge import Badge, explain
from chalicelib.badges.options import LOOK, PIXEL, STYLES, Options, parse
from chalicelib.badges.responses import badge_json, badge_svg, json_failure, svg_failure
from chalicelib.counting import badge_count, ids
from chalicelib.counting.storing import Store
from chalicelib.counting.view import View
from chalicelib.counting.windows import Windows
from chalicelib.history import periods
from chalicelib.history.periods import Views, Wanted
from chalicelib.http import bodies, guards, responses
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import ANY_OPTIONS, Route
from chalicelib.limits import Action
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Key

NUMBER_OPTIONS = ("id", "format", "base", "show", "tz")
OPTIONS = (*NUMBER_OPTIONS, "peek", *LOOK)
LABEL = "views"
COLOR = "blue"
IMAGE_STYLES = (*STYLES, PIXEL)
PROBE = Key("HEALTH", "HEALTH")
"""An item that never exists: reading it shows that the table answers."""
NOT_COUNTED = "internal error, view not counted"
VIEW_TAKEN = "count unavailable, view taken"


class Asked(NamedTuple):
    """The badge, its look and its numbers that a request asks for."""

    badge_id: str
    options: Options
    wanted: Wanted


def get_views(request: Request, resources: Resources) -> Response:
    """Count a view and answer the count before it; `peek=1` and HEAD count nothing."""
    return badge_json(_answer(request, resources))


def get_views_svg(request: Request, resources: Resources) -> Response:
    """Count a view and answer the count before it, as an image."""
    return badge_svg(_answer(request, resources, IMAGE_STYLES))


def post_views(request: Request, resources: Resources) -> Response:
    """Count a view and answer the count before it as a number, to a script of any site."""
    bodies.check_empty(request.body)
    asked = _read(request, resources)
    views = _take_view(asked, request, resources)
    count, message = None, VIEW_TAKEN
    if views is not None:
        count = periods.number(views, asked.wanted, asked.options)
        message = periods.write(views, asked.wanted, asked.options)
    return responses.json({"id": asked.badge_id, "count": count, "message": message})


def get_health(_: Request, resources: Resources) -> Response:
    """Answer 200 while the table answers, 503 while it does not."""
    resources.table.get(PROBE)
    return responses.json({"status": "ok"})


def _answer(request: Request, resources: Resources, styles: Sequence[str] = STYLES) -> Badge:
    asked = _read(request, resources, styles)
    is_visit = request.method == "GET" and not asked.options.peek
    views = _take_view(asked, request, resources) if is_visit else _peek(asked, resources)
    if views is None:
        return Badge.error(LABEL, VIEW_TAKEN if is_visit else "count unavailable: try again")
    label = LABEL + asked.wanted.show.suffix
    message = periods.write(views, asked.wanted, asked.options)
    return Badge.of(label, message, COLOR, asked.options, views.days)


def _read(request: Request, resources: Resources, styles: Sequence[str] = STYLES) -> Asked:
    options, wanted = parse(request.query, styles), periods.parse(request.query)
    badge_id = ids.parse(request.query.get("id", ()))
    ids.check_counted(badge_id, resources.settings)
    return Asked(badge_id, options, wanted)


def _peek(asked: Asked, resources: Resources) -> Views | None:
    """Read the numbers of a badge; return None if that fails."""
    try:
        return periods.read(resources.table, asked.badge_id, asked.wanted, resources.view_clock())
    except StorageError:
        telemetry.event(logging.ERROR, "count_not_read", badge=asked.badge_id)
        return None


def _take_view(asked: Asked, request: Request, resources: Resources) -> Views | None:
    """Take a view, unless the badge is frozen; return the numbers before it."""
    windows = Windows.of(resources.settings)
    views = _peek(asked, resources)
    if views is None:
        view = badge_count.view_of_unread(asked.badge_id, resources.view_clock())
        _take(view, resources, windows)
    elif not (count := views.total).summary.frozen:
        if count.is_new:
            guards.check_limit(Action.NEW_ID, request, resources)
        view = count.view(windows, resources.view_clock(), resources.settings.hot_views)
        _take(view, resources, windows)
    return views


def _draw_failure(failure: Exception) -> Badge:
    return Badge.error(LABEL, explain(failure, unavailable=NOT_COUNTED, internal=NOT_COUNTED))


def _take(view: View, resources: Resources, windows: Windows) -> None:
    def store() -> Store:
        return Store(resources.table, windows, resources.view_clock, resources.map_parallel)

    queued = False
    try:
        queued = badge_count.take(view, resources.views_queue, store)
        if not queued:
            telemetry.event(logging.WARNING, "view_stored_directly")
    finally:
        if not queued:
            telemetry.count(queue_refusals=1)


JSON_FAILURE, SVG_FAILURE = json_failure(_draw_failure), svg_failure(_draw_failure)
_route = partial(Route, "GET", with_head=True, from_any_site=True, options=OPTIONS)
ROUTES = (
    _route("/api/v1/views", get_views, on_failure=JSON_FAILURE),
    Route("POST", "/api/v1/views", post_views, from_any_site=True, options=NUMBER_OPTIONS),
    _route("/v1/api/views", get_views, on_failure=JSON_FAILURE),
    _route("/api/v1/views.svg", get_views_svg, on_failure=SVG_FAILURE, options=(*OPTIONS, "spark")),
)
HEALTH_ROUTES = (Route("GET", "/healthz", get_health, from_any_site=True, options=ANY_OPTIONS),)
