"""The rules of this API that schemathesis needs and that OpenAPI can't express."""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from http import HTTPStatus
from typing import Any, TypeAlias
from urllib.parse import unquote

import schemathesis
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from chalicelib.counting import ids

JSON_BADGES = ("/api/v1/views", "/v1/api/views")
COLORS = ("color: ", "labelColor: ", "logoColor: ")
"""The beginning of a badge that refuses a colour.

The description leaves the names of colours to CSS and shields.io.
"""
BANNED = "not counted here"
"""A badge that an earlier request has banned."""
MAX_DAYS, MAX_DAYS_BY_HOUR = 9_999, 31
EARLIEST = date(1970, 1, 1)

Case: TypeAlias = schemathesis.Case[Any]

TOKEN = os.environ["API_TOKEN"]
USERS_TOKEN = os.environ["USERS_TOKEN"]
"""The token of the user whose wallet the description's example opens."""
NOBODY_LISTENS = "https://127.0.0.1:1/"
"""The URL that replaces every URL of an event, because the server may call only loopback."""
QUEUE = "orders"
EMPTY: tuple[Any, ...] = (None, "", [], {}, [None], [""])
PAST = 946_684_800
"""Seconds from 1970 to 2000, a time that is valid for an event."""
PROVABLE = "owner/name"
"""The id that replaces the id of a proof, because few ids have a place for a proof."""
IS_DIGEST = re.compile("[0-9a-f]{64}")
IS_QUEUE = re.compile("[A-Za-z0-9_-]{1,80}")
IS_OWN_LOGO = re.compile("data:image/svg[+]xml;base64,[A-Za-z0-9+/]+={0,2}")
MAX_OWN_LOGO = 4_000
OWN_LOGO = (
    "data:image/svg+xml;base64,PHN2ZyB2aWV3Qm94PSIwIDAgMSAxIj48cGF0aCBkPSJNMCAwaDEiLz48L3N2Zz4="
)
IS_CURSOR = re.compile("[A-Za-z0-9_-]+")
IS_WALLET = re.compile("[0-7][0-9A-HJKMNP-TV-Z]{25}")
IS_AMOUNT = re.compile("[1-9][0-9]{0,18}")
MAX_AMOUNT = 2**63 - 1
IS_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T.+", re.IGNORECASE)

secrets: dict[str, str] = {}
"""The secret of each name of a claimed badge."""
OWN_SECRET = "of the owner's own"  # noqa: S105  opens nothing but what is made here
wallets: list[str] = []
"""The ids of the opened wallets."""


@schemathesis.hook
def after_load_schema(_context: Any, _schema: Any) -> None:
    """Forget what another server answered, because each run asks a new one."""
    for known in (secrets, wallets):
        known.clear()


@schemathesis.hook
def before_call(_context: Any, case: Case, _kwargs: Any) -> None:
    """Replace generated values that match the schema by values that this server accepts now."""
    body, query = case.body, case.query
    if isinstance(body, dict):
        _make_acceptable(body)
    if case.operation.path.startswith("/api/v1/wallets"):
        _use_known_wallets(case.path_parameters or {})
    if query and "cursor" in query and IS_CURSOR.fullmatch(str(query["cursor"])):
        del query["cursor"]  # this server has given none
    logo = str((query or {}).get("logo"))
    if query and IS_OWN_LOGO.fullmatch(logo) and len(logo) <= MAX_OWN_LOGO:
        query["logo"] = OWN_LOGO
    if query and "ts" in query:
        query["ts"] = _past_time(query["ts"])
    days = str((query or {}).get("days"))
    if query and "from" in query and days.isdecimal() and 1 <= int(days) <= MAX_DAYS:
        del query["days"]  # a history has days or a first day


def _make_acceptable(body: dict[str, Any]) -> None:
    if "at" in body:
        body["at"] = _past_time(body["at"])
    milestones = body.get("milestones")
    more = milestones if isinstance(milestones, list) else []
    _number(more)
    for named in (body, body.get("target"), *more):
        if isinstance(named, dict) and isinstance(named.get("url"), str) and ":" in named["url"]:
            named["url"] = NOBODY_LISTENS
    if IS_DIGEST.fullmatch(str(body.get("digest"))):
        body["digest"] = hashlib.sha256(OWN_SECRET.encode()).hexdigest()
    if "proof" in body and _is_id(body.get("id")):
        body["id"] = PROVABLE
    target = body.get("target")
    if isinstance(target, dict) and isinstance(target.get("queue"), str):
        target["queue"] = QUEUE if IS_QUEUE.fullmatch(target["queue"]) else target["queue"]
    for part, length in (("hours", 8_784), ("minutes", 527_040), ("seconds", 31_622_400)):
        given: Any = body.get(part)
        if type(given) in (int, float) and 0 <= given <= length:
            body[part] = given // 3  # so that the sum stays within the limit of one part

    amount = body.get("amount")
    if isinstance(amount, str) and IS_AMOUNT.fullmatch(amount) and int(amount) > MAX_AMOUNT:
        body["amount"] = amount[:-1]  # no readable pattern can express this limit


