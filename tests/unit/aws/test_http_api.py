"""The handler of HTTP APIs and function URLs, with events as AWS documents them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from chalicelib.aws import http_api, resources
from chalicelib.aws.resources import AwsResources
from chalicelib.http import tokens
from chalicelib.http.messages import Caller, Request, Role
from chalicelib.views.view_queue import ViewMessages
from simulation.memory_table import MemoryTable
from simulation.queues import FakeQueue
from simulation.resources import GivenResources
from simulation.tokens import store_token

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
TOKEN, UNKNOWN = tokens.new_token(), tokens.new_token()
API = "id.execute-api.us-east-1.amazonaws.com"
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


def event(path: str, method: str = "GET", **more: Any) -> dict[str, Any]:
    """Return an event of an HTTP API; `domain`, `stage` and `authorizer` go into its context.

    Source: the API Gateway developer guide, "Create AWS Lambda proxy integrations for HTTP APIs".
    """
    domain, stage = more.pop("domain", API), more.pop("stage", "$default")
    authorizer = {"authorizer": more.pop("authorizer")} if "authorizer" in more else {}
    return {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"host": domain},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "id",
            **authorizer,
            "domainName": domain,
            "domainPrefix": "id",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
                "userAgent": "agent",
            },
            "requestId": "JKJaXmPLvHcESHA=",
            "routeKey": "$default",
            "stage": stage,
            "time": "10/Mar/2020:05:16:23 +0000",
            "timeEpoch": 1583817383220,
        },
        "isBase64Encoded": False,
        **more,
    }


def refusal(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["statusCode"], json.loads(answer["body"])["error"]["code"]


def test_an_event_is_read_as_a_request() -> None:
    made = event(
        "/api/v1/views",
        "POST",
        rawQueryString="parameter1=value1&parameter1=value2&parameter2=a%2Fb",
        cookies=["cookie1", "cookie2"],
        headers={"Header1": "value1", "header2": "value1,value2"},
        body="Hello from Lambda",
        authorizer=OF_USER,
    )
    assert http_api.to_request(made) == Request(
        "POST",
        "/api/v1/views",
        query={"parameter1": ["value1", "value2"], "parameter2": ["a/b"]},
        headers={"header1": "value1", "header2": "value1,value2", "cookie": "cookie1; cookie2"},
        body=b"Hello from Lambda",
        caller=Caller(Role.USER, USER),
    )


def test_a_body_in_base64_is_decoded() -> None:
    made = event("/", "POST", body=base64.b64encode(b"\xff\x00").decode(), isBase64Encoded=True)
    assert http_api.to_request(made).body == b"\xff\x00"


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


def test_a_view_is_counted_and_answered(queue: FakeQueue) -> None:
    answer = http_api.handler(event("/api/v1/views", rawQueryString="id=a%2Fb&label=%C3%BC"), None)
    assert answer["statusCode"] == 200
    assert json.loads(answer["body"])["label"] == "ü"
    assert answer["headers"]["Content-Type"] == "application/json"
    assert answer["isBase64Encoded"] is False
    assert len(queue.bodies) == 1
    assert http_api.handler(event("/nowhere"), None)["statusCode"] == 404


def test_a_query_with_too_many_parameters_is_refused() -> None:
    made = event("/api/v1/views", rawQueryString="&" * 100)
    assert refusal(http_api.handler(made, None)) == (400, "bad_request")


def test_a_malformed_setting_is_an_internal_error() -> None:
    resources.use(AwsResources({"TABLE_NAME": "views", "GRACE_SECONDS": "ten minutes"}))
    assert refusal(http_api.handler(event("/healthz"), None)) == (500, "internal")


def test_an_owner_of_an_id_with_a_slash_gives_it_in_the_query() -> None:
    """An HTTP API decodes the path, so that the id would be two segments there."""
    path = "/api/v1/badges"
    claimed = http_api.handler(event(path, "POST", body='{"id": "a/b"}'), None)
    headers = {"authorization": f"Bearer {json.loads(claimed['body'])['secret']}"}
    for method, status in (("GET", 200), ("DELETE", 204)):
        made = event(path, method, rawQueryString="id=a%2Fb", headers=headers)
        assert http_api.handler(made, None)["statusCode"] == status
    decoded = event(f"{path}/a/b", headers=headers)
    assert refusal(http_api.handler(decoded, None)) == (404, "not_found")


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"authorizer": OF_USER}, 403, "forbidden"),
        ({"authorizer": {"lambda": {"role": "admin"}}}, 403, "forbidden"),
        ({"authorizer": {"lambda": {}}}, 403, "forbidden"),
        ({"authorizer": {"lambda": None}}, 403, "forbidden"),
        ({"authorizer": {"jwt": {"claims": {"role": "operator"}}}}, 401, "unauthorized"),
        ({"authorizer": {"iam": {"userId": "AIDA"}}}, 401, "unauthorized"),
        ({}, 401, "unauthorized"),
        ({"headers": {"authorization": "Bearer x"}}, 401, "unauthorized"),
        ({"headers": {"authorization": f"Bearer {UNKNOWN}"}}, 403, "forbidden"),
    ],
)
def test_a_route_of_operators_is_closed_to_others(
    more: dict[str, Any], status: int, code: str
) -> None:
    assert refusal(http_api.handler(event("/api/v1/events", **more), None)) == (status, code)


@pytest.mark.parametrize(
    "more", [{"authorizer": OPERATOR}, {"headers": {"Authorization": f"Bearer {TOKEN}"}}]
)
def test_a_route_of_operators_is_open_by_the_authorizer_or_by_a_token(more: dict[str, Any]) -> None:
    assert http_api.handler(event("/api/v1/events", **more), None)["statusCode"] == 200


def test_a_token_does_not_replace_a_role_that_the_authorizer_does_not_name() -> None:
    headers = {"authorization": f"Bearer {TOKEN}"}
    made = event("/api/v1/events", authorizer={"lambda": {"role": ""}}, headers=headers)
    assert refusal(http_api.handler(made, None)) == (403, "forbidden")
