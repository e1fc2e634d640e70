"""`api_handler`'s description of every route, `openapi.json`: OpenAPI 3.1, written by hand."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from chalice.app import Blueprint, Response

from chalicelib.http.responses import ANY_TYPE

blueprint = Blueprint(__name__)

FILE = Path(__file__).with_name("openapi.json")
SECONDS_KEPT = 300
"""How long a cache may keep it."""


@blueprint.route("/openapi.json", methods=["GET", "HEAD"], content_types=ANY_TYPE)
def get_description() -> Response:
    """The description, which a page of any host may read."""
    headers = {
        "Content-Type": "application/json",
        "Cache-Control": f"public, max-age={SECONDS_KEPT}",
        "Access-Control-Allow-Origin": "*",
        "X-Content-Type-Options": "nosniff",
    }
    return Response(text(), headers=dict(headers))


@cache
def text() -> str:
    """The description as it is sent. Read when first asked for: no badge needs it."""
    return FILE.read_text(encoding="utf-8")
