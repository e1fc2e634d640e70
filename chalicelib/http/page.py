"""The page at `/`, and what all pages have: how their heads and styles begin, and their headers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chalicelib.http import responses
from chalicelib.http.messages import Response
from chalicelib.lazy import lazy

if TYPE_CHECKING:
    import base64
    import hashlib
else:
    base64, hashlib = lazy("base64"), lazy("hashlib")

HEAD = Path(__file__).with_name("head.html")
FILE = Path(__file__).with_name("page.html")
"""The page at `/`, whose pictures `chalicelib.pages.service` draws."""
CACHED_SECONDS = 300
"""The time for which a cache may keep the page. After it, everybody sees a new version."""

FEATURES = """
accelerometer camera display-capture geolocation gyroscope magnetometer microphone midi payment usb
"""
"""Features of a browser that neither the page nor anything in it may use."""
PERMISSIONS = ", ".join(f"{feature}=()" for feature in FEATURES.split())


def respond(page: str) -> Response:
    """Answer a page, which can run and load nothing but its own content and this server's."""
    cached = {"Cache-Control": f"public, max-age={CACHED_SECONDS}"}
    return Response(200, {**restrictions(page), **cached}, page.encode())


def restrictions(page: str) -> Mapping[str, str]:
    """Return the headers of a page, or of pages that are made from a template."""
    return {
        "Content-Type": "text/html;charset=utf-8",
        "Content-Security-Policy": policy(page),
        "Permissions-Policy": PERMISSIONS,
        "Cross-Origin-Opener-Policy": "same-origin",
        "Referrer-Policy": "no-referrer",
        **responses.NOSNIFF,
    }


@cache
def load(file: Path, style: str = "") -> str:
    """Read a page once, and add the common beginning of heads, and of styles or another style."""
    head, _, common = HEAD.read_text(encoding="utf-8").partition("<style>\n")
    page = file.read_text(encoding="utf-8").replace("<head>\n", f"<head>\n{head}", 1)
    return page.replace("<style>\n", f"<style>\n{style or common}", 1)


def style() -> str:
    """Return the style of the page at `/`, with which another page may begin its own."""
    return _inside(load(FILE), "style")


@cache
def policy(page: str) -> str:
    """Return the Content-Security-Policy that allows the page's own style and script, by hash.

    Source: W3C, "Content Security Policy Level 3".
    """
    return "; ".join(
        (
            "default-src 'none'",
            *(
                f"{element}-src '{_hash(page, element)}'"
                for element in ("script", "style")
                if f"<{element}>" in page
            ),
            "img-src 'self' data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )


def _hash(page: str, element: str) -> str:
    """Hash the content of the page's one element of this name."""
    inside = _inside(page, element)
    return f"sha256-{base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()}"


def _inside(page: str, element: str) -> str:
    _, _, opened = page.partition(f"<{element}>")
    inside, _, _ = opened.partition(f"</{element}>")
    return inside
