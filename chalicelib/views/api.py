"""`api_handler`'s routes for the view badge: show the count, take the view."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from chalice.app import Blueprint, Response

from chalicelib import resources, telemetry
from chalicelib.ports import Key, StorageError
from chalicelib.resources import Resources
from chalicelib.responses import answer, badge, error
from chalicelib.views import badge as badges
from chalicelib.views import counting, ids
from chalicelib.views.storing import Lifetime
from chalicelib.views.view import View

blueprint = Blueprint(__name__)

PROBE = Key("HEALTH", "HEALTH")
"""An item that never exists: reading it shows that the table answers."""


class BadOptionError(ValueError):
    """A query parameter is wrong; the message says which and what to give."""


@blueprint.route("/api/v1/views", methods=["GET", "HEAD"])
@blueprint.route("/v1/api/views", methods=["GET", "HEAD"])
def get_views() -> Response:
    """Count a view and answer the count before it; `peek=1` and HEAD count nothing."""
    telemetry.begin("api_handler", blueprint.lambda_context)
    request = blueprint.current_request
    query: Mapping[str, Sequence[str]] = (
        request.to_original_event().get("multiValueQueryStringParameters") or {}
    )
    return badge(_answer(query, counted=request.method == "GET"))


def _answer(query: Mapping[str, Sequence[str]], *, counted: bool) -> dict[str, Any]:
    try:
        badge_id = ids.parse(query.get("id", ()))
        counted = counted and not _peeked(query)
        return _show_and_take(badge_id, resources.current(), counted=counted)
    except (ids.BadIdError, BadOptionError) as wrong:
        return badges.error(str(wrong))
    except Exception:  # noqa: BLE001  a badge is drawn whatever happens
        telemetry.event(logging.ERROR, "a badge failed")
        return badges.error("out of order, not counted: try again")


def _peeked(query: Mapping[str, Sequence[str]]) -> bool:
    match query.get("peek", ()):
        case [] | () | ["0"]:
            return False
        case ["1"]:
            return True
        case _:
            raise BadOptionError("give peek=1, or leave peek out")


def _show_and_take(badge_id: str, use: Resources, *, counted: bool) -> dict[str, Any]:
    shown, body = 0, badges.error("count unavailable, view taken")
    try:
        shown = counting.read(use.table, badge_id).shown
        body = badges.views(shown)
    except StorageError:
        telemetry.event(logging.ERROR, "the count can't be read", badge=badge_id)
        if not counted:
            return badges.error("count unavailable: try again")
    if counted:
        _take(View.taken(badge_id, shown, use.clock()), use)
    return body


def _take(view: View, use: Resources) -> None:
    lifetime = Lifetime.of(use.settings)
    queued = counting.take(view, use.views_queue, use.table, lifetime, use.clock())
    if not queued:
        telemetry.event(logging.WARNING, "the queue failed, the view is stored directly")
    telemetry.count(views_taken=1, stored_directly=int(not queued))


@blueprint.route("/healthz", methods=["GET"])
def healthz() -> Response:
    """200 while the table answers, 503 while it does not."""
    telemetry.begin("api_handler", blueprint.lambda_context)
    try:
        resources.current().table.get(PROBE)
    except StorageError:
        telemetry.event(logging.ERROR, "the table does not answer")
        return error(503, "unavailable", "the table does not answer")
    return answer({"status": "ok"})
