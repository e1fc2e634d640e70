"""The description of the routes for views: the badge, its history, its page and its owner."""

from __future__ import annotations

from chalicelib.badges.badge import Badge
from chalicelib.badges.description import IMAGE, badge_operations
from chalicelib.badges.options import BASE
from chalicelib.counting import bans, milestones
from chalicelib.counting.ids import ID, BannedError, NotCountedError
from chalicelib.history import github
from chalicelib.history.buckets import MAX_BUCKETS, MAX_DAYS_BY_HOUR, Interval
from chalicelib.history.periods import LABEL
from chalicelib.history.routes import A_DAY
from chalicelib.history.top import MAX_LIMIT, NotPublicError, OneMachineOnlyError
from chalicelib.http import guards
from chalicelib.http.fields import (
    Component,
    Field,
    Json,
    array,
    closed,
    integer,
    record,
    schema,
    string,
)
from chalicelib.http.openapi import HTML, MOMENT, Operation, Refusal, Section, body_of, success
from chalicelib.owners import claiming, errors, finding, places, proving, requests
from chalicelib.owners.bans import PATTERN, BanBody
from chalicelib.owners.requests import MILESTONE_COUNT
from chalicelib.pages import github_traffic, owned_badges
from chalicelib.pages.badge_routes import MAX_COUNTED, MAX_READ

# ---- the badge

