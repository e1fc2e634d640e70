"""`api_handler`'s routes for the history of a badge, JSON and SVG: neither counts a view."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from chalice.app import Blueprint, Response

from chalicelib import resources, telemetry
from chalicelib.ports import StorageError
from chalicelib.responses import answer, error, svg
from chalicelib.views import ids
from chalicelib.views.options import SHOWN, BadOptionError, Query

if TYPE_CHECKING:
    from chalicelib.views.chart import Look
    from chalicelib.views.history import By, History

# ruff: noqa: PLC0415  what only a history needs, the cold start of a badge does not pay for

blueprint = Blueprint(__name__)

DAYS = 30
"""Of a history without the option."""
WIDTHS, HEIGHTS = range(200, 1201), range(80, 401)
"""Of a chart, in pixels."""


@blueprint.route("/api/v1/views/history", methods=["GET", "HEAD"])
def get_history() -> Response:
    """The views of each of the last `days` days, or with `by=hour` of each of their hours."""
    from chalicelib.views.history import document

    try:
        query = _query()
        badge_id = ids.parse(query.get("id", ()))
        return answer(document(badge_id, _read(badge_id, query, _by(query))))
    except Exception as failure:  # noqa: BLE001  Chalice would answer it in a shape of its own
        return _refused(failure)


@blueprint.route("/api/v1/views/history.svg", methods=["GET", "HEAD"])
def get_history_svg() -> Response:
    """The history by day as a chart; an error is drawn too, with the status of a badge."""
    from chalicelib.views import chart
    from chalicelib.views.history import By

    look = chart.Look()
    try:
        query = _query()
        look = _look(query)
        badge_id = ids.parse(query.get("id", ()))
        return svg(chart.draw(_read(badge_id, query, By.DAY), look))
    except Exception as failure:  # noqa: BLE001  a chart is drawn whatever happens
        return svg(chart.draw_error(_said(failure), look))


def _query() -> Query:
    telemetry.begin("api_handler", blueprint.lambda_context)
    event = blueprint.current_request.to_original_event()
    return event.get("multiValueQueryStringParameters") or {}


def _read(badge_id: str, query: Query, by: By) -> History:
    from chalicelib.views import history

    known = range(1, by.most_days + 1)
    days = _whole(query, "days", known, f"with by={by} " if by is history.By.HOUR else "")
    use = resources.current()
    return history.read(use.table, badge_id, days or DAYS, use.clock(), by)


def _refused(failure: Exception) -> Response:
    match failure:
        case ids.BadIdError():
            return error(400, "bad_id", _said(failure))
        case BadOptionError():
            return error(400, "bad_option", _said(failure))
        case StorageError():
            return error(503, "unavailable", _said(failure))
        case _:
            return error(500, "internal", _said(failure))


def _said(failure: Exception) -> str:
    """What to tell of a failure, and logged where it is none of the caller's."""
    if isinstance(failure, ids.BadIdError | BadOptionError):
        return str(failure)
    telemetry.event(logging.ERROR, "a history failed")
    if isinstance(failure, StorageError):
        return "history unavailable: try again"
    return "out of order: see the log"


def _look(query: Query) -> Look:
    from chalicelib.views import chart, colors

    usual = chart.Look()
    try:
        color = _one(query, "color")
        return chart.Look(
            width=_whole(query, "width", WIDTHS) or usual.width,
            height=_whole(query, "height", HEIGHTS) or usual.height,
            color=colors.parse(color) if color else usual.color,
        )
    except colors.BadColorError as wrong:
        raise BadOptionError(f"color: {wrong}") from None


def _by(query: Query) -> By:
    from chalicelib.views.history import By

    given = _one(query, "by")
    if given in set(By):
        return By(given)
    if given:
        raise BadOptionError(f"by: give day or hour, not {given[:SHOWN]!r}")
    return By.DAY


def _whole(query: Query, name: str, known: range, where: str = "") -> int | None:
    """A whole number above 0; None where it is not given."""
    given = _one(query, name)
    if not given:
        return None
    if re.fullmatch("[0-9]{1,4}", given) and int(given) in known:
        return int(given)
    raise BadOptionError(
        f"{name}: {where}give a whole number from {known[0]} to {known[-1]}, not {given[:SHOWN]!r}"
    )


def _one(query: Query, name: str) -> str:
    """An option is given once; empty is as good as not."""
    values = query.get(name, ())
    if len(values) > 1:
        raise BadOptionError(f"{name}: give one, not {len(values)}")
    return values[0] if values else ""
