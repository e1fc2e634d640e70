"""Dispatch: the route that answers, its callers, and the form of every error."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from chalicelib.badges.options import PIXEL, Badge
from chalicelib.badges.responses import badge_json, badge_svg
from chalicelib.http import responses, tokens
from chalicelib.http.dispatch import admit, dispatch
from chalicelib.http.errors import ClientError
from chalicelib.http.messages import Caller, Request, Response, Role
from chalicelib.http.routing import Authentication, Route, RouteTable
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageRefusedError, UnavailableError
from chalicelib.storage.writes import ConditionFailedError
from simulation.resources import GivenResources
from simulation.storage import MemoryTable, store_token

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
OPERATORS, USERS, UNKNOWN = (tokens.new_token() for _ in range(3))
RESOURCES = GivenResources(MemoryTable())
store_token(RESOURCES.table, OPERATORS)
store_token(RESOURCES.table, USERS, USER)


def teapot() -> ClientError:
    """Return an error of a feature. A class for it would be one more error to document."""
    error = ClientError("short and stout")
    error.status, error.code = 418, "teapot"
    error.headers, error.details = {"X-Shape": "round"}, {"color": "blue"}
    return error


FAILURES = {
    "teapot": teapot(),
    "unavailable": UnavailableError("throttled"),
    "refused": StorageRefusedError("no right"),
    "condition": ConditionFailedError({0: None}),
    "bug": KeyError("a bug"),
}


def show(request: Request, _: Resources) -> Response:
    """Answer with the parts of the request."""
    caller = request.caller and request.caller.user
    shown = [request.method, request.path, dict(request.path_parameters), caller]
    return Response(200, body=json.dumps(shown).encode())


def fail(request: Request, _: Resources) -> Response:
    raise FAILURES[request.path_parameters["kind"]]


TABLE = RouteTable(
    (
        Route("PUT", "/names/{name}", show),
        Route("GET", "/names/{name}", show, with_head=True),
        Route("GET", "/names/me", show),
        Route("GET", "/names/{name}/of/{other}", show),
        Route("GET", "/operators", show, Authentication.OPERATOR),
        Route("GET", "/users", show, Authentication.USER),
        Route("GET", "/tokens", show, Authentication.TOKEN),
        Route("GET", "/failures/{kind}", fail),
        Route("GET", "/drawn/{kind}", fail, on_failure=lambda *_: Response(200)),
    )
)


def ask(path: str, method: str = "GET", token: str = "") -> Response:
    headers = {"authorization": token} if token else {}
    return dispatch(TABLE, Request(method, path, headers=headers), RESOURCES)


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        ("/nowhere", OPERATORS, 404),
        ("/operators", "", 401),
        ("/operators", UNKNOWN, 403),
        ("/operators", OPERATORS, 0),
        ("/names/a", "", 0),
    ],
    ids=["no route", "no token", "unknown token", "token", "no token needed"],
)
def test_a_body_is_admitted_by_its_route_and_token(path: str, token: str, status: int) -> None:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    request, refused = Request("GET", path, headers=headers), 0
    try:
        admitted = admit(TABLE, request, RESOURCES)
        assert admitted.caller == (Caller(Role.OPERATOR) if token else None)
    except ClientError as refusal:
        refused = refusal.status
    assert refused == status


def shown(path: str, method: str = "GET", token: str = "") -> Any:
    response = ask(path, method, token)
    assert response.status == 200
    return json.loads(response.body)


def refusal(response: Response) -> tuple[int, str, str]:
    error = json.loads(response.body)["error"]
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    return response.status, error["code"], error["message"]


@pytest.mark.parametrize(
    ("path", "decoded", "parameters"),
    [
        ("/names/a", "/names/a", {"name": "a"}),
        ("/names/me", "/names/me", {}),
        ("/names/a%2Fb", "/names/a/b", {"name": "a/b"}),
        ("/names/me%20", "/names/me ", {"name": "me "}),
        ("/names/100%25", "/names/100%", {"name": "100%"}),
        ("/names/a;b#c", "/names/a;b#c", {"name": "a;b#c"}),
        ("/names/%C3%BC/of/b", "/names/ü/of/b", {"name": "ü", "other": "b"}),
    ],
)
def test_a_path_finds_its_route_and_its_parameters_are_decoded_once(
    path: str, decoded: str, parameters: dict[str, str]
) -> None:
    assert shown(path) == ["GET", decoded, parameters, None]


@pytest.mark.parametrize(
    "path",
    ["/", "", "/names", "/names/", "/names/a/", "//names/a", "/names//of/b", "/Names/a", "*"],
)
@pytest.mark.parametrize("token", ["", "Bearer x", f"Bearer {OPERATORS}"], ids=["no", "x", "op"])
def test_a_path_without_a_route_is_not_found_whatever_the_token(path: str, token: str) -> None:
    assert refusal(ask(path, token=token)) == (404, "not_found", "there is no such route")


@pytest.mark.parametrize(
    ("path", "method", "allowed"),
    [
        ("/names/a", "POST", "GET, HEAD, PUT"),
        ("/names/a", "OPTIONS", "GET, HEAD, PUT"),
        ("/names/me", "PUT", "GET"),
        ("/operators", "HEAD", "GET"),
        ("/operators", "get", "GET"),
    ],
)
def test_another_method_is_refused_and_the_allowed_ones_are_named(
    path: str, method: str, allowed: str
) -> None:
    response = ask(path, method)
    assert refusal(response) == (405, "method_not_allowed", f"use {allowed}")
    assert response.headers["Allow"] == allowed


@pytest.mark.parametrize(
    ("token", "path", "says"),
    [
        (USERS, "/operators", "the token is a user's: it is good for the user's wallet alone"),
        (OPERATORS, "/users", "the token names no user: ask for a wallet by its id"),
    ],
    ids=["user", "operator"],
)
def test_a_token_opens_the_routes_of_its_holder_alone(token: str, path: str, says: str) -> None:
    user = USER if token == USERS else ""
    others = {"/operators", "/users"} - {path}
    assert [shown(one, token=f"Bearer {token}")[-1] for one in ("/tokens", *others)] == [user] * 2
    assert refusal(ask(path, token=f"Bearer {token}")) == (403, "forbidden", says)


def test_an_error_of_a_feature_has_its_status_code_headers_and_details(
    caplog: pytest.LogCaptureFixture,
) -> None:
    response = ask("/failures/teapot")
    assert refusal(response) == (418, "teapot", "short and stout")
    assert json.loads(response.body)["error"]["color"] == "blue"
    assert response.headers["X-Shape"] == "round"
    assert caplog.records == []


@pytest.mark.parametrize(
    ("path", "is_refusal"),
    [
        ("/failures/teapot", True),
        ("/drawn/teapot", True),
        ("/nowhere", True),
        ("/failures/bug", False),
        ("/drawn/bug", False),
        ("/names/a", False),
    ],
)
def test_a_refusal_is_told_whatever_its_status(path: str, is_refusal: bool) -> None:  # noqa: FBT001
    assert ask(path).is_refusal is is_refusal


@pytest.mark.parametrize("kind", ["unavailable", "refused", "condition"])
def test_a_fault_of_the_storage_is_503_with_a_time_to_retry(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = ask(f"/failures/{kind}")
    message = "the storage does not answer: send the same request again"
    assert refusal(response) == (503, "unavailable", message)
    assert response.headers["Retry-After"] == "1"
    assert caplog.messages == ["request_failed"]


def test_another_fault_is_500_with_its_details_only_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    response = ask("/failures/bug")
    assert refusal(response) == (500, "internal", "internal error: see the log")
    [record] = caplog.records
    assert "a bug" in str(record.exc_info)
    assert vars(record)["fields"] == {"function": "api_handler"}


@pytest.mark.parametrize(
    ("path", "route", "rest"),
    [
        ("/files/a", "/files/{path+}", "a"),
        ("/files/a/b%2Fc", "/files/{path+}", "a/b%2Fc"),
        ("/files/a/", "/files/{path+}", "a/"),
        ("/files/names/a", "/files/names/{name}", None),
        ("/files", None, None),
        ("/files/", None, None),
        ("/other/a", None, None),
    ],
)
def test_the_last_parameter_may_have_the_rest_of_the_path(
    path: str, route: str | None, rest: str | None
) -> None:
    table = RouteTable(
        (Route("GET", "/files/names/{name}", show), Route("GET", "/files/{path+}", show))
    )
    match = table.find(path)
    assert (match and match.routes["GET"].path) == route
    assert (match and match.parameters.get("path")) == rest


def test_no_two_routes_match_the_same_request() -> None:
    with pytest.raises(ValueError, match="two routes answer HEAD /"):
        RouteTable((Route("HEAD", "/", show), Route("GET", "/", show, with_head=True)))


# ---- responses

BADGE = Badge("views", "0")


def test_a_badge_that_nobody_shall_see_is_one_transparent_pixel() -> None:
    response = badge_svg(BADGE._replace(style=PIXEL))
    assert response.headers == badge_svg(BADGE).headers
    drawn = ET.fromstring(response.body)  # noqa: S314  our own
    assert drawn.tag == "{http://www.w3.org/2000/svg}svg"
    assert (dict(drawn.attrib), [*drawn]) == ({"width": "1", "height": "1"}, [])


def test_an_image_that_is_opened_as_a_page_runs_no_script_and_loads_nothing() -> None:
    policy = badge_svg(BADGE).headers["Content-Security-Policy"]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; sandbox"
    assert "Content-Security-Policy" not in badge_json(BADGE).headers


def test_no_cache_stores_a_badge() -> None:
    """GitHub's image proxy and browsers each obey some of these words."""
    for response in (badge_json(BADGE), badge_svg(BADGE)):
        headers = response.headers
        words = {word.strip() for word in headers["Cache-Control"].split(",")}
        assert words == {"max-age=0", "no-cache", "no-store", "must-revalidate"}
        assert headers["Pragma"] == "no-cache"
        assert headers["Expires"] == "Thu, 01 Jan 1970 00:00:00 GMT"


def test_json_is_compact_and_escapes_what_utf_8_can_not_hold() -> None:
    assert responses.json({"status": "\ud800ü"}).body == b'{"status":"\\ud800\\u00fc"}'
