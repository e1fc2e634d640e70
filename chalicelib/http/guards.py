"""The checks of a request before its handler: feature, caller, site, options, and limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from chalicelib.http.authentication import NO_TOKEN
from chalicelib.http.errors import BadRequestError, ClientError, ForbiddenError, UnauthorizedError
from chalicelib.http.messages import Unchanging
from chalicelib.http.query import MAX_CACHED, shown
from chalicelib.http.routing import ANY_OPTIONS, Authentication
from chalicelib.lazy import lazy
from chalicelib.resources import Action, Room

if TYPE_CHECKING:
    import difflib

    from chalicelib.http.fields import Options
    from chalicelib.http.messages import Caller, Query, Request
    from chalicelib.http.routing import Route
    from chalicelib.resources import Resources
    from chalicelib.settings import Feature
else:
    difflib = lazy("difflib")

OF_A_USER = "the token is a user's: it is good for the user's wallet alone"
OF_AN_OPERATOR = "the token names no user: ask for a wallet by its id"
OWN_SITE = {"same-origin", "none"}
"""Values of `Sec-Fetch-Site`: a page of this server, or the user's own act, such as a bookmark."""
IGNORED_OPTIONS = ("_", "t", "v", "cb", "cacheSeconds", "fbclid")
"""Parameters that people append to a URL so that a cache fetches it again, or Facebook to any link.

They do nothing.
"""
LONGEST_OPTION = 20
"""Characters of a wrong name that are compared with the options."""
IGNORED_PREFIX = "utm_"
"""The beginning of the parameters by which campaigns tell links apart; they do nothing."""
LIMITED = {
    Action.NEW_ID: "too many new badges",
    Action.NEW_ID_A_DAY: "too many new badges in a day",
    Action.CLAIM: "too many claims, renames and milestones",
    Action.CHANGE: "too many changes",
    Action.PROOF: "too many proofs",
    Action.REQUEST: "too many requests",
}
MAKES_ITEMS = (Action.NEW_ID, Action.CLAIM)


class CrossSiteError(ClientError):
    """A page of another site sent the request, through the browser of somebody who visits it."""

    status = 403
    code = "cross_site"


class SwitchedOffError(ClientError):
    """The operator has switched off the feature of the route."""

    status = 404
    code = "switched_off"

    def __init__(self, feature: Feature) -> None:
        name = feature.value
        super().__init__(f"{name.lower()} are switched off in this deployment: {name}=off")


class TooManyRequestsError(ClientError):
    """The client's address has done this too often. The header says when to try again."""

    status = 429
    code = "too_many_requests"

    def __init__(self, action: Action, seconds: int) -> None:
        super().__init__(f"{LIMITED[action]} from your address: try again in {seconds} s")
        self.headers = {"Retry-After": str(seconds)}


class NoRoomError(ClientError):
    """The disk of the server is nearly full: it takes no new ids and claims, but counts on."""

    status = 507
    code = "no_room"


class NoNewBadgesError(ClientError):
    """There are as many badges as the operator takes (`MAX_BADGES`). Those that exist count on."""

    status = 403
    code = "no_new_badges"


def check_feature(route: Route, resources: Resources) -> None:
    """Raise `SwitchedOffError` if the feature of a route is switched off."""
    if route.feature and route.feature not in resources.settings.features:
        raise SwitchedOffError(route.feature)


def check_limit(action: Action, request: Request, resources: Resources) -> None:
    """Count an action of a request's client. Raises `TooManyRequestsError` and `NoRoomError`."""
    if action in MAKES_ITEMS and resources.room() < Room.ALL:
        raise NoRoomError("no new badges now: the disk of this server is nearly full")
    if wait := resources.limits.wait(action, request.client):
        raise TooManyRequestsError(action, math.ceil(wait))


def check_new_badge(request: Request, resources: Resources) -> None:
    """Count a new badge of a request's client, and in all. Raises the errors of the limits."""
    check_limit(Action.NEW_ID, request, resources)
    check_limit(Action.NEW_ID_A_DAY, request, resources)
    check_quota(resources)


def check_quota(resources: Resources) -> None:
    """Count a new badge in all. Raises `NoNewBadgesError`."""
    if resources.quota and not resources.quota.admit():
        raise NoNewBadgesError("no new badges here")


def check_caller(route: Route, request: Request) -> None:
    """Raise `UnauthorizedError` or `ForbiddenError` unless the caller may call the route."""
    if route.is_public:
        return
    caller = caller_of(request)
    if route.authentication is Authentication.OPERATOR and not caller.is_operator:
        raise ForbiddenError(OF_A_USER)
    if route.authentication is Authentication.USER and caller.is_operator:
        raise ForbiddenError(OF_AN_OPERATOR)


def caller_of(request: Request) -> Caller:
    """Return the caller. Raises `UnauthorizedError` if none was authenticated."""
    if request.caller is None:
        raise UnauthorizedError(NO_TOKEN)
    return request.caller


def check_site(route: Route, request: Request) -> None:
    """Raise `CrossSiteError` if a browser sends a change for a page of another site.

    A request that is no browser's has neither header. Sources: W3C, "Fetch Metadata Request
    Headers"; Fetch standard, "`Origin` header".
    """
    if route.writes and not route.from_any_site and not _is_from_own_site(request.headers):
        raise CrossSiteError(
            "a page of another site sent this: send it from this server's own site, or with no"
            " browser"
        )


def check_options(route: Route, request: Request) -> None:
    """Raise `BadRequestError` for a parameter of the query that the route does not have."""
    options: Any = route.options  # a class, which mypy takes for not hashable
    if options is not ANY_OPTIONS:
        is_cached = isinstance(request.query, Unchanging)
        (_check_names_once if is_cached else _check_names)(options, request.query)


def _check_names(options: type[Options], query: Query) -> None:
    known = options.fields
    for name in query:
        is_ignored = name in IGNORED_OPTIONS or name.startswith(IGNORED_PREFIX)
        if name not in known and not is_ignored:
            raise BadRequestError(f"unknown option {shown(name)}: {_advise(name, known)}")


_check_names_once = lru_cache(MAX_CACHED)(_check_names)


def _advise(name: str, options: Iterable[str]) -> str:
    """Return the option that a wrong name may stand for, or the advice to leave it out."""
    spelled = {option.lower(): option for option in options}
    given = name[:LONGEST_OPTION].lower()
    near = difflib.get_close_matches(given, spelled, n=1)
    return f"did you mean {spelled[near[0]]}" if near else "leave it out"


def _is_from_own_site(headers: Mapping[str, str]) -> bool:
    if (site := headers.get("sec-fetch-site")) is not None:
        return site in OWN_SITE
    if (origin := headers.get("origin")) is None:
        return True
    try:
        host = urlsplit(origin).netloc.lower()
    except ValueError:
        return False
    return host != "" and host == headers.get("host", "").lower()
