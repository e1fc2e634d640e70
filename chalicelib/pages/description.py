"""The description of the routes for views: the badge, its history and its owner."""

from __future__ import annotations

import re
from collections.abc import Sequence

from chalicelib.badges import options, spark
from chalicelib.badges.badge import Badge
from chalicelib.badges.description import (
    A_COLOR,
    BASE,
    COLOR,
    HEADERS,
    always_drawn,
    badge_operations,
    json_badge,
    options_of,
)
from chalicelib.counting import ids, milestones
from chalicelib.history import buckets, chart, periods
from chalicelib.history import routes as history_routes
from chalicelib.history.buckets import MAX_BUCKETS, MAX_DAYS_BY_HOUR, By
from chalicelib.history.chart import Look
from chalicelib.history.periods import Show
from chalicelib.http import guards
from chalicelib.http.description import MOMENT
from chalicelib.http.openapi import (
    Component,
    Json,
    Operation,
    Refusal,
    Section,
    array,
    enum,
    fields,
    integer,
    json_content,
    link,
    path_parameter,
    query_parameter,
    record,
    schema,
    string,
    success,
)
from chalicelib.outgoing import urls
from chalicelib.owners import claiming, errors, finding, places, proving, requests
from chalicelib.pages import badge_routes as routes
from chalicelib.pages import routes as page_routes
from chalicelib.settings import DIGEST

ID_CHARACTERS = re.compile(
    r"[^\u0000-\u001f\u007f-\u009f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    r"\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]*"
)
"""No control and no format characters (Unicode category Cf).

Some format characters above U+FFFF are missing, because no escape is the same in ECMAScript and in
Python.
"""
ID = schema("Id", string(ID_CHARACTERS, minLength=1, maxLength=ids.MAX_CHARACTERS))
ID_PARAMETER = query_parameter(
    "id",
    ID,
    f"The badge: any text of at most {ids.MAX_BYTES} bytes of UTF-8 without control characters and"
    " format characters (Unicode category Cf: bidirectional controls, zero-width characters),"
    " percent-encoded. Two spellings of one Unicode text are one id (NFC). Letters of different"
    " case are different ids. An operator may list the ids that are counted (`IDS`); a badge of"
    " another id is an error.",
    required=True,
    allowEmptyValue=False,
    example="owner/name",
)

# ---- the badge

DEFAULTS = options.Options()
PEEK = {"type": "integer", "enum": [0, 1], "default": 0}
FORMAT = enum(options.FORMATS, default=DEFAULTS.format)
OPTIONS = (
    ID_PARAMETER,
    query_parameter("peek", PEEK, "1 counts no view."),
    *options_of(routes.LABEL, "Label"),
    query_parameter("format", FORMAT, "Of the count: 1234, 1,234 or 1.2k."),
    query_parameter(
        "base", BASE.reference(default=DEFAULTS.base), "Added to the shown count.", example=1200
    ),
    query_parameter(
        "show",
        enum(Show, default=Show.TOTAL),
        "All views, or those since the start of this day, week (from Monday), month or year, which"
        " the label names if none is given. A base counts only as a part of all views.",
    ),
    query_parameter(
        "tz",
        string(periods.OFFSET, default="0"),
        "The hours from UTC at which a day begins, for `show` and `spark`.",
        example="-05:00",
    ),
)
SPARK = query_parameter(
    "spark",
    integer(spark.DAYS[0], spark.DAYS[-1]),
    "The number of days, up to today, of which the message has a line. Left out, with the reason in"
    " `<desc>`, if the badge would have more than 4,096 bytes.",
    example=30,
)
IMAGE_STYLE = query_parameter(
    "style",
    enum(routes.IMAGE_STYLES),
    f"{options.STYLES[0]} if none is given. A {options.PIXEL} is one transparent pixel, and counts"
    " too; an error is drawn.",
    component="ImageStyle",
)
COUNTED = record(
    "Counted",
    {
        "id": ID,
        "count": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "The number that a badge shows, which this view is not in. It is null if"
            " the count can't be read; the view counts nevertheless.",
        },
        "message": string(description="The text that a badge shows."),
    },
)
COUNTED_EXAMPLE = {"id": "owner/name", "count": 1241, "message": "1241"}
JSON_BADGE = json_badge("Badge", Badge(routes.LABEL, "1241"), "give an id: ?id=owner/name")
NUMBER_OPTIONS = tuple(one for one in OPTIONS if one.content["name"] in routes.NUMBER_OPTIONS)
BADGE = Section(
    "badge",
    "Show and count views. An option is given once. An empty one counts as not given, except"
    " `label`.",
    {
        **badge_operations(
            "/api/v1/views",
            always_drawn(
                "getViews",
                "A visitor sees the count before their own view, so a new badge shows 0. The first"
                " view creates the badge. Requests of GitHub's image proxy count too.",
                OPTIONS,
                JSON_BADGE,
            ),
            (IMAGE_STYLE, SPARK),
        ),
        "POST /api/v1/views": Operation(
            "countView",
            "For scripts of any site, with `fetch` or `navigator.sendBeacon`. Each request counts"
            " one view, unless the badge is frozen. It has no body. To read without counting, send"
            " GET with `peek=1`.",
            NUMBER_OPTIONS,
            responses={200: success(COUNTED, example=COUNTED_EXAMPLE)},
            refusals=(ids.NotCountedError, guards.NoRoomError),
        ),
        "GET /v1/api/views": always_drawn(
            "getViewsByOldPath", "", OPTIONS, JSON_BADGE, is_deprecated=True
        ),
    },
)

