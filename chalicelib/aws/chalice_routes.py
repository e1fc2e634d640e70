"""The routes of the Chalice app, through which a REST API calls the table of routes."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import unquote

from chalice.app import Chalice
from chalice.app import Request as ChaliceRequest
from chalice.app import Response as ChaliceResponse

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.aws.authorizer import authorize
from chalicelib.http.dispatch import handle
from chalicelib.http.messages import Caller, Request, Response
from chalicelib.http.routing import Authentication, Route, RouteTable

ANY_TYPE = ["*/*"]
"""The `content_types` of a route. With fewer, Chalice refuses other types of bodies."""
NOT_UTF_8 = b"\xff"


def register(app: Chalice, table: RouteTable) -> None:
    """Register each route of a table with a Chalice app."""
    for route in table.routes:
        options = {} if route.authentication is Authentication.NONE else {"authorizer": authorize}
        decorate = app.route(route.path, methods=route.methods, content_types=ANY_TYPE, **options)
        decorate(_view(app, route))


def _view(app: Chalice, route: Route) -> Callable[..., ChaliceResponse]:
    """Return the function that Chalice calls with a route's path parameters."""

    def view(**_: str) -> ChaliceResponse:
        telemetry.begin("api_handler", app.lambda_context)
        if app.current_request is None:
            raise RuntimeError("Chalice calls a view without a request")
        request = to_request(app.current_request)
        return _to_chalice(handle(route, request, resources.current()))

    view.__doc__ = route.handler.__doc__  # the summary of the route in the template
    return view


def to_request(request: ChaliceRequest) -> Request:
    """Return the request of a REST API as a `Request`.

    `chalice local` puts the path only into the context, where API Gateway has the stage as well.
    """
    event = request.to_original_event()
    parameters = request.uri_params or {}
    return Request(
        method=request.method,
        path=unquote(event.get("path") or request.context["path"]),
        path_parameters={name: unquote(value) for name, value in parameters.items()},
        query=event["multiValueQueryStringParameters"] or {},
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


def _to_chalice(response: Response) -> ChaliceResponse:
    """Return a response for Chalice, which takes text as text.

    A REST API returns a picture only if `Accept` begins with its type. Otherwise Chalice refuses.
    """
    body = response.body if response.is_binary else response.body.decode()
    return ChaliceResponse(body, dict(response.headers), response.status)
