"""The routes of a badge's history, as JSON and as a chart, and of the most viewed ids.

None counts a view. One machine reads the most viewed ids from its file. On AWS, each request would
read every badge of the prefix.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

from chalicelib.badges.options import A_COLOR, color_option
from chalicelib.badges.responses import IMAGE, explain, image
from chalicelib.counting import ids
from chalicelib.http import responses
from chalicelib.http.errors import BadRequestError, ClientError
from chalicelib.http.fields import Field, Options, choice, enum, integer, number, string
from chalicelib.http.messages import Request, Response
from chalicelib.http.query import among, shown, whole_number
from chalicelib.http.routing import public_read
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.history import chart, history
else:
    chart = lazy("chalicelib.history.chart")
    history = lazy("chalicelib.history.history")

MAX_DAYS = 9_999
MAX_LIMIT = 100
MAX_TOP_DAYS = 366
"""The days and the ids of a list of the most viewed ones."""
LOG, VISITORS = "log", "visitors"
LEAST_HEIGHT = 100
"""The height of a chart that has a legend."""
IN_PIXELS = "Of the chart, in pixels."
FIRST = "first"
"""The value of `from` for the first day with a view."""
DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
A_DAY = string(format="date")
EARLIEST = date(1970, 1, 1)


def _date(given: str, other: str = "") -> date:
    """Return a day; `other` says what else the option takes. Raises `ValueError`."""
    with suppress(ValueError):
        if DATE.fullmatch(given) and (day := date.fromisoformat(given)) >= EARLIEST:
            return day
    raise ValueError(f"give {other}a day like 2026-11-21, from {EARLIEST} on, not {shown(given)}")


class HistoryOptions(ids.IdOption):
    """The options of a history."""

    days = Field[int | None](
        partial(whole_number, range(1, MAX_DAYS + 1)),
        lambda: integer(1, MAX_DAYS, default=history.DAYS),
        "The number of days, up to `to`; with `by=hour` at most 31. Not with `from`.",
        default=None,
    )
    first = Field[date | str | None](
        lambda given: FIRST if given == FIRST else _date(given, "first or "),
        {"anyOf": [A_DAY, {"const": FIRST}]},
        f"The first day, {EARLIEST} or later; `{FIRST}` is the first day that has a view.",
        name="from",
        default=None,
        example="2026-01-01",
    )
    last = Field[date | None](
        _date,
        A_DAY,
        "The last day, which is included; a later one than the present day counts as that.",
        name="to",
        default=None,
        example="2026-11-21",
    )
    by = Field["history.Interval | None"](
        lambda given: history.Interval(among([*history.Interval], given)),
        lambda: enum(history.Interval),
        "The length of a bucket, in UTC; a week begins on Monday. If none is given, the shortest of"
        " day, week and month with at most 400 buckets. The first and the last bucket are whole,"
        " up to the present time.",
        default=None,
    )

    def span(self) -> history.Span:
        """Return the time that is asked for. Raises `BadRequestError`."""
        most = history.MAX_DAYS_BY_HOUR
        if self.by is history.Interval.HOUR and self.days and self.days > most:
            raise BadRequestError(
                f"days: with by=hour give a whole number from 1 to {most}, not '{self.days}'"
            )
        if self.days and self.first:
            raise BadRequestError("days: give days or from, not both")
        is_whole = self.first == FIRST
        first = self.first if isinstance(self.first, date) else None
        days = self.days or history.DAYS
        return history.Span(days, first, self.last, is_whole=is_whole, by=self.by)


class LookOptions(Options):
    """The options of a chart's look."""

    color = color_option(
        f"Of the bars, blue if none is given. {A_COLOR} One that could not be seen is made darker"
        " or lighter.",
        "green",
    )
    theme = choice(
        lambda: chart.THEMES,
        "The page that the colours contrast with. `auto` follows the reader's system, which"
        " GitHub's own switch does not change.",
        "auto",
    )
    scale = choice(
        lambda: ("linear", LOG),
        "`log` shows the logarithm of 1 + views, for one day with far more views than the others.",
        "linear",
    )
    overlay = Field(
        partial(among, (VISITORS,)),
        enum((VISITORS,)),
        "`visitors` draws GitHub's unique visitors of each day as a line over the bars of days.",
        name="with",
        default="",
    )
    width = number(range(200, 1201), IN_PIXELS, 600)
    height = number(range(80, 401), IN_PIXELS, 150)

    @property
    def look(self) -> chart.Look:
        if self.overlay and self.height < LEAST_HEIGHT:
            raise BadRequestError(f"height: with=visitors needs at least {LEAST_HEIGHT}")
        return chart.Look(
            *(self.width, self.height, self.color, self.theme),
            is_log=self.scale == LOG,
            has_visitors=bool(self.overlay),
        )


