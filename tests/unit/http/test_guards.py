"""The guards: pages of other sites change nothing, and a client waits when it asks too often."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from chalicelib.api import TABLE
from chalicelib.http import query
from chalicelib.http.dispatch import dispatch
from chalicelib.http.fields import Field, Options
from chalicelib.http.messages import Caller, Request, Response, Role
from chalicelib.http.routing import ANY_OPTIONS, Authentication, Route, RouteTable
from chalicelib.owners import routes as owner_routes
from chalicelib.pages import owned_badges
from chalicelib.resources import Action, Resources
from chalicelib.settings import Feature, Settings
from simulation.resources import GivenResources
from simulation.storage import MemoryTable
from tests.unit import http_requests
from tests.unit.http_requests import Answer
from vumi.server.clients import ClientLimits, Rate

HOST = "views.example.com"
CLIENT = "192.0.2.1"


def answer(_: Request, __: Resources) -> Response:
    return Response(204)


def draw(failure: Exception, request: Request) -> Response:
    return Response(200, body=f"{request.path}: {failure}".encode())


class Known(Options):
    """Options with names that a wrong one is near to."""

    color = Field(str, {}, default="")
    label = Field(str, {}, default="")
    label_color = Field(str, {}, name="labelColor", default="")


PATH = "/{name}"
ROUTES = RouteTable(
    (
        Route("GET", PATH, answer, on_failure=draw),
        *(Route(method, PATH, answer) for method in ("POST", "PUT", "PATCH", "DELETE")),
        Route("POST", "/any", answer, from_any_site=True),
        Route("GET", "/options", answer, options=Known),
        Route("GET", "/tokenless", answer),
        Route("GET", "/page", answer, options=ANY_OPTIONS),
        Route("GET", "/tokens", answer, Authentication.TOKEN),
        Route("POST", "/operated", answer, Authentication.TOKEN),
        Route("GET", "/timers", answer, Authentication.TOKEN, feature=Feature.EVENTS),
        Route("GET", "/coins/badge", answer, on_failure=draw, feature=Feature.WALLETS),
    )
)


def ask(
    method: str = "POST", path: str = "/x", resources: GivenResources | None = None, **headers: str
) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request(method, path, headers={"host": HOST, **named}, client=CLIENT)
    return dispatch(ROUTES, request, resources or GivenResources())


def refusal(response: Response) -> tuple[int, str]:
    return response.status, json.loads(response.body)["error"]["code"]


# ---- sites


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("site", ["cross-site", "same-site", "", "Same-Origin", "new-word"])
def test_a_browser_that_names_another_site_changes_nothing(method: str, site: str) -> None:
    response = ask(method, sec_fetch_site=site, origin=f"https://{HOST}")
    assert refusal(response) == (403, "cross_site")


@pytest.mark.parametrize("site", ["same-origin", "none"])
def test_a_browser_on_the_own_site_is_believed_whatever_a_proxy_made_of_the_host(site: str) -> None:
    assert ask(sec_fetch_site=site, origin="https://another.example").status == 204


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://evil.example",
        f"https://{HOST}.evil.example",
        f"https://{HOST}:8443",
        f"https://evil.example/{HOST}",
        f"https://user@{HOST}",
        "https://[",
        HOST,
    ],
)
def test_an_older_browser_with_another_origin_changes_nothing(origin: str) -> None:
    assert refusal(ask(origin=origin)) == (403, "cross_site")
    assert refusal(ask(origin=origin, host="")) == (403, "cross_site")


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        (f"https://{HOST}", HOST),
        ("http://VIEWS.example.com", "Views.Example.com"),
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://[::1]:8000", "[::1]:8000"),
    ],
)
def test_an_older_browser_on_the_own_site_may_change_something(origin: str, host: str) -> None:
    assert ask(origin=origin, host=host).status == 204


def test_a_program_sends_neither_header_and_a_reader_may_come_from_any_site() -> None:
    assert ask().status == 204
    assert ask("GET", sec_fetch_site="cross-site", origin="null").status == 204


def test_a_route_may_allow_every_site() -> None:
    assert ask(path="/any", sec_fetch_site="cross-site").status == 204
    assert refusal(ask(path="/other", sec_fetch_site="cross-site")) == (403, "cross_site")


def test_every_writing_route_of_the_product_but_that_of_a_view_refuses_other_sites() -> None:
    """The refusal comes before the body and the secret are read."""
    writing = [
        route
        for route in TABLE.routes
        if route.method not in {"GET", "HEAD"} and route.path != "/api/v1/views"
    ]
    assert len(writing) > 8
    for route in writing:
        headers, caller = {"sec-fetch-site": "cross-site"}, Caller(Role.OPERATOR)
        request = Request(route.method, route.path, headers=headers, caller=caller)
        assert refusal(dispatch(TABLE, request, GivenResources())) == (403, "cross_site")


def test_a_preflight_request_allows_no_change() -> None:
    """A browser sends it before a request that no form can send."""
    for path, method in (
        ("/api/v1/badges", "POST"),
        ("/api/v1/badges/a", "PATCH"),
        ("/api/v1/events", "GET"),
        ("/api/v1/events", "POST"),
        ("/api/v1/views", "DELETE"),
        ("/api/v1/views", ""),
    ):
        asked = http_requests.ask(
            GivenResources(), "OPTIONS", path, origin="https://evil.example",
            access_control_request_method=method,
        )  # fmt: skip
        assert asked.refusal == (405, "method_not_allowed")
        assert not [name for name in asked.headers if name.startswith("Access-Control")]


# ---- options


def ask_with(raw_query: str, path: str = "/options") -> Response:
    request = Request("GET", path, query=query.parse(raw_query))
    return dispatch(ROUTES, request, GivenResources())


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("colour", "did you mean color"),
        ("LABEL", "did you mean label"),
        ("label_color", "did you mean labelColor"),
        ("label-colour", "did you mean labelColor"),
        ("amp;color", "did you mean color"),
        ("nonsense", "leave it out"),
        ("", "leave it out"),
        ("T", "leave it out"),
        ("utm", "leave it out"),
        ("\N{DUCK}", "leave it out"),
    ],
)
def test_an_unknown_option_is_refused_with_the_nearest_one(name: str, advice: str) -> None:
    response = ask_with(f"color=red&{quote(name)}=1&label=x")
    assert refusal(response) == (400, "bad_request")
    assert json.loads(response.body)["error"]["message"] == f"unknown option {name!r}: {advice}"


@pytest.mark.parametrize(
    "raw",
    ["_=1", "t=1", "v=1", "cb=1", "cacheSeconds=60", "fbclid=a", "utm_source=a&utm_=b", "t=1&t=2"],
)
def test_parameters_against_caches_are_ignored(raw: str) -> None:
    assert ask_with(raw).status == ask_with(raw, "/tokenless").status == 204


def test_a_page_may_have_any_option_and_a_route_without_options_has_none() -> None:
    assert ask_with("from=x", "/page").status == 204
    assert refusal(ask_with("from=x", "/tokenless")) == (400, "bad_request")


def test_only_pages_and_files_of_the_product_ignore_unknown_options() -> None:
    """Every other route of everybody answers one with an error, which badges draw."""
    files = {"/", "/own", "/count.js", "/logos.json", "/openapi.json", "/healthz"}
    public = [route for route in TABLE.routes if route.authentication is Authentication.NONE]
    reading = [route for route in public if route.method == "GET"]
    assert {route.path for route in reading if route.options is ANY_OPTIONS} == files
    for route in reading:
        request = Request("GET", route.path, query={"nonsense": ["1"]})
        answered = dispatch(TABLE, request, GivenResources()).body.decode()
        assert ("unknown option" in answered) == (route.path not in files)


# ---- limits


def limited(action: Action, seconds: int = 60) -> GivenResources:
    """Return resources that allow one action per client, at a time that stands still."""
    return GivenResources(limits=ClientLimits({action: Rate(1, seconds)}, lambda: 1_000.0))


def test_a_client_over_the_limit_is_told_when_to_come_again() -> None:
    resources = limited(Action.REQUEST, 90)
    assert ask(resources=resources).status == 204
    response = ask(resources=resources)
    assert refusal(response) == (429, "too_many_requests")
    assert response.headers["Retry-After"] == "90"
    message = json.loads(response.body)["error"]["message"]
    assert message == "too many requests from your address: try again in 90 s"


def test_a_request_with_a_wrong_token_is_counted_before_the_token_is_read() -> None:
    resources = limited(Action.REQUEST)
    statuses = [ask("GET", "/tokens", resources, authorization="Bearer x").status for _ in range(2)]
    assert statuses == [401, 429]


@pytest.mark.parametrize(
    ("path", "second"), [("/name", 429), ("/any", 204), ("/operated", 204), ("/tokenless", 204)]
)
def test_changes_by_secrets_alone_are_limited(path: str, second: int) -> None:
    resources, method = limited(Action.CHANGE), "GET" if path == "/tokenless" else "POST"
    caller = Caller(Role.USER, "0" * 8 + "-0000-4000-8000-" + "0" * 12)
    request = Request(method, path, caller=caller, client=CLIENT)
    answers = [dispatch(ROUTES, request, resources).status for _ in range(2)]
    assert answers[1] == second


def test_an_address_is_not_in_the_text_of_a_request() -> None:
    """A log line that has a request can't have its client's address."""
    assert CLIENT not in repr(Request("GET", "/", client=CLIENT))


# ---- HTTPS


def test_browsers_are_told_to_use_https_only_if_the_operator_wants_it() -> None:
    resources = GivenResources(settings=Settings(hsts_seconds=86_400))
    name = "Strict-Transport-Security"
    for response in (
        ask(resources=resources),
        ask(resources=resources, sec_fetch_site="cross-site"),
        ask("GET", "/tokens", resources),
        ask("GET", "/no/route", resources),
        ask("BREW", resources=resources),
    ):
        assert response.headers[name] == "max-age=86400"
    assert name not in ask().headers
    assert name not in ask("GET", "/no/route").headers


# ---- features


def without(feature: Feature) -> GivenResources:
    events, wallets = (feature is not one for one in (Feature.EVENTS, Feature.WALLETS))
    return GivenResources(settings=Settings(events=events, wallets=wallets))


def test_a_route_of_a_feature_that_is_switched_off_says_so_before_it_asks_for_a_token() -> None:
    response = ask("GET", "/timers", without(Feature.EVENTS))
    assert refusal(response) == (404, "switched_off")
    message = json.loads(response.body)["error"]["message"]
    assert message == "events are switched off in this deployment: EVENTS=off"
    assert refusal(ask("GET", "/timers", without(Feature.WALLETS))) == (401, "unauthorized")
    assert b"wallets are switched off" in ask("GET", "/coins/badge", without(Feature.WALLETS)).body


# ---- scripts of other sites: what they may read and send


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


def ask_from_afar(route: Route, **query: list[str]) -> Answer:
    request = Request(route.method, route.path, query=query, headers={"origin": SITE, "host": "me"})
    return Answer(dispatch(TABLE, request, GivenResources(MemoryTable())))


@pytest.mark.parametrize("name", [*READS, f"POST {VIEWS}"])
def test_every_public_response_but_a_page_may_be_read_and_its_errors_too(name: str) -> None:
    is_page = ask_from_afar(BY_NAME[name], id=["a"]).headers["Content-Type"].startswith("text/html")
    for asked in ({"id": ["a"]}, {"id": ["a", "b"]}, {}):
        origin = ask_from_afar(BY_NAME[name], **asked).headers.get(ORIGIN)
        assert origin == (None if is_page else "*")


@pytest.mark.parametrize("name", OTHERS)
def test_no_response_to_a_token_a_secret_or_a_change_may_be_read(name: str) -> None:
    assert ORIGIN not in ask_from_afar(BY_NAME[name]).headers


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
