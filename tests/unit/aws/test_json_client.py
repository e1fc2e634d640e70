"""The client in Lambda functions answers, and fails, as botocore's clients do."""

from __future__ import annotations

import json
import re
import socket
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from threading import Semaphore, Thread
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.credentials import Credentials
from botocore.exceptions import ChecksumError, ClientError, HTTPClientError
from botocore.loaders import Loader
from hypothesis import given
from hypothesis import strategies as st

from chalicelib.aws.clients import aws_client
from chalicelib.aws.json_client import (
    Connections,
    HttpReply,
    JsonClient,
    Signer,
    endpoint_of,
    json_client,
    meaning,
    translate_errors,
)
from chalicelib.settings import SettingsError
from chalicelib.storage.errors import UnavailableError
from chalicelib.units import Seconds

ENVIRONMENT = {
    "AWS_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "AKID",
    "AWS_SECRET_ACCESS_KEY": "secret",
}
DYNAMODB = "com.amazonaws.dynamodb.v20120810#"
REQUESTS: Mapping[str, Mapping[str, Any]] = {
    "transact_write_items": {"TransactItems": []},
    "send_message": {"QueueUrl": "https://aws.example/q"},
    "send_message_batch": {"QueueUrl": "https://aws.example/q", "Entries": []},
}
OLDER_CODE = {"x-amzn-query-error": "AWS.SimpleQueueService.NonExistentQueue;Sender"}
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Part: a\r\n\r\n{}"
LAST_ANSWER = ANSWER.replace(b"X-Part: a", b"Connection: close")
SHORT: Seconds = 0.05
EXAMPLE_TIME = 1_440_938_160.0
"""2015-08-30T12:36:00Z."""
TEXT = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


class Recorder:
    """A transport with one answer, which records the requests."""

    def __init__(self, answer: HttpReply) -> None:
        self._answer = answer
        self.headers: list[Mapping[str, str]] = []
        self.bodies: list[bytes] = []

    def __call__(self, headers: Mapping[str, str], body: bytes) -> HttpReply:
        self.headers.append(headers)
        self.bodies.append(body)
        return self._answer


def answer(content: Mapping[str, Any] | str, status: int = 200, **headers: str) -> HttpReply:
    body = (content if isinstance(content, str) else json.dumps(content)).encode()
    return HttpReply(status, {"x-amz-crc32": str(zlib.crc32(body)), **headers}, body)


def client(send: Recorder, service: str = "dynamodb", **environment: str) -> JsonClient:
    return json_client(service, ENVIRONMENT | environment, lambda: 0.0, send)


def test_a_method_is_an_operation_whose_arguments_are_its_request() -> None:
    send = Recorder(answer({"Item": {"PK": {"S": "é"}}}))
    found = client(send).get_item(TableName="t", Key={"PK": {"S": "é"}})
    assert found == {"Item": {"PK": {"S": "é"}}}
    assert json.loads(send.bodies[0]) == {"TableName": "t", "Key": {"PK": {"S": "é"}}}
    [headers] = send.headers
    assert headers["X-Amz-Target"] == "DynamoDB_20120810.GetItem"
    assert headers["Content-Type"] == "application/x-amz-json-1.0"
    assert headers["Host"] == "dynamodb.eu-west-1.amazonaws.com"
    assert headers["Authorization"].startswith(
        "AWS4-HMAC-SHA256 Credential=AKID/19700101/eu-west-1/dynamodb/aws4_request,"
        " SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature="
    )


def test_a_queue_has_its_own_operations() -> None:
    send = Recorder(answer(""))
    assert client(send, "sqs").send_message_batch(QueueUrl="u", Entries=[]) == {}
    assert send.headers[0]["X-Amz-Target"] == "AmazonSQS.SendMessageBatch"
    assert "/sqs/" in send.headers[0]["Authorization"]


def test_the_session_token_of_a_role_is_sent_and_signed() -> None:
    send = Recorder(answer({}))
    client(send, AWS_SESSION_TOKEN="session").get_item()  # noqa: S106
    assert send.headers[0]["X-Amz-Security-Token"] == "session"
    assert ";x-amz-security-token;" in send.headers[0]["Authorization"]


def test_lambda_can_follow_a_message_to_the_function_that_it_invokes() -> None:
    """Lambda stops functions that invoke themselves through a queue."""
    send = Recorder(answer({}))
    client(send, _X_AMZN_TRACE_ID="Root=1-ab;Lineage=c:1 é").send_message()
    assert send.headers[0]["X-Amzn-Trace-Id"] == "Root=1-ab;Lineage=c:1%20%C3%A9"
    client(send).send_message()
    assert "X-Amzn-Trace-Id" not in send.headers[1]


