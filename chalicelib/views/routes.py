"""The routes that take a view and show the count, as a badge or a number, and of the health."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from chalicelib import telemetry
from chalicelib.badges.badge import Badge, explain
from chalicelib.badges.options import PIXEL, STYLES, Options, parse
from chalicelib.badges.responses import badge_json, badge_svg, json_failure, svg_failure
from chalicelib.http import bodies, guards, responses
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import Route
from chalicelib.limits import Action
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Key
from chalicelib.units import to_milliseconds
from chalicelib.views import counting, ids
from chalicelib.views.counting import Count
from chalicelib.views.storing import Store
from chalicelib.views.view import View, new_ulid
from chalicelib.views.windows import Windows

LABEL = "views"
COLOR = "blue"
IMAGE_STYLES = (*STYLES, PIXEL)
PROBE = Key("HEALTH", "HEALTH")
"""An item that never exists: reading it shows that the table answers."""
NOT_COUNTED = "out of order, not counted: try again"
VIEW_TAKEN = "count unavailable, view taken"


def get_views(request: Request, resources: Resources) -> Response:
    """Count a view and answer the count before it; `peek=1` and HEAD count nothing."""
    return badge_json(_answer(request, resources, STYLES))


def get_views_svg(request: Request, resources: Resources) -> Response:
    """Count a view and answer the count before it, as an image."""
    return badge_svg(_answer(request, resources, IMAGE_STYLES))


def post_views(request: Request, resources: Resources) -> Response:
    """Count a view and answer the count before it as a number, to a script of any site."""
    bodies.check_empty(request.body)
    options, badge_id = _read(request, resources, STYLES)
    count = _take_view(badge_id, request, resources)
    number = count and count.shown + options.base
    message = options.message(count.shown) if count else VIEW_TAKEN
    return responses.json({"id": badge_id, "count": number, "message": message})


def get_health(_: Request, resources: Resources) -> Response:
    """Answer 200 while the table answers, 503 while it does not."""
    resources.table.get(PROBE)
    return responses.json({"status": "ok"})


def _answer(request: Request, resources: Resources, styles: Sequence[str]) -> Badge:
    options, badge_id = _read(request, resources, styles)
    is_visit = request.method == "GET" and not options.peek
    count = (_take_view if is_visit else _peek)(badge_id, request, resources)
    if count is None:
        return Badge.error(LABEL, VIEW_TAKEN if is_visit else "count unavailable: try again")
    return Badge.of(LABEL, options.message(count.shown), COLOR, options)


def _read(request: Request, resources: Resources, styles: Sequence[str]) -> tuple[Options, str]:
    """Return the options and the id of a request."""
    options = parse(request.query, styles)
    badge_id = ids.parse(request.query.get("id", ()))
    ids.check_counted(badge_id, resources.settings)
    return options, badge_id


def _peek(badge_id: str, _: Request, resources: Resources) -> Count | None:
    """Return the count, or None if it can't be read."""
    try:
        return counting.read(resources.table, badge_id)
    except StorageError:
        telemetry.event(logging.ERROR, "count_not_read", badge=badge_id)
        return None


def _take_view(badge_id: str, request: Request, resources: Resources) -> Count | None:
    """Take a view, unless the badge is frozen; return the count before it."""
    windows = Windows.of(resources.settings)
    count = _peek(badge_id, request, resources)
    if count is None:
        view = View(badge_id, new_ulid(to_milliseconds(resources.view_clock())))
    elif count.summary.frozen:
        return count
    else:
        if count.is_new:
            guards.check_limit(Action.NEW_ID, request, resources)
        view = count.view(windows, resources.view_clock(), resources.settings.hot_views)
    _take(view, resources, windows)
    return count


def _draw_failure(failure: Exception) -> Badge:
    return Badge.error(LABEL, explain(failure, unavailable=NOT_COUNTED, internal=NOT_COUNTED))


def _take(view: View, resources: Resources, windows: Windows) -> None:
    store = Store(resources.table, windows, resources.view_clock, resources.map_parallel)
    queued = counting.take(view, resources.views_queue, store)
    if not queued:
        telemetry.event(logging.WARNING, "view_stored_directly")
        telemetry.count(stored_directly=1)


JSON_FAILURE, SVG_FAILURE = json_failure(_draw_failure), svg_failure(_draw_failure)
_route = partial(Route, "GET", with_head=True, from_any_site=True)
ROUTES = (
    _route("/api/v1/views", get_views, on_failure=JSON_FAILURE),
    Route("POST", "/api/v1/views", post_views, from_any_site=True),
    _route("/v1/api/views", get_views, on_failure=JSON_FAILURE),
    _route("/api/v1/views.svg", get_views_svg, on_failure=SVG_FAILURE),
)
HEALTH_ROUTES = (Route("GET", "/healthz", get_health, from_any_site=True),)
