"""The Chalice app's routes and their authorizer, through which a REST API calls the routes."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote, unquote

from chalice.app import AuthRequest, AuthResponse, AuthRoute, Blueprint, Chalice
from chalice.app import Request as ChaliceRequest
from chalice.app import Response as ChaliceResponse

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.http.authentication import authenticate
from chalicelib.http.dispatch import dispatch
from chalicelib.http.errors import ClientError
from chalicelib.http.messages import Caller, Request
from chalicelib.http.routing import Authentication, Route, RouteTable

blueprint = Blueprint(__name__)

CACHED_SECONDS = 300
"""API Gateway caches the answer for this long, also for a token that is revoked meanwhile."""
METHODS = ["GET", "PATCH", "POST", "PUT"]
"""A `*` in place of a method would match the beginning of any other path too."""
ALL = ["*"]
OF_USERS = [AuthRoute("/api/v1/wallets", METHODS), AuthRoute("/api/v1/wallets/*", METHODS)]
"""A user's token is valid for the routes of wallets, which check whose token it is."""
ANY_TYPE = ["*/*"]
"""The `content_types` of a route. With fewer, Chalice refuses other types of bodies."""
NOT_UTF_8 = b"\xff"


@blueprint.authorizer(name="authorize", ttl_seconds=CACHED_SECONDS)
def authorize(request: AuthRequest) -> AuthResponse:
    """Allow all routes for an operator's token, those of wallets for a user's, else none.

    The context has `role`, `user` and the token's `name`. The answer names all allowed routes,
    because API Gateway caches it for every route.
    """
    telemetry.begin("authorize", None)
    try:
        caller = authenticate(request.token, resources.current())
    except ClientError:
        return AuthResponse([], "nobody", {})
    allowed = ALL if caller.is_operator else OF_USERS
    return AuthResponse([*allowed], caller.user or str(caller.role), caller.fields)


def register(app: Chalice, table: RouteTable) -> None:
    """Register each route of a table with a Chalice app."""
    for route in table.routes:
        options = {} if route.authentication is Authentication.NONE else {"authorizer": authorize}
        decorate = app.route(route.path, methods=route.methods, content_types=ANY_TYPE, **options)
        decorate(_view(app, table, route))


def _view(app: Chalice, table: RouteTable, route: Route) -> Callable[..., ChaliceResponse]:
    """Return the function that Chalice calls with a route's path parameters."""

    def view(**_: str) -> ChaliceResponse:
        if app.current_request is None:
            raise RuntimeError("Chalice calls a view without a request")
        request = to_request(app.current_request, route.path)
        response = dispatch(table, request, resources.current(), app.lambda_context)
        # A REST API returns a picture only if `Accept` begins with its type. Otherwise Chalice
        # refuses. It takes text as text.
        body = response.body if response.is_binary else response.body.decode()
        return ChaliceResponse(body, dict(response.headers), response.status)

    view.__doc__ = route.handler.__doc__  # the summary of the route in the template
    return view


def to_request(request: ChaliceRequest, path: str) -> Request:
    """Return the request of a REST API for a template of a path.

    API Gateway has found the resource. The path of its event may have a stage or a slash more.
    """
    parameters = request.uri_params or {}
    encoded = {name: quote(unquote(value), safe="") for name, value in parameters.items()}
    return Request(
        method=request.method,
        path=path.format(**encoded),
        query=request.to_original_event()["multiValueQueryStringParameters"] or {},
        headers=dict(request.headers),
        body=_body(request),
        caller=Caller.of(request.context.get("authorizer") or {}),
    )


def _body(request: ChaliceRequest) -> bytes:
    """Return the body. A text that UTF-8 can't encode becomes bytes that are not UTF-8."""
    try:
        body = request.raw_body
    except UnicodeEncodeError:
        return NOT_UTF_8
    return body if isinstance(body, bytes) else body.encode()
