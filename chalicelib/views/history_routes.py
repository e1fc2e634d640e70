"""`api_handler`'s routes for the history of a badge, JSON and SVG: neither counts a view."""

from __future__ import annotations

import logging
import re
from functools import partial
from typing import TYPE_CHECKING

from chalice.app import Blueprint, Response

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.badges.options import BadOptionError, Query, one, query_of, shown
from chalicelib.http.responses import ANY_TYPE, answer, error, svg, unavailable
from chalicelib.storage.errors import StorageError
from chalicelib.views import ids

if TYPE_CHECKING:
    from chalicelib.views.chart import Look
    from chalicelib.views.history import By, History

# ruff: noqa: PLC0415  what only a history needs, the cold start of a badge does not pay for

blueprint = Blueprint(__name__)

DAYS = 30
"""Of a history without the option."""
WIDTHS, HEIGHTS = range(200, 1201), range(80, 401)
"""Of a chart, in pixels."""


@blueprint.route("/api/v1/views/history", methods=["GET", "HEAD"], content_types=ANY_TYPE)
def get_history() -> Response:
    """The views of each of the last `days` days, or with `by=hour` of each of their hours."""
    from chalicelib.views.history import By, document

    try:
        query = _query()
        badge_id = ids.parse(query.get("id", ()))
        by = one(query, "by", _by, default=By.DAY)
        return answer(document(badge_id, _read(badge_id, query, by)))
    except Exception as failure:  # noqa: BLE001  Chalice would answer it in a shape of its own
        return _refused(failure)


@blueprint.route("/api/v1/views/history.svg", methods=["GET", "HEAD"], content_types=ANY_TYPE)
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
    return query_of(blueprint.current_request)


def _read(badge_id: str, query: Query, by: By) -> History:
    from chalicelib.views import history

    known = range(1, by.most_days + 1)
    where = f"with by={by} " if by is history.By.HOUR else ""
    days = one(query, "days", partial(_whole, known, where=where), default=DAYS)
    use = resources.current()
    return history.read(use.table, badge_id, days, use.clock(), by)


def _refused(failure: Exception) -> Response:
    match failure:
        case ids.BadIdError():
            return error(400, "bad_id", _said(failure))
        case BadOptionError():
            return error(400, "bad_option", _said(failure))
        case StorageError():
            return unavailable(_said(failure))
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
    from chalicelib.badges import colors
    from chalicelib.views import chart

    usual = chart.Look()
    return chart.Look(
        width=one(query, "width", partial(_whole, WIDTHS), default=usual.width),
        height=one(query, "height", partial(_whole, HEIGHTS), default=usual.height),
        color=one(query, "color", colors.parse, default=usual.color),
    )


def _by(given: str) -> By:
    from chalicelib.views.history import By

    if given not in set(By):
        raise ValueError(f"give day or hour, not {shown(given)}")
    return By(given)


def _whole(known: range, given: str, where: str = "") -> int:
    """A whole number from 0."""
    if re.fullmatch("[0-9]{1,4}", given) and int(given) in known:
        return int(given)
    raise ValueError(
        f"{where}give a whole number from {known[0]} to {known[-1]}, not {shown(given)}"
    )
