"""The dispatch of a request to its route."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from chalicelib import telemetry
from chalicelib.http import authentication, errors, guards
from chalicelib.http.errors import ClientError, MethodNotAllowedError, NotFoundError
from chalicelib.http.messages import Request, Response, Unchanging
from chalicelib.http.routing import Route, RouteTable
from chalicelib.resources import Action
from chalicelib.settings import SettingsError

if TYPE_CHECKING:
    from chalicelib.http.authentication import AuthenticationResources
    from chalicelib.resources import Resources

ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
"""The header of each response of a route with `from_any_site`, for scripts of other sites.

It excludes cookies.
"""
REQUEST = Action.REQUEST
"""In Python 3.11, this is found ten times as fast as the member of the enumeration."""
PREFLIGHT_SECONDS = 86_400
"""The time for which a browser need not ask again. Chromium asks after two hours."""


def dispatch(
    table: RouteTable, request: Request, resources: AuthenticationResources, context: Any = None
) -> Response:
    """Find the route of a request and answer it; every failure becomes a response.

    `request.path` is percent-encoded, as it was sent, and `path_parameters` is empty. Without a
    `caller`, the token in the request is checked if the route needs one. `context` is Lambda's.
    """
    telemetry.begin("api_handler", context)
    try:
        route, request = _resolve(table, request)
    except ClientError as refusal:
        allowed = _answer_preflight(table, request)
        return _complete(allowed or errors.to_response(refusal), resources)

    try:
        response = _answer(route, request, resources)
    except Exception as failure:  # noqa: BLE001  the connection must get an answer
        drawn = route.on_failure(failure, request)
        response = drawn._replace(is_refusal=isinstance(failure, ClientError))
    return _complete(response, resources, route)


def admit(table: RouteTable, request: Request, resources: AuthenticationResources) -> Request:
    """Return a request whose body is worth reading, with its caller if its route needs one.

    Raises `ClientError` if there is no such route or no such token, and `StorageError`.
    """
    route, _ = _resolve(table, request)
    return _authenticate(route, request, resources)


def _answer(route: Route, request: Request, resources: AuthenticationResources) -> Response:
    """Call the handler of a route if the caller may."""
    guards.check_limit(REQUEST, request, resources)
    if not route.is_open:
        request = _authenticate(route, request, resources)
        guards.check_site(route, request)
        guards.check_caller(route, request)
    guards.check_options(route, request)
    if route.changes_by_secret:
        guards.check_limit(Action.CHANGE, request, resources)
    response = route.handler(request, resources)
    if change := response.change:
        by, fields = request.caller.name if request.caller else change.by, sorted(change.fields)
        action = route.handler.__name__
        telemetry.changed(by, action, change.id, fields=fields, before=change.before)
    return response


def _authenticate(route: Route, request: Request, resources: AuthenticationResources) -> Request:
    """Return a request with its caller, if the feature of its route is switched on."""
    guards.check_feature(route, resources)
    if route.is_public or request.caller is not None:
        return request
    header = request.headers.get("authorization", "")
    return request._replace(caller=authentication.authenticate(header, resources))


def _answer_preflight(table: RouteTable, request: Request) -> Response | None:
    """Allow the request that a browser asks for, or return None if its route is for no other site.

    Before any request with a header of the script's own, a browser asks with OPTIONS. The star
    allows all headers but `Authorization`. Source: Fetch standard, "CORS protocol".
    """
    match = table.find(request.path)
    method = request.headers.get("access-control-request-method", "")
    route = match.routes.get(method) if match else None
    if request.method != "OPTIONS" or route is None or not route.from_any_site:
        return None
    headers = {
        "Access-Control-Allow-Methods": method,
        "Access-Control-Allow-Headers": "*",
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
    }
    return Response(204, {**ANY_ORIGIN, **headers})


def _complete(response: Response, resources: Resources, route: Route | None = None) -> Response:
    """Return a response with the headers that all responses of its route have."""
    try:
        seconds = resources.settings.hsts_seconds
    except SettingsError:  # the response says that it failed
        seconds = 0
    from_any_site = route is not None and route.from_any_site
    add = _add_once if isinstance(response.headers, Unchanging) else _add
    headers = add(response.headers, from_any_site, seconds)
    return Response(response.status, headers, response.body, None, response.is_refusal)


def _add(
    headers: Mapping[str, str],
    from_any_site: bool,  # noqa: FBT001
    hsts_seconds: int,
) -> Mapping[str, str]:
    """Return the headers, those for scripts of other sites, and the one for HTTPS.

    It tells browsers to use only HTTPS from now on, if the operator wants that (RFC 6797).
    """
    origin = ANY_ORIGIN if from_any_site else {}
    https = {"Strict-Transport-Security": f"max-age={hsts_seconds}"} if hsts_seconds else {}
    return {**headers, **origin, **https}


@lru_cache
def _add_once(
    headers: Unchanging[str, str],
    from_any_site: bool,  # noqa: FBT001
    hsts_seconds: int,
) -> Mapping[str, str]:
    return Unchanging(_add(headers, from_any_site, hsts_seconds))


def _resolve(table: RouteTable, request: Request) -> tuple[Route, Request]:
    """Return the route of a request, and the request with its path decoded.

    A path without parameters is a route's own, so it has nothing to decode.
    """
    match = table.find(request.path)
    if match is None:
        raise NotFoundError("there is no such route")
    route = match.routes.get(request.method)
    if route is None:
        raise MethodNotAllowedError(", ".join(sorted(match.routes)))
    if not match.parameters:
        return route, request
    parameters = {name: unquote(value) for name, value in match.parameters.items()}
    return route, request._replace(path=unquote(request.path), path_parameters=parameters)
