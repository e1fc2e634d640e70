"""`api_handler`'s routes for the view badge, JSON and SVG: show the count, take the view."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from chalice.app import Blueprint, Response

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.badges import badge as badges
from chalicelib.badges.badge import PLAIN
from chalicelib.badges.options import BadOptionError, Options, Query, parse, query_of
from chalicelib.http.responses import ANY_TYPE, answer, badge, svg, unavailable
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Key
from chalicelib.views import counting, ids
from chalicelib.views.storing import Store
from chalicelib.views.view import View, new_ulid
from chalicelib.views.windows import Windows

blueprint = Blueprint(__name__)

PROBE = Key("HEALTH", "HEALTH")
"""An item that never exists: reading it shows that the table answers."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a badge says, and how: JSON and SVG are made of it."""

    body: dict[str, Any]
    options: Options = PLAIN


VIEW_TAKEN = Drawn(badges.error("count unavailable, view taken"))


@blueprint.route("/api/v1/views", methods=["GET", "HEAD"], content_types=ANY_TYPE)
@blueprint.route("/v1/api/views", methods=["GET", "HEAD"], content_types=ANY_TYPE)
def get_views() -> Response:
    """Count a view and answer the count before it; `peek=1` and HEAD count nothing."""
    return badge(_asked().body)


@blueprint.route("/api/v1/views.svg", methods=["GET", "HEAD"], content_types=ANY_TYPE)
def get_views_svg() -> Response:
    """The same as a picture."""
    from chalicelib.badges.picture import picture  # noqa: PLC0415  the JSON badge needs none

    drawn = _asked()
    return svg(picture(drawn.body, drawn.options))


def _asked() -> Drawn:
    telemetry.begin("api_handler", blueprint.lambda_context)
    request = blueprint.current_request
    return _answer(query_of(request), counted=request.method == "GET")


def _answer(query: Query, *, counted: bool) -> Drawn:
    try:
        options = parse(query)
        badge_id = ids.parse(query.get("id", ()))
        return _show_and_take(badge_id, options, resources.current(), counted=counted)
    except (ids.BadIdError, BadOptionError) as wrong:
        return Drawn(badges.error(str(wrong)))
    except Exception:  # noqa: BLE001  a badge is drawn whatever happens
        telemetry.event(logging.ERROR, "a badge failed")
        return Drawn(badges.error("out of order, not counted: try again"))


def _show_and_take(badge_id: str, options: Options, use: Resources, *, counted: bool) -> Drawn:
    counted = counted and not options.peek
    windows = Windows.of(use.settings)
    try:
        count = counting.read(use.table, badge_id)
    except StorageError:
        telemetry.event(logging.ERROR, "count_not_read", badge=badge_id)
        if not counted:
            return Drawn(badges.error("count unavailable: try again"))
        _take(View(badge_id, new_ulid(int(use.clock() * 1000))), use, windows)
        return VIEW_TAKEN
    if counted and not count.summary.frozen:
        view = count.view(windows, use.clock(), use.settings.hot_views)
        _take(view, use, windows)
    return Drawn(badges.views(count.shown, options), options)


def _take(view: View, use: Resources, windows: Windows) -> None:
    store = Store(use.table, windows, use.clock, use.each)
    queued = counting.take(view, use.views_queue, store)
    if not queued:
        telemetry.event(logging.WARNING, "view_stored_directly")
    telemetry.count(views_taken=1, stored_directly=int(not queued))


@blueprint.route("/healthz", methods=["GET"], content_types=ANY_TYPE)
def healthz() -> Response:
    """200 while the table answers, 503 while it does not."""
    telemetry.begin("api_handler", blueprint.lambda_context)
    try:
        resources.current().table.get(PROBE)
    except StorageError:
        telemetry.event(logging.ERROR, "the table does not answer")
        return unavailable("the table does not answer")
    return answer({"status": "ok"})
