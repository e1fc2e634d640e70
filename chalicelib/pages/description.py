"""The description of the routes for views: the badge, its history and its page."""

from __future__ import annotations

from chalicelib.badges.description import IMAGE, badge_operations
from chalicelib.badges.options import Badge
from chalicelib.counting.ids import ID, BannedError, NotCountedError
from chalicelib.history import github
from chalicelib.history.history import MAX_BUCKETS, MAX_DAYS_BY_HOUR, Interval
from chalicelib.history.periods import LABEL
from chalicelib.history.routes import A_DAY, MAX_LIMIT, NotPublicError, OneMachineOnlyError
from chalicelib.http import guards
from chalicelib.http.fields import (
    Component,
    Json,
    array,
    closed,
    integer,
    nullable,
    record,
    schema,
    string,
)
from chalicelib.http.openapi import HTML, Operation, Section, success
from chalicelib.pages.badge_routes import MAX_COUNTED, MAX_READ

# ---- the badge

COUNTED = record(
    "Counted",
    {
        "id": ID,
        "count": nullable(
            integer(),
            "The number that a badge shows, without this view. Null if it can't be read, and the"
            " view counts nevertheless; or if nobody has told it, if it is GitHub's.",
        ),
        "message": string(description="The text that a badge shows."),
    },
)
COUNTED_VIEWS = record(
    "CountedViews",
    {"views": array(COUNTED, MAX_COUNTED, minItems=2, description="In the order of the ids.")},
)
COUNTS = record(
    "Counts", {"counts": array(COUNTED, MAX_READ, minItems=1, description="In that order too.")}
)
COUNTED_EXAMPLES = [
    {"id": "owner/name", "count": 1241, "message": "1241"},
    {"id": "owner/other", "count": 17, "message": "17"},
]
VIEWS = (
    "A visitor sees the count before their own view, so a new badge shows 0. The first view creates"
    " the badge. Requests of GitHub's image proxy count too."
)
BADGE = Section(
    "badge",
    "Show and count views. An option is given once. An empty one counts as not given, except"
    " `label`.",
    {
        **badge_operations("getViews", VIEWS, Badge(LABEL, "1241"), "give an id: ?id=owner/name"),
        "countView": Operation(
            "For scripts of any site, with `fetch` or `navigator.sendBeacon`. Each request counts"
            " one view of each id, unless its badge is frozen; a request that is refused counts"
            " none. It has no body. One id has a response of its own. On one machine, the views of"
            " a request are stored together, or none is.",
            {
                200: success(
                    {"oneOf": [COUNTED_VIEWS, COUNTED]}, example={"views": COUNTED_EXAMPLES}
                )
            },
            [NotCountedError, BannedError, guards.NoRoomError, guards.NoNewBadgesError],
        ),
        "getCounts": Operation(
            "For lists of pages. An id without views has the count 0.",
            {200: success(COUNTS, example={"counts": COUNTED_EXAMPLES})},
            [NotCountedError, BannedError],
        ),
    },
)

# ---- the history


MAX_GITHUB_DAYS = MAX_BUCKETS * 31
GITHUB_DAY = record(
    "GitHubDay",
    {"day": A_DAY, **dict.fromkeys(github.NUMBERS, nullable(integer()))},
    description="A day of GitHub's numbers of the repository, as its owner told them. What nobody"
    " has told is null, and days of which nothing was told are not listed. `visitors` and"
    " `cloners` are unique on that day, so their sums mean nothing.",
)


def history(by: Interval, beginning: Json, most_days: int) -> Component:
    """Return the schema of a history by a unit."""
    date = string(format="date")
    bucket = closed({by.value: beginning, "views": integer()})
    return record(
        f"HistoryBy{by.title()}",
        {
            "id": ID,
            "by": {"const": by},
            "days": integer(1, most_days),
            "since": nullable(date, "The first day that has a view; null if none has."),
            "next": nullable(date, "The `from` of the next page; null on the last one."),
            "total": integer(description="The sum over `views`."),
            "views": array(bucket, by.most, minItems=1),
            "github": array(GITHUB_DAY, MAX_GITHUB_DAYS),
        },
    )


HISTORIES = (
    history(Interval.HOUR, string("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00Z"), MAX_DAYS_BY_HOUR),
    history(Interval.DAY, A_DAY, MAX_BUCKETS),
    history(Interval.WEEK, A_DAY, MAX_BUCKETS * 7),
    history(Interval.MONTH, string("[0-9]{4}-[0-9]{2}"), MAX_BUCKETS * 31),
)
HISTORY_SCHEMA = schema("History", {"oneOf": HISTORIES})
HISTORY_EXAMPLE = {
    "id": "owner/name",
    "by": "day",
    "days": 3,
    "since": "2026-11-19",
    "next": None,
    "total": 41,
    "views": [
        {"day": "2026-11-19", "views": 7},
        {"day": "2026-11-20", "views": 22},
        {"day": "2026-11-21", "views": 12},
    ],
    "github": [
        {"day": "2026-11-20", "views": 31, "visitors": 9, "clones": 4, "cloners": None},
    ],
}
TOP = record(
    "Top",
    {
        "top": array(
            closed(
                {
                    "id": ID,
                    "count": integer(description="The number that its badge shows."),
                    "views": integer(1, description="Its views in these days."),
                }
            ),
            MAX_LIMIT,
            description="The most viewed one first; ids with the same views are in their order.",
        )
    },
)
TOP_EXAMPLE = [
    {"id": "me.example/first/", "count": 1241, "views": 310},
    {"id": "me.example/second/", "count": 96, "views": 42},
]
HISTORY = Section(
    "history",
    "Views by hour, day, week and month, and the most viewed ids. These routes count no view.",
    {
        "getHistory": Operation(
            f"Returns every bucket without gaps, at most {MAX_BUCKETS}, or {Interval.HOUR.most}"
            " hours. A longer history has several pages: send the same request with `from` set to"
            " `next`, and without `days`.",
            {200: success(HISTORY_SCHEMA, example=HISTORY_EXAMPLE)},
            [NotCountedError, BannedError],
        ),
        "getHistorySvg": Operation(
            f"A chart has at most {MAX_BUCKETS} days, weeks or months, or {Interval.HOUR.most}"
            " hours.",
            {200: IMAGE},
        ),
        "getTop": Operation(
            "For lists of the most read pages, on one machine alone. A renamed badge has its latest"
            " name. At most 10,000 ids may begin with the prefix, and ids times days may be a"
            " million. The numbers are those of now; of many ids, a new one may be missing for some"
            " seconds.",
            {200: success(TOP, example={"top": TOP_EXAMPLE})},
            [NotPublicError, OneMachineOnlyError],
        ),
    },
)

# ---- the page

BADGE_PAGE = Section(
    "page",
    "A page of each badge, to which its image can link. These routes count no view.",
    {
        "getBadgePage": Operation(
            "The page has no script, and asks search engines not to list it. An id without views"
            " has a page too. Its lines have URLs by `PUBLIC_URL`, or by the headers `Host` and"
            " `X-Forwarded-Proto`.",
            {200: HTML},
            [NotCountedError, BannedError],
        ),
        "getBadgePicture": Operation(
            "The page names it as `og:image`. With `chalice deploy`, a REST API returns it only if"
            " `Accept` begins with `image/png`.",
            {200: {"description": "A picture", "content": {"image/png": {}}}},
            [NotCountedError, BannedError],
        ),
    },
)

SECTIONS = (BADGE, HISTORY, BADGE_PAGE)
