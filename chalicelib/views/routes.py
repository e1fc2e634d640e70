"""The routes of the view badge, which show the count and take a view, and of the health."""

from __future__ import annotations

import logging
from functools import partial

from chalicelib import telemetry
from chalicelib.badges.badge import Badge, explain
from chalicelib.badges.options import LOOK, Options, parse
from chalicelib.badges.responses import badge_json, badge_svg, json_failure, svg_failure
from chalicelib.http import guards, responses
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import ANY_OPTIONS, Route
from chalicelib.limits import Action
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Key
from chalicelib.units import to_milliseconds
from chalicelib.views import counting, ids, periods
from chalicelib.views.periods import Wanted
from chalicelib.views.storing import Store
from chalicelib.views.view import View, new_ulid
from chalicelib.views.windows import Windows

OPTIONS = ("id", "peek", *LOOK, "format", "base", "show", "tz")
LABEL = "views"
COLOR = "blue"
PROBE = Key("HEALTH", "HEALTH")
"""An item that never exists: reading it shows that the table answers."""
NOT_COUNTED = "out of order, not counted: try again"


def get_views(request: Request, resources: Resources) -> Response:
    """Count a view and answer the count before it; `peek=1` and HEAD count nothing."""
    return badge_json(_answer(request, resources))


def get_views_svg(request: Request, resources: Resources) -> Response:
    """Count a view and answer the count before it, as an image."""
    return badge_svg(_answer(request, resources))


def get_health(_: Request, resources: Resources) -> Response:
    """Answer 200 while the table answers, 503 while it does not."""
    resources.table.get(PROBE)
    return responses.json({"status": "ok"})


def _answer(request: Request, resources: Resources) -> Badge:
    options, wanted = parse(request.query), periods.parse(request.query)
    badge_id = ids.parse(request.query.get("id", ()))
    ids.check_counted(badge_id, resources.settings)
    is_visit = request.method == "GET" and not options.peek
    return _show_and_take(badge_id, options, wanted, request, resources, is_visit=is_visit)


def _show_and_take(  # noqa: PLR0913  the parts of a request
    badge_id: str,
    options: Options,
    wanted: Wanted,
    request: Request,
    resources: Resources,
    *,
    is_visit: bool,
) -> Badge:
    windows = Windows.of(resources.settings)
    try:
        views = periods.read(resources.table, badge_id, wanted, resources.view_clock())
    except StorageError:
        telemetry.event(logging.ERROR, "count_not_read", badge=badge_id)
        if not is_visit:
            return Badge.error(LABEL, "count unavailable: try again")
        _take(View(badge_id, new_ulid(to_milliseconds(resources.view_clock()))), resources, windows)
        return Badge.error(LABEL, "count unavailable, view taken")
    count = views.total
    if is_visit and not count.summary.frozen:
        if count.is_new:
            guards.check_limit(Action.NEW_ID, request, resources)
        view = count.view(windows, resources.view_clock(), resources.settings.hot_views)
        _take(view, resources, windows)
    label, message = LABEL + wanted.show.suffix, periods.write(views, wanted, options)
    return Badge.of(label, message, COLOR, options, views.days)


def _draw_failure(failure: Exception) -> Badge:
    return Badge.error(LABEL, explain(failure, unavailable=NOT_COUNTED, internal=NOT_COUNTED))


def _take(view: View, resources: Resources, windows: Windows) -> None:
    store = Store(resources.table, windows, resources.view_clock, resources.map_parallel)
    queued = counting.take(view, resources.views_queue, store)
    if not queued:
        telemetry.event(logging.WARNING, "view_stored_directly")
        telemetry.count(stored_directly=1)


JSON_FAILURE, SVG_FAILURE = json_failure(_draw_failure), svg_failure(_draw_failure)
_route = partial(Route, "GET", with_head=True, options=OPTIONS)
ROUTES = (
    _route("/api/v1/views", get_views, on_failure=JSON_FAILURE),
    _route("/v1/api/views", get_views, on_failure=JSON_FAILURE),
    _route("/api/v1/views.svg", get_views_svg, on_failure=SVG_FAILURE, options=(*OPTIONS, "spark")),
)
HEALTH_ROUTES = (Route("GET", "/healthz", get_health, options=ANY_OPTIONS),)
