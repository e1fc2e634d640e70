"""The one table of routes, of all features, and the description of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Protocol

from chalicelib.counting.view import CountingResources
from chalicelib.events import routes as events
from chalicelib.events.routes import EventResources
from chalicelib.history import routes as history_routes
from chalicelib.history.routes import TopResources
from chalicelib.http import page, responses
from chalicelib.http.authentication import AuthenticationResources
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import ANY_OPTIONS, RouteTable, public_read
from chalicelib.lazy import lazy
from chalicelib.owners import bans
from chalicelib.owners import routes as owner_routes
from chalicelib.owners.routes import OwnerResources
from chalicelib.pages import badge_page, owned_badges, service
from chalicelib.pages import badge_routes as views
from chalicelib.pages.badge_routes import ViewResources
from chalicelib.wallets import routes as wallets

if TYPE_CHECKING:
    from chalicelib import description
    from chalicelib.migration import drop_in
    from chalicelib.resources import Resources
    from chalicelib.settings import Feature
    from chalicelib.storage.ports import Archive
else:
    description, drop_in = lazy("chalicelib.description"), lazy("chalicelib.migration.drop_in")

DESCRIPTION_HEADERS = {
    "Content-Type": "application/json",
    "Cache-Control": f"public, max-age={page.CACHED_SECONDS}",
    **responses.NOSNIFF,
}


class ProcessResources(
    AuthenticationResources,
    ViewResources,
    TopResources,
    CountingResources,
    OwnerResources,
    EventResources,
    Protocol,
):
    """Everything outside the process that the routes and consumers of all features use.

    `chalicelib.aws.resources` has it for AWS, and `vumi.resources` for one machine.
    """

    @property
    def archive(self) -> Archive: ...


def get_description(_: Request, resources: Resources) -> Response:
    """Return the OpenAPI description, which a page of any host may read."""
    return Response(200, DESCRIPTION_HEADERS, _description(resources.settings.features))


@cache
def _description(features: frozenset[Feature]) -> bytes:
    """Generate the description on the first request for it, so that no badge is slower."""
    on = [route for route in TABLE.routes if route.feature is None or route.feature in features]
    return description.text(on).encode()


TABLE = RouteTable(
    (
        *views.ROUTES,
        *history_routes.ROUTES,
        *badge_page.ROUTES,
        *owner_routes.ROUTES,
        *owned_badges.ROUTES,
        *bans.ROUTES,
        *service.ROUTES,
        public_read("/openapi.json", get_description, options=ANY_OPTIONS),
        *events.ROUTES,
        *wallets.ROUTES,
    )
)


@cache
def table_of(counters: Sequence[str]) -> RouteTable:
    """Return the table with the URLs of other counters, which the setting `DROP_IN` names.

    They come last, so that no path of another route is one of theirs.
    """
    return RouteTable((*TABLE.routes, drop_in.ROUTE)) if counters else TABLE