# ---- the history


def history(by: By, beginning: Json, most_days: int) -> Component:
    """Return the schema of a history by a unit."""
    date = {"type": ["string", "null"], "format": "date"}
    bucket = fields({by.value: beginning, "views": integer()})
    return record(
        f"HistoryBy{by.title()}",
        {
            "id": ID,
            "by": {"const": by},
            "days": integer(1, most_days),
            "since": date | {"description": "The first day that has a view; null if none has."},
            "next": date | {"description": "The `from` of the next page; null on the last one."},
            "total": integer(description="The sum over `views`."),
            "views": array(bucket, by.most, minItems=1),
        },
    )


HOUR = string(re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:00Z"))
DATE = string(format="date")
MONTH = string(re.compile("[0-9]{4}-[0-9]{2}"))
HISTORIES = (
    history(By.HOUR, HOUR, MAX_DAYS_BY_HOUR),
    history(By.DAY, DATE, MAX_BUCKETS),
    history(By.WEEK, DATE, MAX_BUCKETS * 7),
    history(By.MONTH, MONTH, MAX_BUCKETS * 31),
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
}
DAYS = query_parameter(
    "days",
    integer(1, history_routes.MAX_DAYS, default=buckets.DAYS),
    f"The number of days, up to `to`; with `by=hour` at most {MAX_DAYS_BY_HOUR}. Not with `from`.",
    component="HistoryDays",
)
BY = query_parameter(
    "by",
    enum(By),
    "The length of a bucket, in UTC; a week begins on Monday. If none is given, the shortest of"
    f" day, week and month with at most {MAX_BUCKETS} buckets. The first and the last bucket are"
    " whole, up to the present time.",
)
FROM = query_parameter(
    "from",
    {"anyOf": [DATE, {"const": history_routes.FIRST}]},
    f"The first day, {history_routes.EARLIEST} or later; `{history_routes.FIRST}` is the first day"
    " that has a view.",
    component="HistoryFrom",
    example="2026-01-01",
)
TO = query_parameter(
    "to",
    DATE,
    "The last day, which is included; a later one than the present day counts as that.",
    component="HistoryTo",
    example="2026-11-21",
)
CHART_COLOR = query_parameter(
    "color",
    COLOR,
    f"Of the bars, blue if none is given. {A_COLOR} One that could not be seen is made darker or"
    " lighter.",
    component="ChartColor",
    example="green",
)
THEME = query_parameter(
    "theme",
    enum(chart.THEMES, default=Look().theme),
    "The page that the colours contrast with. `auto` follows the reader's system, which GitHub's"
    " own switch does not change.",
)
SCALE = query_parameter(
    "scale",
    enum(chart.SCALES, default=Look().scale),
    "`log` shows the logarithm of 1 + views, for one day with far more views than the others.",
)


def pixels(name: str, known: range, default: int) -> Component:
    """Return a parameter for a length of the chart."""
    length = integer(known[0], known[-1], default=default)
    return query_parameter(name, length, "Of the chart, in pixels.")


WIDTH = pixels("width", history_routes.WIDTHS, Look().width)
HEIGHT = pixels("height", history_routes.HEIGHTS, Look().height)
SPAN = (ID_PARAMETER, DAYS, FROM, TO, BY)
HISTORY = Section(
    "history",
    "Views by hour, day, week and month. These routes count no view.",
    {
        "GET /api/v1/views/history": Operation(
            "getHistory",
            f"Returns every bucket without gaps, at most {MAX_BUCKETS}, or {By.HOUR.most} hours."
            " A longer history has several pages: send the same request with `from` set to `next`,"
            " and without `days`.",
            SPAN,
            responses={200: success(HISTORY_SCHEMA, example=HISTORY_EXAMPLE)},
            refusals=(ids.NotCountedError,),
        ),
        "GET /api/v1/views/history.svg": always_drawn(
            "getHistorySvg",
            f"A chart has at most {MAX_BUCKETS} days, weeks or months, or {By.HOUR.most} hours.",
            (*SPAN, CHART_COLOR, THEME, SCALE, WIDTH, HEIGHT),
        ),
    },
)

# ---- the page

PAGE_DAYS = query_parameter(
    "days",
    integer(1, page_routes.MAX_DAYS, default=page_routes.DAYS),
    "The days of the chart, up to today.",
    component="PageDays",
)
PAGE = success() | {"content": {"text/html": {}}}
PICTURE = {"headers": HEADERS, "content": {"image/png": {}}}
BADGE_PAGE = Section(
    "page",
    "A page of each badge, to which its image can link. These routes count no view.",
    {
        "GET /s": Operation(
            "getBadgePage",
            "The page has no script, and asks search engines not to list it. An id without views"
            " has a page too. Its lines have URLs by `PUBLIC_URL`, or by the headers `Host` and"
            " `X-Forwarded-Proto`.",
            (ID_PARAMETER, PAGE_DAYS),
            responses={200: PAGE},
            refusals=(ids.NotCountedError,),
        ),
        "GET /s.png": Operation(
            "getBadgePicture",
            "The page names it as `og:image`. With `chalice deploy`, a REST API returns it only if"
            " `Accept` begins with `image/png`.",
            (ID_PARAMETER,),
            responses={200: PICTURE},
            refusals=(ids.NotCountedError,),
        ),
    },
)

# ---- the owner

SECRET_LENGTH = claiming.SECRET_BYTES * 4 // 3  # in Base64
OWN_DIGEST = string(
    DIGEST,
    description="The SHA-256 digest of a secret that the owner chose, in hex. Only the digest is"
    " stored.",
)
KEY = string(proving.KEY)
CLAIM = record(
    "Claim",
    {"id": ID},
    {
        "base": BASE.reference(description="The count to start from.", default=0),
        "digest": OWN_DIGEST,
        "proof": {
            "description": "A proof that the id is the requester's, which the badge of any id can"
            " have: `true` for a challenge, then the key that was returned with it.",
            "oneOf": [{"const": True}, KEY],
        },
    },
    description="A proof has no `base`, and its first request no `digest`.",
    anyOf=[
        {"properties": {"proof": False}},
        {"properties": {"base": False, "proof": KEY}, "required": ["proof"]},
        {
            "properties": {"base": False, "digest": False, "proof": {"const": True}},
            "required": ["proof"],
        },
    ],
)
NEW_SECRET = string(
    minLength=SECRET_LENGTH,
    maxLength=SECRET_LENGTH,
    description="Returned this once, and only if the claim had no `digest`.",
)
MILESTONE_COUNT = integer(1, requests.MAX_COUNT)
MILESTONE = record(
    "Milestone",
    {
        "count": MILESTONE_COUNT,
        "url": string(
            format="uri",
            maxLength=urls.MAX_URL_CHARACTERS,
            description="The URL that gets a POST, like the URL of an event.",
        ),
    },
)
OWN_MILESTONE = record(
    "OwnedMilestone",
    {
        "count": MILESTONE_COUNT,
        "url": {"type": "string"},
        "reached": {
            "oneOf": [MOMENT, {"type": "null"}],
            "description": "The time at which the badge has reached it in its present life.",
        },
    },
)
CHANGE = record(
    "Change",
    {},
    {
        "base": BASE.reference(description="The count to start from."),
        "reset": {
            "type": "boolean",
            "description": "Count from 0. Earlier views do not count any more. The base becomes 0"
            " unless it is given too.",
        },
        "digest": OWN_DIGEST
        | {
            "description": "Alone: the SHA-256 digest, in hex, of the secret that replaces the"
            " present one. Whoever has it owns the badge from then on."
        },
        "frozen": {"type": "boolean", "description": "Stop counting, or count again."},
        "rename": ID.reference(
            description=f"A new name. The old names stay valid, {finding.MAX_NAMES} in all."
        ),
        "milestones": array(
            MILESTONE,
            milestones.MAX_MILESTONES,
            description="All milestones, each with another count; `[]` removes them. When the count"
            " with the base reaches one, its URL gets one signed webhook, and another one only"
            " after a reset and a day. That happens when views are folded, minutes after they were"
            " taken. A new milestone must be higher than the count. It needs `EVENTS=on` and"
            " `WEBHOOK_SECRETS`.",
        ),
    },
    description="At least one field, and `digest` alone; `reset` alone must be true.",
    anyOf=[
        {"required": ["digest"], "maxProperties": 1},
        *(
            {"required": [name], "properties": {"digest": False}}
            for name in ("base", "frozen", "rename", "milestones")
        ),
        {"required": ["reset"], "properties": {"reset": {"const": True}, "digest": False}},
    ],
)
OWNED = record(
    "OwnedBadge",
    {
        "id": ID.reference(description="The badge's present name."),
        "names": array(ID, finding.MAX_NAMES, minItems=1, description="All names, in order."),
        "aliases": array(ID, finding.MAX_NAMES - 1, description="The other names, in order."),
        "base": BASE.reference(description="The count to start from."),
        "count": integer(description="The number that the badge shows, with the base."),
        "frozen": {"type": "boolean", "description": "Whether it takes no views."},
        "created": MOMENT.reference(description="The time of the owner's claim."),
        "reset": {
            "oneOf": [MOMENT, {"type": "null"}],
            "description": "The time up to which views do not count, because of a reset.",
        },
        "proven": {
            "oneOf": [ID, {"type": "null"}],
            "description": "The name that the owner has proven last.",
        },
        "granted": {
            "type": "boolean",
            "description": "Whether the operator has given the badge to its owner.",
        },
        "milestones": array(
            OWN_MILESTONE, milestones.MAX_MILESTONES, description="The milestones of this owner."
        ),
    },
)
CHALLENGE = record(
    "Challenge",
    {
        "id": ID,
        "challenge": string(proving.CHALLENGE, description="The line that the file must have."),
        "proof": KEY | {"description": "The key, which only the requester may know."},
        "url": string(format="uri", description="The URL at which the file is looked for."),
    },
)
CHANGED = record("Changed", {"id": ID.reference(description="The badge's present name.")})

OWNED_EXAMPLE = {
    "id": "owner/name",
    "names": ["owner/name"],
    "aliases": [],
    "base": 1200,
    "count": 1241,
    "frozen": False,
    "created": "2026-11-21T10:00:00.000Z",
    "reset": None,
    "proven": None,
    "granted": False,
    "milestones": [],
}
CLAIM_EXAMPLES = {
    "claim": {"id": "owner/name", "base": 1200},
    "proof": {"id": "owner/name", "proof": True},
}
SECRET_EXAMPLE = {"id": "owner/name", "secret": "q7Jx2vTn4RkWc8YpL0sZd3MhB6uGfE1a"}
PROOF = proving.Proof("owner/name", "Zk3vN8pQ2sT5wY7aB0cD4eF6gH9jK1mL_oRuXxViUqI")
CHALLENGE_EXAMPLE = {
    "id": PROOF.badge_id,
    "challenge": PROOF.challenge,
    "proof": PROOF.key,
    "url": places.find(PROOF.badge_id, "").url,
}

NOT_PROVEN = Refusal.of(
    proving.NotProvenError,
    optional={name: {"type": "string"} for name in ("challenge", "url", "found")},
)
SECRET = Component(
    "securitySchemes",
    "secret",
    {"type": "http", "scheme": "bearer", "description": "The badge's secret, from its claim."},
)
OF_SECRET = (errors.NoSecretError, errors.WrongSecretError, errors.NotClaimedError)
OWNER_LINKS = {
    f"{name}{form}": link(f"{name}Badge{form}", parameter, "With the badge's secret.")
    for form, parameter in (("", "badge_id"), ("ByQuery", "id"))
    for name in ("get", "change", "delete")
}
VIEW_LINKS = {"show": link("getViews", "id"), "history": link("getHistory", "id")}


def owner_operations(
    path: str, form: str = "", parameters: Sequence[Component] = ()
) -> dict[str, Operation]:
    """Return the operations of a badge whose id is in the path or in the `parameters`."""
    return {
        f"GET {path}": Operation(
            f"getBadge{form}",
            "An operator's token is good too.",
            parameters,
            responses={200: success(OWNED, example=OWNED_EXAMPLE, links=OWNER_LINKS)},
            refusals=OF_SECRET,
            security=SECRET,
        ),
        f"PATCH {path}": Operation(
            f"changeBadge{form}",
            "Changes everything that is given, or nothing. A badge that is renamed shows and counts"
            " under both names. If the response is lost, the same request may be sent again.",
            parameters,
            body=json_content(CHANGE, {"base": 1200}),
            responses={200: success(CHANGED, example={"id": "owner/name"}, links=OWNER_LINKS)},
            refusals=(
                *OF_SECRET,
                errors.TakenError,
                errors.ReachedError,
                ids.NotCountedError,
                guards.NoRoomError,
            ),
            security=SECRET,
        ),
        f"DELETE {path}": Operation(
            f"deleteBadge{form}",
            "Later views count from 0. The same request may be sent again: it has the same response"
            " until somebody else claims the id.",
            parameters,
            responses={204: success()},
            refusals=OF_SECRET,
            security=SECRET,
        ),
    }


OWNER = Section(
    "owner",
    "Own a badge. An id counts without an owner too.",
    {
        "POST /api/v1/badges": Operation(
            "claimBadge",
            "Without `digest`, the response has a new secret, and no other response has it: if the"
            " response is lost, nobody can change the badge. With `digest`, owners keep a secret of"
            " their own and may send the same claim again, which has the same response. A claim is"
            f" void after {claiming.CLAIM_SECONDS // 86_400} days if its badge has neither views"
            " nor settings: then somebody else may claim the id."
            " With `proof`, whoever can put a file on the host of an id owns its badge, which may"
            " have views, a base and another owner, and keeps all but the owner. A name of another"
            " badge, whose owner has not proven it, leaves that badge. The first request"
            " stores nothing. The second one, with the key, looks for the line `challenge` in the"
            " file at `url`: if it is missing, the response is 409 `not_proven`, and says what was"
            f" found. Each id is looked for once in {proving.LOOK_SECONDS} s. The same request has"
            " the same response as long as the badge has the same owner.",
            body=json_content(CLAIM, **CLAIM_EXAMPLES),
            responses={
                201: success(
                    record("Claimed", {"id": ID}, {"secret": NEW_SECRET}),
                    examples={"claim": SECRET_EXAMPLE},
                    links=OWNER_LINKS | VIEW_LINKS,
                ),
                202: success(CHALLENGE, examples={"proof": CHALLENGE_EXAMPLE}),
            },
            refusals=(
                guards.NoRoomError,
                NOT_PROVEN,
                errors.TakenError,
                places.NotProvableError,
                ids.NotCountedError,
            ),
        ),
        **owner_operations("/api/v1/badges/{badge_id}"),
        **owner_operations("/api/v1/badges", "ByQuery", (ID_PARAMETER,)),
    },
    (
        path_parameter(
            "badge_id",
            ID,
            "The badge's id or any name that it has had, percent-encoded as one segment.",
            "owner/name",
        ),
    ),
)
SECTIONS = (BADGE, HISTORY, BADGE_PAGE, OWNER)
