"""`api_handler`'s page at `/`: choose a badge, see it, copy its line; one file, no other host."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from chalice.app import Blueprint, Response

from chalicelib.http.responses import ANY_TYPE

blueprint = Blueprint(__name__)

FILE = Path(__file__).with_name("page.html")
SECONDS_KEPT = 300
"""How long a cache may keep the page: a new version is seen by all after that."""


@blueprint.route("/", methods=["GET", "HEAD"], content_types=ANY_TYPE)
def get_page() -> Response:
    """The page, which may run and load nothing but what stands in it and the badges it shows."""
    page = text()
    headers = {
        "Content-Type": "text/html;charset=utf-8",
        "Cache-Control": f"public, max-age={SECONDS_KEPT}",
        "Content-Security-Policy": policy(page),
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(page, headers=dict(headers))


@cache
def text() -> str:
    """The page as it is sent."""
    return FILE.read_text(encoding="utf-8")


@cache
def policy(page: str) -> str:
    """The Content-Security-Policy that lets the page's own style and script through, by hash.

    Source: W3C, "Content Security Policy Level 3".
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_hash(page, 'script')}'",
            f"style-src '{_hash(page, 'style')}'",
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _hash(page: str, element: str) -> str:
    """Of all that stands in the page's one element of this name."""
    from base64 import b64encode  # noqa: PLC0415  a badge's cold start does not pay for it
    from hashlib import sha256  # noqa: PLC0415

    _, _, opened = page.partition(f"<{element}>")
    inside, _, _ = opened.partition(f"</{element}>")
    return f"sha256-{b64encode(sha256(inside.encode()).digest()).decode()}"
