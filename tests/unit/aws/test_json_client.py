"""The client in Lambda functions answers, and fails, as botocore's clients do."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ChecksumError, ClientError
from botocore.loaders import Loader

from chalicelib.aws.clients import aws_client
from chalicelib.aws.connections import HttpReply
from chalicelib.aws.errors import meaning, translate_errors
from chalicelib.aws.json_client import JsonClient, endpoint_of, json_client
from chalicelib.settings import SettingsError
from chalicelib.storage.errors import UnavailableError

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