COUNTED = record(
    "Counted",
    {
        "id": ID,
        "count": {
            "type": ["integer", "null"],
            "minimum": 0,
            "description": "The number that a badge shows, which this view is not in. It is null if"
            " the count can't be read, and the view counts nevertheless; or if nobody has told this"
            " number of GitHub's.",
        },
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


KNOWN = {"type": ["integer", "null"], "minimum": 0}
MAX_GITHUB_DAYS = MAX_BUCKETS * 31
GITHUB_DAY = record(
    "GitHubDay",
    {"day": A_DAY, **dict.fromkeys(github.NUMBERS, KNOWN)},
    description="A day of GitHub's numbers of the repository, as its owner told them. What nobody"
    " has told is null, and days of which nothing was told are not listed. `visitors` and"
    " `cloners` are unique on that day, so their sums mean nothing.",
)


def history(by: Interval, beginning: Json, most_days: int) -> Component:
    """Return the schema of a history by a unit."""
    date = {"type": ["string", "null"], "format": "date"}
    bucket = closed({by.value: beginning, "views": integer()})
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

# ---- the owner

SECRET_LENGTH = claiming.SECRET_BYTES * 4 // 3  # in Base64
NEW_SECRET = string(
    minLength=SECRET_LENGTH,
    maxLength=SECRET_LENGTH,
    description="Returned this once, and only if the claim had no `digest`.",
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
OWNED = record(
    "OwnedBadge",
    {
        "id": ID | {"description": "The badge's present name."},
        "names": array(ID, finding.MAX_NAMES, minItems=1, description="All names, in order."),
        "aliases": array(ID, finding.MAX_NAMES - 1, description="The other names, in order."),
        "base": BASE | {"description": "The count to start from."},
        "count": integer(description="The number that the badge shows, with the base."),
        "frozen": {"type": "boolean", "description": "Whether it takes no views."},
        "created": MOMENT | {"description": "The time of the owner's claim."},
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
        "proof": string(proving.KEY)
        | {"description": "The key, which only the requester may know."},
        "url": string(format="uri", description="The URL at which the file is looked for."),
    },
)
CHANGED = record(
    "Changed",
    {"id": ID | {"description": "The badge's present name."}},
    {"removed": integer(0, description="The number of views that `remove` took.")},
)
TOLD = record(
    "Told",
    {
        "id": ID | {"description": "The badge's present name."},
        "days": closed({}, dict.fromkeys(github.NAMES, integer())),
    },
)
TRAFFIC_EXAMPLE = {
    "views": {
        "count": 14850,
        "uniques": 3782,
        "views": [{"timestamp": "2016-10-10T00:00:00Z", "count": 440, "uniques": 143}],
    }
}

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
LISTED_NUMBER = {
    "type": ["integer", "null"],
    "minimum": 0,
    "description": "Null if the badge is banned.",
}
OWNED_LIST = record(
    "OwnedBadges",
    {
        "badges": array(
            record("ListedBadge", {"id": ID, "count": LISTED_NUMBER, "today": LISTED_NUMBER}),
            owned_badges.PAGE,
        )
    },
    {"next": ID},
)
OWNED_LIST_EXAMPLE = {
    "badges": [{"id": "owner/name", "count": 1241, "today": 12}],
    "next": "owner/name",
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
    proving.NotProvenError, **{name: string() for name in ("challenge", "url", "found")}
)
OF_SECRET = (errors.NoSecretError, errors.WrongSecretError, errors.NotClaimedError)
OWNER = Section(
    "owner",
    "Own a badge. An id counts without an owner too.",
    {
        "getOwnPage": Operation("Its script sends the requests below.", {200: HTML}),
        "claimBadge": Operation(
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
            {
                201: success(
                    record("Claimed", {"id": ID}, {"secret": NEW_SECRET}), claim=SECRET_EXAMPLE
                ),
                202: success(CHALLENGE, proof=CHALLENGE_EXAMPLE),
            },
            [
                guards.NoRoomError,
                guards.NoNewBadgesError,
                NOT_PROVEN,
                errors.TakenError,
                places.NotProvableError,
                NotCountedError,
                BannedError,
            ],
            body_of(
                requests.ClaimBody,
                claim={"id": "owner/name", "base": 1200},
                proof={"id": "owner/name", "proof": True},
            ),
        ),
        "getBadge": Operation(
            "An operator's token is good too.",
            {200: success(OWNED, example=OWNED_EXAMPLE)},
            (*OF_SECRET, BannedError),
            has_secret=True,
        ),
        "getBadges": Operation(
            "With an id, shows the badge. Without one, lists the badges of the secret, up to"
            f" {owned_badges.PAGE} on a page, in the order of their first names; `today` has the"
            " views of this day in UTC. The last page has no `next`.",
            {
                200: success(
                    {"oneOf": [OWNED, OWNED_LIST]}, badge=OWNED_EXAMPLE, list=OWNED_LIST_EXAMPLE
                )
            },
            (*OF_SECRET, BannedError),
            has_secret=True,
        ),
        "changeBadge": Operation(
            "Changes everything that is given, or nothing. A badge that is renamed shows and counts"
            " under both names. If the response is lost, the same request may be sent again."
            " An operator's token is good for `remove` too, for any badge.",
            {200: success(CHANGED, example={"id": "owner/name"})},
            (
                *OF_SECRET,
                errors.TakenError,
                errors.ReachedError,
                errors.NotFoldedError,
                NotCountedError,
                BannedError,
                guards.NoRoomError,
            ),
            body_of(requests.ChangeBody, {"base": 1200}),
            has_secret=True,
        ),
        "putTraffic": Operation(
            "GitHub tells the traffic of the last 14 days, and vu-mi keeps the days. A number of a"
            " day never falls, so a response may come again. A day that is in no response stays"
            " unknown. Resets leave these numbers, and a deletion removes them.",
            {200: success(TOLD, example={"id": "owner/name", "days": {"views": 1}})},
            OF_SECRET,
            body_of(github_traffic.TrafficBody, TRAFFIC_EXAMPLE),
            has_secret=True,
        ),
        "deleteBadge": Operation(
            "Later views count from 0. The same request may be sent again: it has the same response"
            " until somebody else claims the id.",
            {204: success()},
            OF_SECRET,
            has_secret=True,
        ),
    },
    {
        "badge_id": Field(
            str,
            ID,
            "The badge's id or any name that it has had, percent-encoded as one segment.",
            example="owner/name",
        )
    },
)

# ---- the bans

BAN = record(
    "Ban",
    {
        "pattern": PATTERN,
        "reason": string(maxLength=bans.MAX_REASON),
        "by": string(description="The name of the token or the command that set the ban."),
        "at": MOMENT,
    },
)
BAN_EXAMPLE = {
    "pattern": "spammer/*",
    "reason": "spam",
    "by": "admin",
    "at": "2026-11-21T10:00:00.000Z",
}
BANS = Section(
    "bans",
    "Ban ids. A banned badge says that it is not counted here, and tells no number; what it has"
    " stays, and is shown again when the ban is lifted.",
    {
        "getBans": Operation(
            "In the order of the patterns.",
            {200: success(closed({"bans": array(BAN, bans.ALL)}), example={"bans": [BAN_EXAMPLE]})},
        ),
        "setBan": Operation(
            "Holds from the next request on, on AWS within a minute. A ban of the same pattern is"
            f" replaced. There are at most {bans.MAX_BANS:,} bans.",
            {200: success(BAN, example=BAN_EXAMPLE)},
            [bans.TooManyBansError],
            body_of(BanBody, {"reason": "spam"}),
        ),
        "liftBan": Operation("The same response if there is no such ban.", {204: success()}),
    },
)
SECTIONS = (BADGE, HISTORY, BADGE_PAGE, OWNER, BANS)
