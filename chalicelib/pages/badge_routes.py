"""The routes that take a view and show the count, as a badge or a number, and of the health."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Protocol

from chalicelib import telemetry
from chalicelib.badges.badge import Badge, explain
from chalicelib.badges.options import PIXEL, STYLES, Look, flag
from chalicelib.badges.responses import IMAGE, badge_route, respond
from chalicelib.concurrency import MapParallel
from chalicelib.counting import badge_count, ids
from chalicelib.counting.resources import Counting
from chalicelib.counting.view import View, ViewQueue
from chalicelib.counting.windows import Windows
from chalicelib.history import periods
from chalicelib.history.periods import BadgeNumbers, Period, PeriodOptions
from chalicelib.http import guards, responses
from chalicelib.http.fields import Field, check_empty, enum, integer
from chalicelib.http.messages import Request, Response
from chalicelib.http.query import among, whole_number
from chalicelib.http.routing import ANY_OPTIONS, Route
from chalicelib.lazy import lazy
from chalicelib.limits import Action
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Key

if TYPE_CHECKING:
    from chalicelib.badges import spark
else:
    spark = lazy("chalicelib.badges.spark")

LABEL = "views"
COLOR = "blue"
PROBE = Key("HEALTH", "HEALTH")
"""An item that never exists: reading it shows that the table answers."""
NOT_COUNTED = "internal error, view not counted"
VIEW_TAKEN = "count unavailable, view taken"


class NumberOptions(PeriodOptions, ids.IdOption):
    """The options of a badge's number."""

    @property
    def period(self) -> Period:
        return Period(self.show, self.zone)


class BadgeOptions(Look, NumberOptions):
    """The options of a badge of views."""

    peek = Field(
        flag, {"type": "integer", "enum": [0, 1], "default": 0}, "1 counts no view.", default=False
    )


class ImageOptions(BadgeOptions):
    """The options of a badge of views as an image."""

    style = Field(
        partial(among, (*STYLES, PIXEL)),
        enum((*STYLES, PIXEL)),
        f"{STYLES[0]} if none is given. A {PIXEL} is one transparent pixel, and counts too; an"
        " error is drawn.",
        default="",
    )
    days = Field(
        lambda given: whole_number(spark.DAYS, given),
        lambda: integer(spark.DAYS[0], spark.DAYS[-1]),
        "The number of days, up to today, of which the message has a line. Left out, with the"
        " reason in `<desc>`, if the badge would have more than 4,096 bytes.",
        name="spark",
        default=0,
        example=30,
    )

    @property
    def period(self) -> Period:
        return Period(self.show, self.zone, self.days)


class ViewResources(Resources, Protocol):
    """The resources that take views. `map_parallel` works on the independent parts of a batch."""

    @property
    def map_parallel(self) -> MapParallel: ...
    @property
    def views_queue(self) -> ViewQueue: ...


def get_views(request: Request, resources: ViewResources) -> Response:
    """Count a view and return the count before it; `peek=1` and HEAD count nothing."""
    kind = ImageOptions if request.path.endswith(IMAGE) else BadgeOptions
    asked = ids.read(kind, request.query, resources.settings)
    is_visit = request.method == "GET" and not asked.peek
    views = _take_view(asked, request, resources) if is_visit else _peek(asked, resources)
    if views is None:
        missing = VIEW_TAKEN if is_visit else "count unavailable: try again"
        return respond(Badge.error(LABEL, missing), request)
    label, message = LABEL + asked.show.suffix, periods.write(views, asked)
    return respond(Badge.of(label, message, COLOR, asked, views.days), request)


def count_view(request: Request, resources: ViewResources) -> Response:
    """Count a view and return the count before it as a number, to a script of any site."""
    check_empty(request.body)
    options = ids.read(NumberOptions, request.query, resources.settings)
    views = _take_view(options, request, resources)
    count, message = None, VIEW_TAKEN
    if views is not None:
        count, message = periods.number(views, options), periods.write(views, options)
    return responses.json({"id": options.badge_id, "count": count, "message": message})


def get_health(_: Request, resources: Resources) -> Response:
    """Return 200 while the table answers, 503 while it does not."""
    resources.table.get(PROBE)
    return responses.json({"status": "ok"})


def _peek(asked: NumberOptions, resources: ViewResources) -> BadgeNumbers | None:
    """Read the numbers of a badge; return None if that fails."""
    try:
        return periods.read(resources.table, asked.badge_id, asked.period, resources.view_clock())
    except StorageError:
        telemetry.event(logging.ERROR, "count_not_read", badge=asked.badge_id)
        return None


def _take_view(
    asked: NumberOptions, request: Request, resources: ViewResources
) -> BadgeNumbers | None:
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


def draw_failure(failure: Exception) -> Badge:
    """Return the badge of a failure."""
    return Badge.error(LABEL, explain(failure, unavailable=NOT_COUNTED, internal=NOT_COUNTED))


def _take(view: View, resources: ViewResources, windows: Windows) -> None:
    def counting() -> Counting:
        return Counting(resources.table, windows, resources.view_clock, resources.map_parallel)

    badge_count.take(view, resources.views_queue, counting)


PATH = "/api/v1/views"
_badge = badge_route(get_views, draw_failure)
ROUTES = (
    _badge(path=PATH, options=BadgeOptions),
    Route("POST", PATH, count_view, from_any_site=True, options=NumberOptions),
    _badge(path="/v1/api/views", options=BadgeOptions, is_deprecated=True),
    _badge(path=f"{PATH}{IMAGE}", options=ImageOptions),
)
HEALTH_ROUTES = (Route("GET", "/healthz", get_health, from_any_site=True, options=ANY_OPTIONS),)