def _number(milestones: list[Any]) -> None:
    """Give each milestone another count, which no schema can require."""
    counts = set[int]()
    for one in milestones:
        if isinstance(one, dict) and type(one.get("count")) is int and one["count"] > 0:
            while one["count"] in counts:
                one["count"] = one["count"] % len(milestones) + 1
            counts.add(one["count"])


def _is_id(given: Any) -> bool:
    try:
        return isinstance(given, str) and bool(ids.normalise(given))
    except ids.BadIdError:
        return False


def _use_known_wallets(path: dict[str, Any]) -> None:
    """Use two different wallets that exist; an id that ends in a digit stays unknown."""
    others = wallets[-2:]
    for name in ("wallet_id", "target_id"):
        given = str(path.get(name, ""))
        if IS_WALLET.fullmatch(given) and given in others:
            others.remove(given)
        elif IS_WALLET.fullmatch(given) and not given[-1].isdecimal() and others:
            path[name] = others.pop()
    if path.get("target_id") == path.get("wallet_id") and others:
        path["target_id"] = others.pop()


def _past_time(given: Any) -> Any:
    if isinstance(given, str) and IS_MOMENT.fullmatch(given):
        return "2000" + given[4:]
    if isinstance(given, int | float) and not isinstance(given, bool) and given > PAST:
        return PAST
    return given


@schemathesis.hook
def after_call(_context: Any, case: Case, response: schemathesis.Response) -> None:
    """Keep the secret of a claimed badge, also for its new name, and the ids of opened wallets."""
    if case.operation.path == "/api/v1/wallets" and response.status_code == HTTPStatus.OK:
        wallets.append(response.json()["id"])
    if not case.operation.path.startswith("/api/v1/badges"):
        return
    if response.status_code == HTTPStatus.CREATED:
        claimed = response.json()
        secrets[claimed["id"]] = claimed.get("secret", OWN_SECRET)
    elif case.operation.method == "patch" and response.status_code == HTTPStatus.OK:
        secrets[response.json()["id"]] = secrets[_badge(case)]


@schemathesis.auth(refresh_interval=None)
class Owner:
    """The authentication: a badge's secret, or a wrong one if the badge is not claimed.

    Routes of events and wallets get the operator's token; `/me` gets the user's token.
    """

    def get(self, case: Case, _context: Any) -> str:
        if not case.operation.path.startswith("/api/v1/badges"):
            return USERS_TOKEN if case.operation.path.endswith("/me") else TOKEN
        return secrets.get(_badge(case), "of no badge")

    def set(self, case: Case, secret: str, _context: Any) -> None:
        case.headers["Authorization"] = f"Bearer {secret}"


def _badge(case: Case) -> str:
    given = {"badge_id": (case.query or {}).get("id", ""), **(case.path_parameters or {})}
    return unquote(str(given["badge_id"]))


@schemathesis.hook
def filter_query(_context: Any, query: Mapping[str, Any] | None) -> bool:
    """Return whether the time of a history is valid, which depends on several parameters.

    No schema can express this. Empty texts are left out, because most parameters treat them as
    missing.
    """
    given = query or {}
    values = [value if isinstance(value, list) else [value] for value in given.values()]
    if any(one in EMPTY for value in values for one in value):
        return False
    days = str(given.get("days", ""))
    if given.get("by") == "hour" and days.isdecimal() and int(days) > MAX_DAYS_BY_HOUR:
        return False
    return _has_valid_dates(given)


def _has_valid_dates(query: Mapping[str, Any]) -> bool:
    """Return whether the first day is not after the last one, and none is before 1970."""
    first, last = _read_date(query.get("from")), _read_date(query.get("to"))
    today = datetime.now(UTC).date()
    end = min(last or today, today)
    return end >= EARLIEST and EARLIEST <= (first or end) <= end


def _read_date(given: Any) -> date | None:
    try:
        return date.fromisoformat(given)
    except (TypeError, ValueError):
        return None


@schemathesis.check
def badge_is_an_error_where_data_is_bad(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: Case
) -> bool | None:
    """Check that a JSON badge, which is always 200, is an error if and only if the data is bad."""
    if case.operation.path not in JSON_BADGES or response.status_code != HTTPStatus.OK:
        return None
    badge = response.json()
    if badge.get("message", "").startswith((*COLORS, BANNED)):
        return None
    meant = copy.copy(response)
    meant.status_code = 400 if badge.get("isError") else 200
    negative_data_rejection(ctx, meant, case)
    positive_data_acceptance(ctx, meant, case)
    return None
