"""The description of the routes for the owners of badges, and for bans of operators."""

from __future__ import annotations

from chalicelib.badges.options import BASE
from chalicelib.counting import bans, milestones
from chalicelib.counting.ids import ID, BannedError, NotCountedError
from chalicelib.history import github
from chalicelib.http import guards
from chalicelib.http.fields import Field, array, closed, integer, nullable, record, string
from chalicelib.http.openapi import HTML, MOMENT, Operation, Refusal, Section, body_of, success
from chalicelib.owners import claiming, finding, proving, requests
from chalicelib.owners.bans import PATTERN, BanBody, to_json
from chalicelib.owners.requests import MILESTONE_COUNT
from chalicelib.pages import owned_badges

# ---- the owner

SECRET_LENGTH = claiming.SECRET_BYTES * 4 // 3  # in Base64
NEW_SECRET = string(
    minLength=SECRET_LENGTH,
    maxLength=SECRET_LENGTH,
    description="Returned this once, and only if the claim had no `digest`.",
)
NAME = ID | {"description": "The badge's present name."}
OWN_MILESTONE = record(
    "OwnedMilestone",
    {
        "count": MILESTONE_COUNT,
        "url": {"type": "string"},
        "reached": nullable(
            MOMENT, "The time at which the badge has reached it in its present life."
        ),
    },
)
OWNED = record(
    "OwnedBadge",
    {
        "id": NAME,
        "names": array(ID, finding.MAX_NAMES, minItems=1, description="All names, in order."),
        "aliases": array(ID, finding.MAX_NAMES - 1, description="The other names, in order."),
        "base": BASE | {"description": "The count to start from."},
        "count": integer(description="The number that the badge shows, with the base."),
        "frozen": {"type": "boolean", "description": "Whether it takes no views."},
        "created": MOMENT | {"description": "The time of the owner's claim."},
        "reset": nullable(MOMENT, "The time up to which views do not count, because of a reset."),
        "proven": nullable(ID, "The name that the owner has proven last."),
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
    {"id": NAME},
    {"removed": integer(0, description="The number of views that `remove` took.")},
)
DAYS = closed({}, dict.fromkeys(github.NAMES, integer()))
TOLD = record("Told", {"id": NAME, "days": DAYS})
DAY_EXAMPLE = {"timestamp": "2016-10-10T00:00:00Z", "count": 440, "uniques": 143}
TRAFFIC_EXAMPLE = {"views": {"count": 14850, "uniques": 3782, "views": [DAY_EXAMPLE]}}

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
NUMBER = nullable(integer(), "Null if the badge is banned.")
LISTED = record("ListedBadge", {"id": ID, "count": NUMBER, "today": NUMBER})
OWNED_LIST = record("OwnedBadges", {"badges": array(LISTED, owned_badges.PAGE)}, {"next": ID})
LISTED_EXAMPLE = {"id": "owner/name", "count": 1241, "today": 12}
OWNED_LIST_EXAMPLE = {"badges": [LISTED_EXAMPLE], "next": "owner/name"}
SECRET_EXAMPLE = {"id": "owner/name", "secret": "q7Jx2vTn4RkWc8YpL0sZd3MhB6uGfE1a"}
PROOF = proving.Proof("owner/name", "Zk3vN8pQ2sT5wY7aB0cD4eF6gH9jK1mL_oRuXxViUqI")
CHALLENGE_EXAMPLE = {
    "id": PROOF.badge_id,
    "challenge": PROOF.challenge,
    "proof": PROOF.key,
    "url": proving.find_place(PROOF.badge_id, "").url,
}

NOT_PROVEN = Refusal.of(
    proving.NotProvenError, **{name: string() for name in ("challenge", "url", "found")}
)
OF_SECRET = (finding.NoSecretError, finding.WrongSecretError, finding.NotClaimedError)
OWNER = Section(
    "owner",
    "Own a badge. An id counts without an owner too.",
    {
        "getOwnPage": Operation("Its script sends the requests below.", {200: HTML}),
        "claimBadge": Operation(
            "Without `digest`, the response has a new secret, and no other response has it. With"
            " `digest`, owners keep a secret of their own and may send the same claim again. A"
            f" claim is void after {claiming.CLAIM_SECONDS // 86_400} days if its badge has neither"
            " views nor settings. With `proof`, whoever can put a file on the host of an id owns"
            " its badge, which may have views, a base and another owner, and keeps all but the"
            " owner. A name of another badge, whose owner has not proven it, leaves that badge. The"
            " first request stores nothing. The second one, with the key, looks for the line"
            " `challenge` in the file at `url`: if it is missing, the response is 409 `not_proven`."
            f" Each id is looked for once in {proving.LOOK_SECONDS} s.",
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
                finding.TakenError,
                proving.NotProvableError,
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
                finding.TakenError,
                finding.ReachedError,
                finding.NotFoldedError,
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
            body_of(owned_badges.TrafficBody, TRAFFIC_EXAMPLE),
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
        "reason": BanBody.reason.content,
        "by": string(description="The name of the token or the command that set the ban."),
        "at": MOMENT,
    },
)
BAN_EXAMPLE = to_json(bans.Ban("spammer/*", "spam", "admin", 1_795_255_200_000))
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
SECTIONS = (OWNER, BANS)
