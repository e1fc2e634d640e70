"""The Chalice app: it answers each route of the table with the events of a REST API."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from chalice.app import Chalice

from app import app as product
from chalicelib import telemetry
from chalicelib.api import TABLE
from chalicelib.aws import chalice_routes, resources
from chalicelib.aws.resources import AwsResources
from chalicelib.http.messages import Caller, Request, Response, Role
from chalicelib.http.routing import ANY_OPTIONS, Authentication, Route, RouteTable
from chalicelib.resources import Resources
from simulation import aws_events as events
from simulation.resources import GivenResources
from simulation.storage import MemoryTable

USER = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"


class Recorder:
    """A handler that keeps the request that it got."""

    def __init__(self) -> None:
        self.request = Request("", "")

    def __call__(self, request: Request, _: Resources) -> Response:
        self.request = request
        return Response(201, {"Content-Type": "text/plain", "X-Shape": "round"}, "ü".encode())


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def app(recorder: Recorder) -> Iterator[Chalice]:
    app = Chalice("test", configure_logs=False)
    routes = (
        Route("GET", "/names/{name}/of/{other}", recorder, with_head=True, options=ANY_OPTIONS),
        Route("POST", "/names", recorder, options=ANY_OPTIONS),
        Route("GET", "/tokens", recorder, Authentication.TOKEN),
        Route("GET", "/users", recorder, Authentication.USER),
        Route("GET", "/operators", recorder, Authentication.OPERATOR),
    )
    chalice_routes.register(app, RouteTable(routes))
    resources.use(GivenResources())
    yield app
    resources.use(None)


def event(path: str, method: str = "GET", /, **more: Any) -> dict[str, Any]:
    return {**events.http_event(None, method, path), **more}


def test_a_route_gets_a_decoded_request(app: Chalice, recorder: Recorder) -> None:
    made = event(
        "/names/{name}/of/{other}",
        "HEAD",
        path="/names/a%2Fb/of/%C3%BC/",
        pathParameters={"name": "a%2Fb", "other": "ü/"},
        multiValueQueryStringParameters={"a": ["1", "2"], "b": [""]},
        headers={"Host": "api.example.com", "AUTHORIZATION": "Bearer x"},
    )
    answer = app(made, None)
    assert recorder.request == Request(
        "HEAD",
        "/names/a/b/of/ü/",
        {"name": "a/b", "other": "ü/"},
        {"a": ["1", "2"], "b": [""]},
        {"host": "api.example.com", "authorization": "Bearer x"},
        b"",
    )
    assert (answer["statusCode"], answer["body"]) == (201, "ü")
    assert answer["headers"] == {"Content-Type": "text/plain", "X-Shape": "round"}
    assert "isBase64Encoded" not in answer


@pytest.mark.parametrize("path", ["/names/a/of/b/", "/names/%61/of/b"])
def test_a_request_is_answered_by_its_resource_whatever_its_path_and_stage(
    app: Chalice, recorder: Recorder, path: str
) -> None:
    """API Gateway has found the resource, and the context alone has the stage in its path."""
    made = event("/names/{name}/of/{other}", path=path, pathParameters={"name": "a", "other": "b"})
    made["requestContext"] |= {"path": f"/prod{path}", "stage": "prod"}
    assert app(made, None)["statusCode"] == 201
    assert recorder.request.path == "/names/a/of/b"
    assert recorder.request.path_parameters == {"name": "a", "other": "b"}


def test_a_request_has_no_address_of_its_client(app: Chalice, recorder: Recorder) -> None:
    made = event("/names", "POST", headers={"X-Forwarded-For": "192.0.2.1"})
    made["requestContext"]["identity"] = {"sourceIp": "192.0.2.1"}
    app(made, None)
    assert recorder.request.client == ""


@pytest.mark.parametrize(
    ("body", "in_base64", "given"),
    [
        (None, False, b""),
        ("日本語", False, "日本語".encode()),
        (base64.b64encode(b"\xff\x00").decode(), True, b"\xff\x00"),
        ("\ud800", False, b"\xff"),
    ],
)
def test_a_route_gets_a_body_as_bytes_whatever_its_type(
    app: Chalice, recorder: Recorder, body: str | None, given: bytes, *, in_base64: bool
) -> None:
    for kind in ("application/json", "image/png", ""):
        made = event(
            "/names",
            "POST",
            body=body,
            isBase64Encoded=in_base64,
            headers={"Content-Type": kind},
        )
        assert app(made, None)["statusCode"] == 201
        assert recorder.request.body == given


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"GRACE_SECONDS": "ten minutes"}, "GRACE_SECONDS must be a whole number"),
        ({"AWS_REGION": "us-east-1"}, "AWS_ACCESS_KEY_ID is not set"),
    ],
)
def test_a_wrong_setting_is_an_internal_error_and_the_log_names_it(
    caplog: pytest.LogCaptureFixture, settings: dict[str, str], reason: str
) -> None:
    """`chalice local` may have no credentials."""
    resources.use(AwsResources({"TABLE_NAME": "views", **settings}))
    answer = product(event("/healthz"), None)
    badge = product(event("/api/v1/views", multiValueQueryStringParameters={"id": ["a"]}), None)
    resources.use(None)
    assert answer["statusCode"] == 500
    assert json.loads(answer["body"])["error"]["code"] == "internal"
    assert json.loads(badge["body"])["isError"]
    assert [line.message for line in caplog.records] == ["request_failed", "badge_failed"]
    for record in caplog.records:
        assert reason in telemetry.JsonFormatter().format(record)


def status(app: Chalice, path: str, context: dict[str, Any] | None) -> int:
    made = event(path)
    if context is not None:
        made["requestContext"]["authorizer"] = context
    return int(app(made, None)["statusCode"])


@pytest.mark.parametrize(
    ("context", "statuses"),
    [
        (Caller(Role.OPERATOR).fields, [201, 403, 201]),
        (Caller(Role.USER, USER).fields, [201, 201, 403]),
        ({"role": "admin", "user": ""}, [401, 401, 401]),
        (None, [401, 401, 401]),
    ],
)
def test_a_route_of_tokens_needs_the_role_that_the_authorizer_names(
    app: Chalice, context: dict[str, Any] | None, statuses: list[int]
) -> None:
    paths = ("/tokens", "/users", "/operators")
    assert [status(app, path, context) for path in paths] == statuses


@pytest.mark.parametrize(("accept", "status"), [("image/png", 200), ("text/html", 400)])
def test_a_picture_is_sent_to_a_client_that_names_its_type(accept: str, status: int) -> None:
    """A REST API decodes a body only if `Accept` begins with a binary type."""
    resources.use(GivenResources(MemoryTable()))
    query = {"id": ["a/b"]}
    made = event("/s.png", multiValueQueryStringParameters=query, headers={"Accept": accept})
    answer = product(made, None)
    resources.use(None)
    assert answer["statusCode"] == status
    is_picture = status == 200 and base64.b64decode(answer["body"]).startswith(b"\x89PNG")
    assert (answer.get("isBase64Encoded", False), is_picture) == ((status == 200,) * 2)


def test_the_product_registers_every_route_with_its_authorizer_and_no_other() -> None:
    registered = {
        (method, path): route.authorizer is not None
        for path, methods in product.routes.items()
        for method, route in methods.items()
    }
    assert registered == {
        (method, route.path): route.authentication is not Authentication.NONE
        for route in TABLE.routes
        for method in route.methods
    }
