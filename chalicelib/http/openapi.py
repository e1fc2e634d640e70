"""The route of the OpenAPI description, `openapi.json`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import Route

if TYPE_CHECKING:
    from chalicelib.resources import Resources

FILE = Path(__file__).with_name("openapi.json")
HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": "public, max-age=300",
    "Access-Control-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
}


def get_description(_: Request, __: Resources) -> Response:
    """Answer the description, which a page of any host may read."""
    return Response(200, HEADERS, text().encode())


@cache
def text() -> str:
    """Read the description when it is first asked for: no badge needs it."""
    return FILE.read_text(encoding="utf-8")


ROUTES = (Route("GET", "/openapi.json", get_description, with_head=True),)
