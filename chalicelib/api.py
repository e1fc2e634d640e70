"""The one table of routes, of all features."""

from __future__ import annotations

from chalicelib.events import routes as events
from chalicelib.http import openapi, page
from chalicelib.http.routing import RouteTable
from chalicelib.views import history_routes, owner_routes
from chalicelib.views import routes as views
from chalicelib.wallets import routes as wallets

TABLE = RouteTable(
    (
        *views.ROUTES,
        *history_routes.ROUTES,
        *owner_routes.ROUTES,
        *page.ROUTES,
        *openapi.ROUTES,
        *events.ROUTES,
        *wallets.ROUTES,
    )
)
