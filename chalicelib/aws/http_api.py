"""The adapter of an HTTP API or a function URL: events of payload format 2.0 become requests.

The functions `get_views` and `api_handler` of the one stack use it. It needs no Chalice. Source:
the API Gateway developer guide, "Create AWS Lambda proxy integrations for HTTP APIs".
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from chalicelib.aws import resources
from chalicelib.http import errors, query
from chalicelib.http.dispatch import dispatch
from chalicelib.http.errors import ClientError, ForbiddenError
from chalicelib.http.messages import Caller, Request, Response
from chalicelib.lazy import lazy

if TYPE_CHECKING:
    import gzip

    from chalicelib.http.routing import RouteTable
else:
    gzip = lazy("gzip")

Event = Mapping[str, Any]
FUNCTION_URL = ".lambda-url."
"""A part of each function URL's domain."""
DEFAULT_STAGE = "$default"
ACCEPTS_GZIP = re.compile(r"(?i)\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))")
"""The header `Accept-Encoding` of a client that accepts gzip (RFC 9110, 12.5.3)."""
COMPRESSED_BYTES = 1_400
"""The smallest body that is compressed. A smaller one fits into one packet."""


def answer(table: RouteTable, event: Event, context: Any) -> dict[str, Any]:
    """Answer a request by a table; check its token here if there is no Lambda authorizer."""
    try:
        request = to_request(event)
    except ClientError as refusal:
        return _to_event(errors.to_response(refusal))
    response = dispatch(table, request, resources.current(), context)
    return _to_event(response, request.headers.get("accept-encoding", ""))


def to_request(event: Event) -> Request:
    """Return the request of an event.

    Raises `ForbiddenError` for an unknown role, `BadRequestError` for a query that is too long.
    """
    authorizer = event["requestContext"].get("authorizer") or {}
    caller = Caller.of(authorizer.get("lambda") or {})
    if caller is None and "lambda" in authorizer:
        raise ForbiddenError("the authorizer names no known role")
    headers = {name.lower(): value for name, value in event["headers"].items()}
    if event.get("cookies"):
        headers["cookie"] = "; ".join(event["cookies"])
    return Request(
        method=event["requestContext"]["http"]["method"],
        path=_path(event),
        query=query.parse(event["rawQueryString"]),
        headers=headers,
        body=_body(event),
        caller=caller,
    )


def _path(event: Event) -> str:
    """Return the path, percent-encoded, without the stage.

    `rawPath` never has the base path of a custom domain. An HTTP API decodes it, so an id with a
    slash has to be in the query; a function URL doesn't decode it.
    """
    context, path = event["requestContext"], str(event["rawPath"])
    if context.get("stage", DEFAULT_STAGE) != DEFAULT_STAGE:
        path = path.removeprefix(f"/{context['stage']}") or "/"
    return path if FUNCTION_URL in context["domainName"] else quote(path)


def _body(event: Event) -> bytes:
    body: str = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()


def _to_event(response: Response, accepted: str = "") -> dict[str, Any]:
    """Return the event of a response, compressed if it is large and its client accepts gzip.

    The same body always has the same compressed bytes.
    """
    is_large = len(response.body) >= COMPRESSED_BYTES and not response.is_binary
    headers = dict(response.headers) | ({"Vary": "Accept-Encoding"} if is_large else {})
    is_compressed = is_large and bool(ACCEPTS_GZIP.search(accepted))
    body = response.body
    if is_compressed:
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body, mtime=0)
    is_encoded = is_compressed or response.is_binary
    return {
        "statusCode": response.status,
        "headers": headers,
        "body": (base64.b64encode(body) if is_encoded else body).decode(),
        "isBase64Encoded": is_encoded,
    }
