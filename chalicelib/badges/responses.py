"""The responses that GitHub and shields.io draw: always with status 200, and never cached."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from chalicelib import telemetry
from chalicelib.badges.options import PIXEL, Badge
from chalicelib.http import responses
from chalicelib.http.errors import ClientError
from chalicelib.http.messages import Request, Response, Unchanging
from chalicelib.http.routing import Handler, Route, public_read
from chalicelib.lazy import lazy
from chalicelib.storage.errors import StorageError

if TYPE_CHECKING:
    from chalicelib.badges import svg
else:
    svg = lazy("chalicelib.badges.svg")

HEADERS = {
    "Cache-Control": "max-age=0, no-cache, no-store, must-revalidate",
    "Pragma": "no-cache",
    "Expires": "Thu, 01 Jan 1970 00:00:00 GMT",
    **responses.NOSNIFF,
}
"""The headers of every badge. Without them, GitHub's image proxy keeps a badge for a year."""
JSON_HEADERS = Unchanging({**responses.TYPES, **HEADERS})
SVG_HEADERS = Unchanging(
    {
        "Content-Type": "image/svg+xml;charset=utf-8",
        **HEADERS,
        "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
    }
)
"""The headers of every image. One that is opened as a page has no script and loads nothing."""
IMAGE = ".svg"
"""The end of the path of a badge that is an image."""
MAX_LOOKS = 256
"""Looks of badges whose JSON is cached, because a README asks for the same one on every visit."""
PIXEL_IMAGE = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'


def explain(failure: Exception, failed: str = "") -> str:
    """Return the text of a badge for an exception that is being handled.

    Log the exception unless it is the caller's. `failed` is the text for one that is not.
    """
    if isinstance(failure, ClientError):
        return str(failure)
    telemetry.event(logging.ERROR, "badge_failed")
    what = "unavailable" if isinstance(failure, StorageError) else "internal error"
    return failed or f"{what}: try again"


def badge_json(badge: Badge) -> Response:
    """Return a badge as JSON for shields.io."""
    before, after = _around_message(badge.label, badge[2:])
    body = f"{before}{responses.to_compact_json(badge.message)}{after}"
    return Response(200, JSON_HEADERS, body.encode())


@lru_cache(MAX_LOOKS)
def _around_message(label: str, look: tuple[Any, ...]) -> tuple[str, str]:
    """Return the JSON before and after the message of a badge; `look` has what follows that."""
    badge = Badge(label, "", *look)
    whole = responses.to_compact_json(badge.to_json())
    before, key, after = whole.partition('"message":')
    return before + key, after.removeprefix('""')


def badge_svg(badge: Badge) -> Response:
    """Return a badge as an SVG image, or the pixel that a badge of this style is."""
    return image(PIXEL_IMAGE if badge.style == PIXEL else svg.draw(badge))


def respond(badge: Badge, request: Request) -> Response:
    """Return a badge in the form that the path of a request names."""
    return badge_svg(badge) if request.path.endswith(IMAGE) else badge_json(badge)


def badge_route(
    handler: Handler, draw_failure: Callable[[Exception], Badge], **more: Any
) -> partial[Route]:
    """Return a route of badges without its path, whose failures are drawn."""

    def on_failure(failure: Exception, request: Request) -> Response:
        return respond(draw_failure(failure), request)

    return partial(public_read, handler=handler, on_failure=on_failure, **more)


def image(document: str) -> Response:
    """Return an SVG document."""
    return Response(200, SVG_HEADERS, document.encode())
