"""The Lambda handler for the events of an HTTP API or a function URL, payload format 2.0.

It needs no Chalice. Source: the API Gateway developer guide, "Create AWS Lambda proxy integrations
for HTTP APIs".
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from chalicelib.api import TABLE
from chalicelib.aws import resources
from chalicelib.http import errors, query
from chalicelib.http.dispatch import dispatch
from chalicelib.http.errors import ClientError, ForbiddenError
from chalicelib.http.messages import Caller, Request, Response

Event = Mapping[str, Any]
FUNCTION_URL = ".lambda-url."
"""A part of each function URL's domain."""
DEFAULT_STAGE = "$default"


def handler(event: Event, context: Any) -> dict[str, Any]:
    """Answer a request; check its token here if there is no Lambda authorizer."""
    try:
        request = to_request(event)
    except ClientError as refusal:
        return _to_event(errors.to_response(refusal))
    return _to_event(dispatch(TABLE, request, resources.current(), context))


def to_request(event: Event) -> Request:
    """Return the request of an event.

    Raises `ForbiddenError` for an unknown role, `BadRequestError` for a query that is too long.
    """
    headers = {name.lower(): value for name, value in event["headers"].items()}
    if event.get("cookies"):
        headers["cookie"] = "; ".join(event["cookies"])
    return Request(
        method=event["requestContext"]["http"]["method"],
        path=_path(event),
        query=query.parse(event["rawQueryString"]),
        headers=headers,
        body=_body(event),
        caller=_caller(event["requestContext"].get("authorizer") or {}),
    )


def _path(event: Event) -> str:
    """Return the path, percent-encoded, without the stage.

    An HTTP API decodes `rawPath`, so an id with a slash has to be in the query; a function URL
    doesn't decode it.
    """
    context, path = event["requestContext"], str(event["rawPath"])
    if context.get("stage", DEFAULT_STAGE) != DEFAULT_STAGE:
        path = path.removeprefix(f"/{context['stage']}") or "/"
    return path if FUNCTION_URL in context["domainName"] else quote(path)


def _body(event: Event) -> bytes:
    body: str = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()


def _caller(authorizer: Mapping[str, Any]) -> Caller | None:
    """Return the caller by the authorizer's context, None without a Lambda authorizer."""
    if "lambda" not in authorizer:
        return None
    caller = Caller.of(authorizer["lambda"] or {})
    if caller is None:
        raise ForbiddenError("the authorizer names no known role")
    return caller


def _to_event(response: Response) -> dict[str, Any]:
    return {
        "statusCode": response.status,
        "headers": dict(response.headers),
        "body": response.body.decode(),
        "isBase64Encoded": False,
    }
