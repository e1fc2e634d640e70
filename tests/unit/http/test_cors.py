"""Scripts of other sites: the responses that they may read, and the requests that they may send."""

from __future__ import annotations

import pytest

from chalicelib.api import TABLE
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request
from chalicelib.http.routing import Authentication, Route
from chalicelib.owners import routes as owner_routes
from chalicelib.pages import owned_badges
from chalicelib.resources import Action
from simulation.clocks import NOON
from simulation.memory_table import MemoryTable
from simulation.resources import GivenResources
from tests.unit import http_requests
from tests.unit.http_requests import Answer
from vumi.server.client_limits import ClientLimits, Rate

ORIGIN = "Access-Control-Allow-Origin"
SITE = "https://me.example"
VIEWS = "/api/v1/views"
BY_NAME = {f"{route.method} {route.path}": route for route in TABLE.routes}
READS = [
    name
    for name, route in BY_NAME.items()
    if route.method == "GET"
    and route.authentication is Authentication.NONE
    and route not in (*owner_routes.ROUTES, *owned_badges.ROUTES)
]
OTHERS = sorted({*BY_NAME} - {*READS, f"POST {VIEWS}"})


def answer(route: Route, **query: list[str]) -> Answer:
    request = Request(route.method, route.path, query=query, headers={"origin": SITE, "host": "me"})
    return Answer(dispatch(TABLE, request, GivenResources(MemoryTable())))


@pytest.mark.parametrize("name", [*READS, f"POST {VIEWS}"])
def test_every_public_response_but_a_page_may_be_read_and_its_errors_too(name: str) -> None:
    is_page = answer(BY_NAME[name], id=["a"]).headers["Content-Type"].startswith("text/html")
    for query in ({"id": ["a"]}, {"id": ["a", "b"]}, {}):
        origin = answer(BY_NAME[name], **query).headers.get(ORIGIN)
        assert origin == (None if is_page else "*")


@pytest.mark.parametrize("name", OTHERS)
def test_no_response_to_a_token_a_secret_or_a_change_may_be_read(name: str) -> None:
    assert ORIGIN not in answer(BY_NAME[name]).headers


def test_a_refusal_before_the_route_may_be_read() -> None:
    limits = ClientLimits({Action.REQUEST: Rate(1, 60)}, lambda: NOON)
    resources = GivenResources(MemoryTable(), limits=limits)
    asked = [
        http_requests.ask(resources, "GET", f"{VIEWS}/history?id=a", client="192.0.2.1")
        for _ in range(2)
    ]
    assert [one.status for one in asked] == [200, 429]
    assert asked[1].headers[ORIGIN] == "*"


@pytest.mark.parametrize(
    ("path", "method"),
    [
        (VIEWS, "POST"),
        (VIEWS, "GET"),
        (VIEWS, "HEAD"),
        (f"{VIEWS}/history", "GET"),
        ("/api/v1/events/x/badge", "GET"),
    ],
)
def test_a_browser_that_asks_first_may_send_a_public_request_with_headers(
    path: str, method: str
) -> None:
    """A script that sets `Content-Type: application/json` makes its browser ask."""
    asked = http_requests.ask(
        GivenResources(),
        "OPTIONS",
        f"{path}?id=a",
        origin=SITE,
        access_control_request_method=method,
        access_control_request_headers="content-type,traceparent",
    )
    assert asked.status == 204
    assert asked.text == ""
    assert asked.headers == {
        ORIGIN: "*",
        "Access-Control-Allow-Methods": method,
        "Access-Control-Allow-Headers": "*",
        "Access-Control-Max-Age": "86400",
    }
