"""The responses that GitHub and shields.io draw: always with status 200, and never cached."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chalicelib.badges.badge import Badge
from chalicelib.http import responses
from chalicelib.http.messages import Response
from chalicelib.lazy import lazy

if TYPE_CHECKING:
    from chalicelib.badges import svg
else:
    svg = lazy("chalicelib.badges.svg")

HEADERS = {
    "Cache-Control": "max-age=0, no-cache, no-store, must-revalidate",
    "Pragma": "no-cache",
    "Expires": "Thu, 01 Jan 1970 00:00:00 GMT",
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
}
"""The headers of every badge. Without them, GitHub's image proxy keeps a badge for a year."""


def badge_json(badge: Badge) -> Response:
    """Return a badge as JSON for shields.io."""
    return responses.json(badge.to_json(), headers=HEADERS)


def badge_svg(badge: Badge) -> Response:
    """Return a badge as an SVG image."""
    return image(svg.draw(badge))


def image(document: str) -> Response:
    """Return an SVG document."""
    headers = {"Content-Type": "image/svg+xml;charset=utf-8", **HEADERS}
    return Response(200, headers, document.encode())