@pytest.mark.parametrize(
    ("service", "method", "given"),
    [
        ("dynamodb", "get_item", answer({"Item": {"PK": {"S": "a"}, "n": {"N": "1"}}})),
        ("dynamodb", "put_item", answer({"__type": f"{DYNAMODB}ThrottlingException"}, 400)),
        ("dynamodb", "put_item", answer({"__type": "ValidationException:http://x"}, 400)),
        (
            "dynamodb",
            "put_item",
            answer(
                {
                    "__type": f"{DYNAMODB}ConditionalCheckFailedException",
                    "message": "The conditional request failed",
                    "Item": {"PK": {"S": "a"}},
                },
                400,
            ),
        ),
        (
            "dynamodb",
            "transact_write_items",
            answer(
                {
                    "__type": f"{DYNAMODB}TransactionCanceledException",
                    "Message": "Transaction cancelled",
                    "CancellationReasons": [
                        {"Code": "None"},
                        {"Code": "ConditionalCheckFailed", "Item": {"PK": {"S": "a"}}},
                    ],
                },
                400,
            ),
        ),
        ("dynamodb", "query", answer({}, 500)),
        ("dynamodb", "query", answer("", 413)),
        ("sqs", "send_message", answer({"MessageId": "1", "MD5OfMessageBody": "2"})),
        (
            "sqs",
            "send_message",
            answer(
                {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no such queue"},
                400,
                **OLDER_CODE,
            ),
        ),
        ("sqs", "send_message_batch", answer({"Successful": [], "Failed": [{"Id": "0"}]})),
    ],
)
def test_an_answer_is_understood_as_botocore_does(
    monkeypatch: pytest.MonkeyPatch, service: str, method: str, given: HttpReply
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    theirs = aws_client(service)
    theirs.meta.events.register("before-send", lambda **_: _response(given))
    request = REQUESTS.get(method, {"TableName": "t"})
    ours = _outcome(client(Recorder(given), service), method, request)
    assert ours == _outcome(theirs, method, request)


class _Body:
    """The body of a response of urllib3."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> list[bytes]:
        return [self._content]


def _response(given: HttpReply) -> AWSResponse:
    raw: Any = _Body(given.body)
    headers: Any = given.headers
    return AWSResponse("https://aws.example", given.status, headers, raw)


def _outcome(client: Any, method: str, request: Mapping[str, Any]) -> Any:
    """Return an answer, or all that the storage reads of an error."""
    try:
        found = getattr(client, method)(**request)
    except ClientError as error:
        response: Any = error.response
        fields = [response.get(name) for name in ("Item", "CancellationReasons")]
        response["Error"].pop("QueryErrorCode", None)
        response["Error"].pop("Type", None)
        status = response["ResponseMetadata"]["HTTPStatusCode"]
        return error.response["Error"], type(meaning(error)), status, *fields
    found.pop("ResponseMetadata", None)
    return found


def test_a_damaged_answer_is_unavailable() -> None:
    damaged = HttpReply(200, {"x-amz-crc32": "1"}, b"{}")
    with pytest.raises(ChecksumError, match="crc32"):
        client(Recorder(damaged)).query()
    with pytest.raises(UnavailableError), translate_errors():
        client(Recorder(damaged)).query()


def test_an_error_of_a_proxy_is_unavailable() -> None:
    """It has no JSON."""
    proxy = HttpReply(503, {}, b"<html>Service Unavailable</html>")
    with pytest.raises(UnavailableError, match=r"An error occurred \(503\)"), translate_errors():
        client(Recorder(proxy)).query()


@pytest.mark.parametrize("service", ["dynamodb", "sqs"])
def test_the_endpoints_of_all_regions_equal_those_of_botocore(
    monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    for partition in Loader().load_data("partitions")["partitions"]:
        region = next(name for name in partition["regions"] if not name.endswith("global"))
        monkeypatch.setenv("AWS_DEFAULT_REGION", region)
        theirs = aws_client(service).meta.endpoint_url
        assert endpoint_of(service, region, {}).geturl() == f"{theirs}/"


@pytest.mark.parametrize(
    ("environment", "endpoint"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, "http://127.0.0.1:4566/"),
        ({"AWS_ENDPOINT_URL_SQS": "http://sqs:1/a", "AWS_ENDPOINT_URL": "x"}, "http://sqs:1/a"),
        ({"AWS_ENDPOINT_URL_DYNAMODB": "http://no"}, "https://sqs.us-east-1.amazonaws.com/"),
    ],
)
def test_the_environment_can_name_the_endpoint(environment: dict[str, str], endpoint: str) -> None:
    assert endpoint_of("sqs", "us-east-1", environment).geturl() == endpoint


@pytest.mark.parametrize("name", sorted(ENVIRONMENT))
def test_an_environment_without_a_region_or_credentials_is_an_error(name: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is not set; it must be a "):
        json_client("sqs", {**ENVIRONMENT, name: ""}, lambda: 0.0)


class Endpoint:
    """A server that gives one connection after the other its answers, and then closes it."""

    def __init__(self, *connections: list[bytes]) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        port = self._server.getsockname()[1]
        self.connections = Connections(urlsplit(f"http://127.0.0.1:{port}/"))
        self.requests: list[bytes] = []
        self.closed = Semaphore(0)
        self._thread = Thread(target=self._serve, args=(connections,), daemon=True)
        self._thread.start()

    def _serve(self, connections: tuple[list[bytes], ...]) -> None:
        for answers in connections:
            connection, _ = self._server.accept()
            with connection:
                for answer in answers:
                    self.requests.append(_request(connection))
                    connection.sendall(answer)
            self.closed.release()

    def close(self) -> None:
        self.connections.close()
        self._thread.join(5)
        self._server.close()


def _request(connection: socket.socket) -> bytes:
    """Receive a request, which ends with a body of the length in its head."""
    with connection.makefile("rb") as reader:
        head = b"".join(iter(reader.readline, b"\r\n"))
        length = re.search(rb"Content-Length: (\d+)", head)
        return head + b"\r\n" + (reader.read(int(length[1])) if length else b"")


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """Listen, and answer nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_an_answer_has_its_status_its_headers_and_its_body() -> None:
    with closing(Endpoint([ANSWER])) as endpoint:
        answer = endpoint.connections.post({"Host": "aws", "X-Amz-Date": "today"}, b'{"a": 1}')
    assert (answer.status, answer.headers["x-part"], answer.body) == (200, "a", b"{}")
    head, _, body = endpoint.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST / HTTP/1.1\r\n")
    assert {b"Host: aws", b"X-Amz-Date: today", b"Content-Length: 8"} <= {*head.split(b"\r\n")}
    assert body == b'{"a": 1}'


def test_a_connection_is_used_again() -> None:
    with closing(Endpoint([ANSWER, ANSWER])) as endpoint:
        connections = endpoint.connections
        for _ in range(2):
            assert connections.post({}, b"").status == 200


@pytest.mark.parametrize("last", [ANSWER, LAST_ANSWER])
def test_a_connection_that_the_server_closed_is_replaced(last: bytes) -> None:
    """A server closes a connection without a request, for example while Lambda pauses."""
    with closing(Endpoint([last], [ANSWER])) as endpoint:
        connections = endpoint.connections
        connections.post({}, b"")
        assert endpoint.closed.acquire(timeout=5)
        assert connections.post({}, b"").status == 200


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"no"])
def test_an_answer_that_is_cut_off_is_a_failure(answer: bytes) -> None:
    with closing(Endpoint([answer], [ANSWER])) as endpoint:
        connections = endpoint.connections
        with pytest.raises(HTTPClientError):
            connections.post({}, b"")
        assert connections.post({}, b"").status == 200


