"""The route of other counters' URLs, whose badges are those of the route of views."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from chalicelib.http import errors
from chalicelib.http.errors import NotFoundError
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import ANY_OPTIONS, Route
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.views import routes

if TYPE_CHECKING:
    from chalicelib.views import drop_in
else:
    drop_in = lazy("chalicelib.views.drop_in")

JSON = ".json"
"""The end of the paths that answer a badge as JSON."""


def get_drop_in(request: Request, resources: Resources) -> Response:
    """Count a view of the badge that a URL of another counter names, and answer the badge."""
    query = drop_in.translate(request.path, request.query, resources.settings.drop_in)
    answer = routes.get_views if _is_json(request) else routes.get_views_svg
    return answer(replace(request, query=query), resources)


def _fail(failure: Exception, request: Request) -> Response:
    """Draw a failure, but answer a path that is no counter's like any path without a route."""
    if isinstance(failure, NotFoundError):
        return errors.to_response(failure)
    draw = routes.JSON_FAILURE if _is_json(request) else routes.SVG_FAILURE
    return draw(failure, request)


def _is_json(request: Request) -> bool:
    return request.path.endswith(JSON)


ROUTE = Route(
    "GET",
    "/{path+}",
    get_drop_in,
    with_head=True,
    on_failure=_fail,
    from_any_site=True,
    options=ANY_OPTIONS,
)
