"""The routes that take a view and show the count, as a badge or a number."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cached_property, partial
from typing import Protocol

from chalicelib import telemetry
from chalicelib.badges.options import PIXEL, SPARK_DAYS, STYLES, Badge, CountFormat, Look, flag
from chalicelib.badges.responses import IMAGE, badge_route, explain, respond
from chalicelib.concurrency import MapParallel
from chalicelib.counting import badge_count, ids
from chalicelib.counting.view import Counting, ViewQueue, Windows
from chalicelib.history import periods
from chalicelib.history.periods import LABEL, BadgeNumbers, Period, PeriodOptions
from chalicelib.http import guards, responses
from chalicelib.http.errors import BadRequestError
from chalicelib.http.fields import Field, check_empty, enum, integer
from chalicelib.http.messages import Request, Response
from chalicelib.http.query import among, whole_number
from chalicelib.http.routing import Route, public_read
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError

COLOR = "blue"
NOT_COUNTED = "internal error, view not counted"
MAX_COUNTED = 10
"""The ids of a request that counts views: the messages that SQS takes in one call."""
MAX_READ = 100
"""The ids of a request that reads counts."""
VIEW_TAKEN = "count unavailable, view taken"
UNAVAILABLE = "count unavailable: try again"


class CountOptions(PeriodOptions, CountFormat, ids.IdsOptions):
    """The options of a request that counts a view of each of its badges."""

    badge_ids = ids.several(MAX_COUNTED, uniqueItems=True)


class CountsOptions(PeriodOptions, ids.IdsOptions):
    """The options of a request that reads the counts of badges."""

    badge_ids = ids.several(MAX_READ)


class BadgeOptions(Look, PeriodOptions, CountFormat, ids.IdOption):
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
        partial(whole_number, SPARK_DAYS),
        integer(SPARK_DAYS[0], SPARK_DAYS[-1]),
        "The number of days, up to today, of which the message has a line. Left out, with the"
        " reason in `<desc>`, if the badge would have more than 4,096 bytes.",
        name="spark",
        default=0,
        example=30,
    )

    @cached_property
    def period(self) -> Period:
        if self.days and self.show.is_githubs:
            raise BadRequestError(f"spark: leave it out with show={self.show}: it shows views")
        return Period(self.show, self.zone, self.days)


class ViewResources(Resources, Protocol):
    """The resources that take views.

    `map_parallel` works on the independent parts of a batch, `map_reads` on those that only read.
    """

    @property
    def map_parallel(self) -> MapParallel: ...
    @property
    def map_reads(self) -> MapParallel: ...
    @property
    def views_queue(self) -> ViewQueue: ...


def get_views(request: Request, resources: ViewResources) -> Response:
    """Count a view and return the count before it; `peek=1` and HEAD count nothing."""
    kind = ImageOptions if request.path.endswith(IMAGE) else BadgeOptions
    asked = ids.read(kind, request.query, resources)
    is_visit = request.method == "GET" and not asked.peek
    views = _read(asked.period, resources, asked.badge_id)
    if is_visit:
        _take({asked.badge_id: views}, request, resources)
    if views is None:
        missing = VIEW_TAKEN if is_visit else UNAVAILABLE
        return respond(Badge.error(LABEL, missing), request)
    badge = asked.badge(asked.show.label, periods.write(views, asked), COLOR, views.days)
    age = views.write_age(resources.view_clock) if badge.label else ""
    return respond(badge._replace(label=badge.label + age) if age else badge, request)


def count_view(request: Request, resources: ViewResources) -> Response:
    """Count a view of each badge, and return the counts before it to a script of any site."""
    check_empty(request.body)
    options = ids.read(CountOptions, request.query, resources)
    if len(set(options.badge_ids)) < len(options.badge_ids):
        raise BadRequestError("id: one is given twice: give each once")
    found = _read_all(options, resources)
    _take(found, request, resources)
    counted = [_to_json(one, found[one], options, VIEW_TAKEN) for one in found]
    return responses.json(counted[0] if len(counted) == 1 else {"views": counted})


def get_counts(request: Request, resources: ViewResources) -> Response:
    """Return the counts of badges in the order of their ids; this counts no view."""
    options = ids.read(CountsOptions, request.query, resources)
    found = _read_all(options, resources)
    counts = [_to_json(one, found[one], options, UNAVAILABLE) for one in options.badge_ids]
    return responses.json({"counts": counts})


def _to_json(
    badge_id: str, views: BadgeNumbers | None, options: PeriodOptions, missing: str
) -> Mapping[str, object]:
    """Return the number of a badge, or null and the reason if it can't be read."""
    if views is None:
        return {"id": badge_id, "count": None, "message": missing}
    count, message = periods.number(views, options), periods.write(views, options)
    return {"id": badge_id, "count": count, "message": message}


def _read(period: Period, resources: ViewResources, badge_id: str) -> BadgeNumbers | None:
    try:
        return periods.read(resources.table, badge_id, period, resources.view_clock)
    except StorageError:
        telemetry.event(logging.ERROR, "count_not_read", badge=badge_id)
        return None


def _read_all(
    options: CountOptions | CountsOptions, resources: ViewResources
) -> dict[str, BadgeNumbers | None]:
    """Read the numbers of badges, in parallel where that is faster."""
    badge_ids = dict.fromkeys(options.badge_ids)
    read = partial(_read, options.period, resources)
    return dict(zip(badge_ids, resources.map_reads(read, badge_ids), strict=True))


def _take(
    found: Mapping[str, BadgeNumbers | None], request: Request, resources: ViewResources
) -> None:
    """Take a view of each badge that is not frozen, or of none if a limit refuses a new id."""
    windows, now = Windows.of(resources.settings), resources.view_clock()
    views = []
    for badge_id, numbers in found.items():
        if numbers is None:
            views.append(badge_count.view_of_unread(badge_id, now))
        elif not (count := numbers.total).summary.frozen:
            if count.is_new:
                guards.check_new_badge(request, resources)
            views.append(count.view(windows, now, resources.settings.hot_views))

    def counting() -> Counting:
        return Counting(resources.table, windows, resources.view_clock, resources.map_parallel)

    if views:
        badge_count.take(views, resources.views_queue, counting)


def draw_failure(failure: Exception) -> Badge:
    """Return the badge of a failure."""
    return Badge.error(LABEL, explain(failure, NOT_COUNTED))


PATH = "/api/v1/views"
_badge = badge_route(get_views, draw_failure)
ROUTES = (
    _badge(path=PATH, options=BadgeOptions),
    Route("POST", PATH, count_view, from_any_site=True, options=CountOptions),
    public_read(f"{PATH}/counts", get_counts, options=CountsOptions),
    _badge(path="/v1/api/views", options=BadgeOptions, is_deprecated=True),
    _badge(path=f"{PATH}{IMAGE}", options=ImageOptions),
)
