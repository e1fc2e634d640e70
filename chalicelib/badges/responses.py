"""The responses that GitHub and shields.io draw: always with status 200, and never cached."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from chalicelib.badges.badge import Badge
from chalicelib.badges.options import PIXEL
from chalicelib.http import responses
from chalicelib.http.messages import Response
from chalicelib.http.routing import FailureHandler
from chalicelib.lazy import lazy

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
JSON_HEADERS = {**responses.TYPES, **HEADERS}
SVG_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox",
}
"""The headers of every image. One that is opened as a page has no script and loads nothing."""
PIXEL_IMAGE = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'


def badge_json(badge: Badge) -> Response:
    """Return a badge as JSON for shields.io."""
    return Response(200, JSON_HEADERS, responses.to_compact_json(badge.to_json()).encode())


def badge_svg(badge: Badge) -> Response:
    """Return a badge as an SVG image, or the pixel that a badge of this style is."""
    return image(PIXEL_IMAGE if badge.style == PIXEL else svg.draw(badge))


def json_failure(draw: Callable[[Exception], Badge]) -> FailureHandler:
    """Return the handler that answers a failure with a badge as JSON."""
    return lambda failure, _: badge_json(draw(failure))


def svg_failure(draw: Callable[[Exception], Badge]) -> FailureHandler:
    """Return the handler that answers a failure with a badge as an SVG image."""
    return lambda failure, _: badge_svg(draw(failure))


def image(document: str) -> Response:
    """Return an SVG document."""
    headers = {"Content-Type": "image/svg+xml;charset=utf-8", **HEADERS, **SVG_HEADERS}
    return Response(200, headers, document.encode())
