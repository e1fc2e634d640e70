"""The functions of the HTTP API, with events as AWS documents them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.aws import api_handler, get_views, http_api, resources
from chalicelib.counting.view import ViewMessages
from chalicelib.http import tokens
from chalicelib.http.messages import Caller, Request, Response, Role
from chalicelib.http.routing import Route, RouteTable
from chalicelib.settings import Settings
from simulation.aws_events import http_api_event as event
from simulation.resources import GivenResources
from simulation.storage import FakeQueue, MemoryTable, store_token

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
TOKEN, UNKNOWN = tokens.new_token(), tokens.new_token()
FUNCTION_URL = "id.lambda-url.us-east-1.on.aws"
OPERATOR = {"lambda": Caller(Role.OPERATOR).fields}
OF_USER = {"lambda": Caller(Role.USER, USER).fields}


@pytest.fixture(autouse=True)
def queue() -> Iterator[FakeQueue]:
    """Return the queue of the views that are taken."""
    queue = FakeQueue()
    table = MemoryTable()
    store_token(table, TOKEN)
    resources.use(GivenResources(table, ViewMessages(queue)))
    yield queue
    resources.use(None)


def refusal(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["statusCode"], json.loads(answer["body"])["error"]["code"]


def test_an_event_is_read_as_a_request() -> None:
    made = event(
        "/api/v1/views",
        "POST",
        rawQueryString="parameter1=value1&parameter1=value2&parameter2=a%2Fb,c",
        cookies=["cookie1", "cookie2"],
        headers={"Header1": "value1", "header2": "value1,value2"},
        body="Hello from Lambda",
        authorizer=OF_USER,
    )
    assert http_api.to_request(made) == Request(
        "POST",
        "/api/v1/views",
        query={"parameter1": ["value1", "value2"], "parameter2": ["a/b,c"]},
        headers={"header1": "value1", "header2": "value1,value2", "cookie": "cookie1; cookie2"},
        body=b"Hello from Lambda",
        caller=Caller(Role.USER, USER),
    )


def test_a_body_in_base64_is_decoded() -> None:
    made = event("/", "POST", body=base64.b64encode(b"\xff\x00").decode(), isBase64Encoded=True)
    assert http_api.to_request(made).body == b"\xff\x00"


def test_a_request_has_no_address_of_its_client() -> None:
    headers = {"x-forwarded-for": "192.0.2.1", "forwarded": "for=192.0.2.1"}
    assert http_api.to_request(event("/api/v1/views", headers=headers)).client == ""


def test_a_refusal_is_complete_without_the_header_that_api_gateway_renames() -> None:
    answer = api_handler.handler(event("/api/v1/events"), None)
    assert answer["headers"].pop("WWW-Authenticate") == "Bearer"
    assert refusal(answer) == (401, "unauthorized")


@pytest.mark.parametrize(
    ("path", "more", "sent"),
    [
        ("/my/100% ü?#", {}, "/my/100%25%20%C3%BC%3F%23"),
        ("/my/100%25%2F", {"domain": FUNCTION_URL}, "/my/100%25%2F"),
        ("/prod/healthz", {"stage": "prod"}, "/healthz"),
        ("/prod", {"stage": "prod"}, "/"),
        ("/product", {"domain": "badges.example.com", "stage": "$default"}, "/product"),
    ],
)
def test_a_path_is_as_the_caller_encoded_it_without_the_stage(
    path: str, more: dict[str, str], sent: str
) -> None:
    """An HTTP API decodes the path, a function URL does not."""
    assert http_api.to_request(event(path, **more)).path == sent


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"authorizer": OF_USER}, 403, "forbidden"),
        ({"authorizer": {"lambda": {"role": "admin"}}}, 403, "forbidden"),
        ({"authorizer": {"lambda": None}}, 403, "forbidden"),
        ({"authorizer": {"jwt": {"claims": {"role": "operator"}}}}, 401, "unauthorized"),
        ({"authorizer": {"iam": {"userId": "AIDA"}}}, 401, "unauthorized"),
        ({}, 401, "unauthorized"),
        ({"headers": {"authorization": f"Bearer {TOKEN},Bearer {TOKEN}"}}, 401, "unauthorized"),
        ({"headers": {"authorization": f"Bearer {UNKNOWN}"}}, 403, "forbidden"),
    ],
)
def test_a_route_of_operators_is_closed_to_others(
    more: dict[str, Any], status: int, code: str
) -> None:
    assert refusal(api_handler.handler(event("/api/v1/events", **more), None)) == (status, code)


@pytest.mark.parametrize(
    "more", [{"authorizer": OPERATOR}, {"headers": {"Authorization": f"Bearer {TOKEN}"}}]
)
def test_a_route_of_operators_is_open_by_the_authorizer_or_by_a_token(more: dict[str, Any]) -> None:
    assert api_handler.handler(event("/api/v1/events", **more), None)["statusCode"] == 200


def test_a_token_does_not_replace_a_role_that_the_authorizer_does_not_name() -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    made = event("/api/v1/events", authorizer={"lambda": {"role": ""}}, headers=headers)
    assert refusal(api_handler.handler(made, None)) == (403, "forbidden")


@pytest.mark.parametrize("path", ["/api/v1/views", "/api/v1/views.svg", "/v1/api/views"])
def test_the_function_of_views_counts_them(queue: FakeQueue, path: str) -> None:
    made = event(path, rawQueryString="id=a%2Fb")
    assert get_views.handler(made, None) == api_handler.handler(made, None)
    assert len(queue.bodies) == 2


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/api/v1/views/history", "GET", 200),
        ("/api/v1/views/history.svg", "HEAD", 200),
        ("/s.png", "GET", 200),
        ("/api/v1/views", "POST", 200),
        ("/api/v1/views", "PUT", 405),
        ("/healthz", "GET", 404),
        ("/api/v1/badges", "GET", 404),
        ("/api/v1/events", "GET", 404),
    ],
)
def test_the_function_of_views_answers_no_other_route(path: str, method: str, status: int) -> None:
    made = event(path, method, rawQueryString="id=a")
    assert get_views.handler(made, None)["statusCode"] == status


@pytest.mark.parametrize("accepted", ["gzip", "deflate;q=0.5,GZIP;q=0.01", "gzip; q=1.0"])
def test_a_large_body_is_compressed_for_a_client_that_accepts_gzip(accepted: str) -> None:
    """An HTTP API compresses nothing."""
    plain = api_handler.handler(event("/"), None)
    made = event("/", headers={"Accept-Encoding": accepted})
    small = api_handler.handler(made, None)
    body = base64.b64decode(small["body"])
    assert gzip.decompress(body).decode() == plain["body"]
    assert body[4:8] == bytes(4), "a time would make each response another one"
    assert len(small["body"]) < len(plain["body"]) / 2
    assert small["isBase64Encoded"]
    assert small["headers"] == plain["headers"] | {"Content-Encoding": "gzip"}
    assert plain["headers"]["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("accepted", ["", "br", "gzip ; q=0.000, br"])
def test_a_client_that_does_not_accept_gzip_gets_text(accepted: str) -> None:
    answer = api_handler.handler(event("/", headers={"accept-encoding": accepted}), None)
    assert answer["body"].startswith("<!doctype html>")
    assert not answer["isBase64Encoded"]
    assert "Content-Encoding" not in answer["headers"]


def test_a_badge_is_not_compressed() -> None:
    """It fits into one packet, and compressing it would delay every badge."""
    made = event("/api/v1/views.svg", rawQueryString="id=a", headers={"accept-encoding": "gzip"})
    answer = get_views.handler(made, None)
    assert answer["body"].startswith("<svg")
    assert len(answer["body"]) < http_api.COMPRESSED_BYTES
    assert not {"Content-Encoding", "Vary"} & set(answer["headers"])


def test_a_picture_is_encoded_and_not_compressed() -> None:
    """API Gateway decodes a body that is marked."""
    drawn = Response(200, {"Content-Type": "image/png"}, bytes(http_api.COMPRESSED_BYTES))
    table = RouteTable((Route("GET", "/picture", lambda _, __: drawn),))
    headers = {"accept-encoding": "gzip", "host": "a.example"}
    answer = http_api.answer(table, event("/picture", headers=headers), None)
    assert answer["isBase64Encoded"]
    assert base64.b64decode(answer["body"]) == drawn.body
    assert answer["headers"]["Content-Type"] == "image/png"
    assert not {"Content-Encoding", "Vary"} & set(answer["headers"])


def test_the_api_handler_answers_urls_of_other_counters_if_the_setting_names_them(
    queue: FakeQueue,
) -> None:
    made = event("/get/@demo", rawQueryString="theme=asoul")
    assert refusal(api_handler.handler(made, None)) == (404, "not_found")
    settings = Settings(drop_in=("moe-counter",))
    resources.use(GivenResources(MemoryTable(), ViewMessages(queue), settings=settings))
    answer = api_handler.handler(made, None)
    assert (answer["statusCode"], len(queue.bodies)) == (200, 1)
    assert answer["headers"]["Content-Type"] == "image/svg+xml;charset=utf-8"