def test_a_server_that_does_not_answer_is_a_failure(silent: socket.socket) -> None:
    url = urlsplit(f"http://127.0.0.1:{silent.getsockname()[1]}/")
    with pytest.raises(HTTPClientError, match="TimeoutError"):
        Connections(url, SHORT).post({}, b"")


def test_a_port_without_a_server_is_a_failure(silent: socket.socket) -> None:
    port = silent.getsockname()[1]
    silent.close()
    with pytest.raises(HTTPClientError, match="ConnectionRefusedError"):
        Connections(urlsplit(f"http://127.0.0.1:{port}/")).post({}, b"")


def test_an_endpoint_of_https_gets_nothing_in_plain_text(silent: socket.socket) -> None:
    url = urlsplit(f"https://127.0.0.1:{silent.getsockname()[1]}/")
    with pytest.raises(HTTPClientError, match="handshake"):
        Connections(url, SHORT).post({"X-Amz-Security-Token": "session"}, b"")


def test_a_post_of_the_test_suite_of_aws_has_the_signature_in_it() -> None:
    """Source: aws-sig-v4-test-suite, post-vanilla."""
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"  # noqa: S105  AWS's example
    signer = Signer("AKIDEXAMPLE", secret, "", "us-east-1", "service")
    signed = signer.sign({"Host": "example.amazonaws.com"}, b"", "/", EXAMPLE_TIME)
    assert signed == {
        "Host": "example.amazonaws.com",
        "X-Amz-Date": "20150830T123600Z",
        "Authorization": (
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request,"
            " SignedHeaders=host;x-amz-date,"
            " Signature=5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
        ),
    }


@given(
    secret=TEXT,
    token=st.just("") | TEXT,
    target=TEXT,
    body=st.binary(max_size=200),
    now=st.integers(1, 4_000_000_000),
)
def test_a_signature_equals_that_of_botocore(
    secret: str, token: str, target: str, body: bytes, now: int
) -> None:
    headers = {
        "Content-Type": "application/x-amz-json-1.0",
        "Host": "dynamodb.eu-west-1.amazonaws.com",
        "X-Amz-Target": target,
    }
    signed = Signer("AKID", secret, token, "eu-west-1", "dynamodb").sign(headers, body, "/", now)

    request = AWSRequest("POST", f"https://{headers['Host']}/", data=body)
    for name in signed.keys() - {"Authorization"}:
        request.headers[name] = signed[name]
    request.context["timestamp"] = signed["X-Amz-Date"]
    auth = SigV4Auth(Credentials("AKID", secret, token or None), "dynamodb", "eu-west-1")
    text = auth.string_to_sign(request, auth.canonical_request(request))
    assert signed["Authorization"].endswith(f", Signature={auth.signature(text, request)}")
    assert (
        f"SignedHeaders={auth.signed_headers(auth.headers_to_sign(request))},"
        in (signed["Authorization"])
    )
