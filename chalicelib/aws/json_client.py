"""The client of DynamoDB and SQS in a Lambda function.

Its methods and its errors are those of botocore's clients, but it imports botocore only for an
error: a cold start would spend most of its processor time on botocore. It reads the region and the
credentials from the environment, as Lambda sets them, and sends each request once, because only
`Retry` repeats calls.

Sources: the DynamoDB developer guide, "DynamoDB low-level API"; the SQS developer guide, "Making
requests using the AWS JSON protocol"; the AWS SDKs reference guide, "Service-specific endpoints".
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import SplitResult, quote, urlsplit

from chalicelib.aws.connections import Connections, HttpReply
from chalicelib.aws.request_signing import Signer
from chalicelib.lazy import lazy
from chalicelib.settings import required
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from botocore import exceptions
else:
    exceptions = lazy("botocore.exceptions")

TARGETS = {"dynamodb": "DynamoDB_20120810", "sqs": "AmazonSQS"}
"""The prefix of the names of operations, by service."""
CONTENT_TYPE = "application/x-amz-json-1.0"
DOMAINS = {
    "cn": "amazonaws.com.cn",
    "eu-isoe": "cloud.adc-e.uk",
    "eusc-de": "amazonaws.eu",
    "us-iso": "c2s.ic.gov",
    "us-isob": "sc2s.sgov.gov",
    "us-isof": "csp.hci.ic.gov",
}
"""The domains of AWS's partitions, by the beginnings of their regions."""
DOMAIN = "amazonaws.com"
"""The domain of the regions of all other partitions."""
FIRST_ERROR = 300
TRACE = "_X_AMZN_TRACE_ID"
"""Lambda sets this variable. With its value, Lambda finds functions that invoke themselves."""
UNQUOTED = "-=;:+&[]{}\"',"

Send: TypeAlias = Callable[[Mapping[str, str], bytes], HttpReply]


class JsonClient:
    """A client of a service: each operation is a method, such as `get_item(TableName=…)`.

    `send` sends the signed headers and the body of a request to the endpoint.
    """

    def __init__(
        self,
        endpoint: SplitResult,
        signer: Signer,
        send: Send,
        environment: Mapping[str, str],
        clock: Callable[[], Seconds],
    ) -> None:
        self._endpoint = endpoint
        self._signer = signer
        self._send = send
        self._environment = environment
        self._clock = clock

    def __getattr__(self, method: str) -> Callable[..., dict[str, Any]]:
        return partial(self._call, "".join(map(str.capitalize, method.split("_"))))

    def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Send a request, and return the content of its answer.

        Raises `ClientError` for an error of AWS, `HTTPClientError` without a response, and
        `ChecksumError` for a damaged response.
        """
        body = json.dumps(request).encode()
        reply = self._send(self._headers(operation, body), body)
        _check(reply)
        if reply.status >= FIRST_ERROR:
            raise exceptions.ClientError(_error(reply), operation)
        return _content(reply)

    def _headers(self, operation: str, body: bytes) -> dict[str, str]:
        headers = {
            "Content-Type": CONTENT_TYPE,
            "Host": self._endpoint.netloc,
            "X-Amz-Target": f"{TARGETS[self._signer.service]}.{operation}",
        }
        signed = self._signer.sign(headers, body, self._endpoint.path, self._clock())
        if trace := self._environment.get(TRACE):
            signed["X-Amzn-Trace-Id"] = quote(trace, safe=UNQUOTED)
        return {**signed, "User-Agent": "vu-mi"}


def json_client(
    service: str,
    environment: Mapping[str, str],
    clock: Callable[[], Seconds],
    send: Send | None = None,
) -> JsonClient:
    """Return a client of a service for the region and the credentials of the environment.

    `send` takes the place of the connections to the endpoint. Raises `SettingsError`.
    """
    region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION", "")
    url = endpoint_of(service, required("AWS_REGION", region, "a region of AWS"), environment)
    signer = Signer(
        _credential(environment, "AWS_ACCESS_KEY_ID"),
        _credential(environment, "AWS_SECRET_ACCESS_KEY"),
        environment.get("AWS_SESSION_TOKEN", ""),
        region,
        service,
    )
    return JsonClient(url, signer, send or Connections(url).post, environment, clock)


def endpoint_of(service: str, region: str, environment: Mapping[str, str]) -> SplitResult:
    """Return the URL of a service in a region, or the one that the environment names."""
    domain = DOMAINS.get(region.rsplit("-", 2)[0], DOMAIN)
    url = urlsplit(
        environment.get(f"AWS_ENDPOINT_URL_{service.upper()}")
        or environment.get("AWS_ENDPOINT_URL")
        or f"https://{service}.{region}.{domain}"
    )
    return url._replace(path=url.path or "/")


def _credential(environment: Mapping[str, str], name: str) -> str:
    return required(name, environment.get(name, ""), "a credential of the function's role")


def _check(reply: HttpReply) -> None:
    """Compare an answer with its checksum, which DynamoDB sends."""
    expected, actual = reply.headers.get("x-amz-crc32"), str(zlib.crc32(reply.body))
    if expected is not None and expected != actual:
        raise exceptions.ChecksumError(
            checksum_type="crc32", expected_checksum=expected, actual_checksum=actual
        )


def _content(reply: HttpReply) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(reply.body or b"{}")
    except ValueError as error:
        raise exceptions.HTTPClientError(error=repr(error)) from error
    return content


def _error(reply: HttpReply) -> Any:
    """Return the response of botocore's `ClientError` for an answer with an error.

    An error of a proxy has no JSON. Errors of SQS have their older code in a header.
    """
    try:
        content = json.loads(reply.body)
    except ValueError:
        content = {}
    kind = content.get("__type", str(reply.status)).partition(":")[0].rpartition("#")[2]
    older = reply.headers.get("x-amzn-query-error", "").partition(";")[0]
    message = content.get("message", content.get("Message", ""))
    return {
        **content,
        "Error": {"Code": older or kind, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": reply.status},
    }