class ChartOptions(LookOptions, HistoryOptions):
    """The options of a chart."""


def get_history(request: Request, resources: Resources) -> Response:
    """Return the views by hour, day, week or month; `next` is the `from` of the next page."""
    asked = ids.read(HistoryOptions, request.query, resources)
    found = _read(asked, resources, with_github=True)
    return responses.json(history.to_json(asked.badge_id, found))


def get_history_svg(request: Request, resources: Resources) -> Response:
    """Draw the history; an error is drawn too, with the status of a badge."""
    asked = ids.read(ChartOptions, request.query, resources)
    found = _read(asked, resources, with_github=bool(asked.overlay))
    if asked.overlay and found.by is not history.Interval.DAY:
        raise BadRequestError(f"with=visitors: give days, not by={found.by}: GitHub counts by day")
    if found.following:
        raise BadRequestError(
            f"by={found.by}: a chart has at most {found.by.most} {found.by}s: give a longer unit,"
            " or fewer days"
        )
    return image(chart.draw(found, asked.look))


def _draw_failure(failure: Exception, request: Request) -> Response:
    look = chart.Look()
    with suppress(BadRequestError):
        look = LookOptions(request.query).look
    return image(chart.draw_error(explain(failure), look))


def _read(asked: HistoryOptions, resources: Resources, *, with_github: bool) -> history.History:
    table, now = resources.table, resources.view_clock()
    return history.read(table, asked.badge_id, asked.span(), now, with_github=with_github)


class NotPublicError(ClientError):
    """The operator has not made the most viewed ids of this prefix public (`PUBLIC_TOP`)."""

    status = 403
    code = "not_public"


class OneMachineOnlyError(ClientError):
    """The server is on AWS, where each request would read every badge of the prefix."""

    status = 404
    code = "one_machine_only"


class TopQuery(NamedTuple):
    """A request for the `limit` most viewed ids of the latest `days` days, in UTC."""

    prefix: str
    days: int
    limit: int


@dataclass(frozen=True, slots=True)
class TopBadge:
    """A badge by its present name: the number that it shows, and its views in the days."""

    badge_id: str
    count: int
    views: int


class Top(Protocol):
    """The most viewed ids, the first ones first."""

    def is_public(self, prefix: str) -> bool:
        """Return whether everybody may read the most viewed ids of a prefix."""

    def read(self, query: TopQuery, now: Seconds) -> Sequence[TopBadge]:
        """Return badges with views. Raises `BadRequestError` and `StorageError`."""


class TopResources(Resources, Protocol):
    """The resources of the most viewed ids; on AWS, there is no `top`."""

    @property
    def top(self) -> Top | None: ...


def _prefix(given: str | None) -> str:
    if given is None:
        raise ValueError("give the beginning of ids, such as me.example/")
    return ids.normalise(given)


class TopOptions(Options):
    """The options of the most viewed ids."""

    prefix = Field(
        _prefix,
        string(ids.CHARACTERS, minLength=1, maxLength=ids.MAX_CHARACTERS),
        "The beginning of the ids, which `PUBLIC_TOP` must allow.",
        example="me.example/",
    )
    days = number(range(1, MAX_TOP_DAYS + 1), "The number of days (UTC), up to today.", 30)
    limit = number(range(1, MAX_LIMIT + 1), "The most ids that are returned.", 10)


def get_top(request: Request, resources: TopResources) -> Response:
    """Return the most viewed ids that begin with a prefix; this counts no view."""
    asked = TopOptions(request.query)
    top = resources.top
    if top is None:
        raise OneMachineOnlyError(
            "the most viewed ids are there on one machine alone: on AWS, each request would read"
            " every badge of the prefix"
        )
    if not top.is_public(asked.prefix):
        raise NotPublicError(
            "the most viewed ids of this prefix are not public here: the operator must add it to"
            " PUBLIC_TOP"
        )
    query = TopQuery(asked.prefix, asked.days, asked.limit)
    found = top.read(query, resources.view_clock())
    listed = [{"id": one.badge_id, "count": one.count, "views": one.views} for one in found]
    return responses.json({"top": listed})


PATH, TOP = "/api/v1/views/history", "/api/v1/views/top"
ROUTES = (
    public_read(PATH, get_history, options=HistoryOptions),
    public_read(f"{PATH}{IMAGE}", get_history_svg, on_failure=_draw_failure, options=ChartOptions),
    public_read(TOP, get_top, options=TopOptions),
)
