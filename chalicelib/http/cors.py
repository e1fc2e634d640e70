"""The leave for scripts of other sites (Fetch standard, "CORS protocol").

Browsers show such a script only responses with this header. A request without a header of the
script's own needs no more. Before any other one, a browser asks with OPTIONS.
"""

from __future__ import annotations

from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import RouteTable

ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
"""The header of each response of a route with `from_any_site`. It excludes cookies."""
PREFLIGHT_SECONDS = 86_400
"""The time for which a browser need not ask again. Chromium asks after two hours."""


def answer_preflight(table: RouteTable, request: Request) -> Response | None:
    """Allow the request that a browser asks for, or return None if its route is for no other site.

    The star allows all headers but `Authorization`.
    """
    match = table.find(request.path)
    method = request.headers.get("access-control-request-method", "")
    route = match.routes.get(method) if match else None
    if request.method != "OPTIONS" or route is None or not route.from_any_site:
        return None
    headers = {
        "Access-Control-Allow-Methods": method,
        "Access-Control-Allow-Headers": "*",
        "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
    }
    return Response(204, {**ANY_ORIGIN, **headers})
