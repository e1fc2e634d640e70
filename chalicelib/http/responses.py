"""HTTP answers of the API: badges, which are always 200, and errors, which are not."""

from __future__ import annotations

from typing import Any

from chalice.app import Response

BADGE_HEADERS = {
    "Cache-Control": "max-age=0, no-cache, no-store, must-revalidate",
    "Pragma": "no-cache",
    "Expires": "Thu, 01 Jan 1970 00:00:00 GMT",
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
}
"""No cache may keep a badge: GitHub's image proxy keeps it a year unless told so."""

ANY_TYPE = ["*/*"]
"""The `content_types` of a route: with fewer Chalice refuses a request, with 415, for the type of a
body that it need not have."""

RETRY_SECONDS = "1"


def badge(body: dict[str, Any]) -> Response:
    """A badge, for an error too: shields.io and GitHub draw nothing for a status but 200."""
    return Response(body, headers={"Content-Type": "application/json", **BADGE_HEADERS})


def svg(text: str) -> Response:
    """A picture, answered as a badge is."""
    return Response(text, headers={"Content-Type": "image/svg+xml;charset=utf-8", **BADGE_HEADERS})


def answer(body: dict[str, Any], status: int = 200) -> Response:
    """Anything that is no badge."""
    headers = {"Content-Type": "application/json", "Cache-Control": "no-store"}
    return Response(body, headers=dict(headers), status_code=status)


def error(status: int, code: str, message: str) -> Response:
    """`{"error": {"code", "message"}}`, as every route but a badge's answers an error."""
    return answer({"error": {"code": code, "message": message}}, status)


def unavailable(message: str) -> Response:
    """503, and when to ask again."""
    refused = error(503, "unavailable", message)
    refused.headers["Retry-After"] = RETRY_SECONDS
    return refused
