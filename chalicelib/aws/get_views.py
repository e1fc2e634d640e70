"""`get_views`: the function of the one stack that answers view badges, their history and pages.

It imports no other feature, so that its cold start is short, and its role has no other items.
"""

from __future__ import annotations

from typing import Any

from chalicelib.aws import http_api, resources
from chalicelib.history import routes as history_routes
from chalicelib.http.routing import RouteTable
from chalicelib.pages import badge_page
from chalicelib.pages import badge_routes as routes

TABLE = RouteTable((*routes.ROUTES, *history_routes.ROUTES, *badge_page.ROUTES))
resources.connect()


def handler(event: http_api.Event, context: Any) -> dict[str, Any]:
    """Answer a request for a badge of views."""
    return http_api.answer(TABLE, event, context)
