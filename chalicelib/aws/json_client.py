"""The client of DynamoDB and SQS in a Lambda function, and the meaning of errors of AWS.

Its methods and its errors are those of botocore's clients, but it imports botocore only for an
error: a cold start would spend most of its processor time on botocore. It reads the region and the
credentials from the environment, as Lambda sets them, and sends each request once, because only
`Retry` repeats calls.

Sources: the DynamoDB developer guide, "DynamoDB low-level API"; the SQS developer guide, "Making
requests using the AWS JSON protocol"; the AWS SDKs reference guide, "Service-specific endpoints";
the IAM user guide, "Create a signed AWS API request".
"""

from __future__ import annotations

import hashlib
import hmac
import json
import select
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPMessage, HTTPSConnection
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias
from urllib.parse import SplitResult, quote, urlsplit

from chalicelib.lazy import lazy, load
from chalicelib.settings import required
from chalicelib.storage.errors import StorageError, StorageRefusedError, UnavailableError
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from botocore import exceptions
    from botocore.exceptions import ClientError

    from chalicelib import tls
else:
    exceptions, tls = lazy("botocore.exceptions"), lazy("chalicelib.tls")

TIMEOUT: Seconds = 1.0
"""DynamoDB and SQS answer within milliseconds, and a badge can't wait longer than this."""

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
"""The domains of partitions by the beginnings of their regions; all others have amazonaws.com."""
FIRST_ERROR = 300
TRACE = "_X_AMZN_TRACE_ID"
"""Lambda sets this variable. With its value, Lambda finds functions that invoke themselves."""
UNQUOTED = "-=;:+&[]{}\"',"
ALGORITHM = "AWS4-HMAC-SHA256"


TRANSIENT = frozenset(
    {
        "InternalFailure",
        "InternalServerError",
        "KmsThrottled",
        "LimitExceededException",
        "ProvisionedThroughputExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServiceUnavailable",
        "Throttling",
        "ThrottledException",
        "ThrottlingError",
        "ThrottlingException",
        "TransactionConflict",
        "TransactionConflictException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
"""Error codes after which the same call may work (DynamoDB's and SQS's API references)."""

SERVER_ERROR = 500


class HttpReply(NamedTuple):
    """The answer to a request."""

    status: int
    headers: Mapping[str, str] | HTTPMessage
    body: bytes


Send: TypeAlias = Callable[[Mapping[str, str], bytes], HttpReply]


@dataclass(slots=True)
class Connections:
    """The connections to an endpoint. Threads share them; each has one request at a time."""

    endpoint: SplitResult
    timeout: Seconds = TIMEOUT
    _idle: list[HTTPConnection] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the TLS context now: a Lambda function has a whole vCPU only while it starts."""
        if self.endpoint.scheme == "https":
            load("chalicelib.tls")

    def post(self, headers: Mapping[str, str], body: bytes) -> HttpReply:
        """Send one request. Raises `HTTPClientError` without an answer."""
        connection = self._take()
        try:
            connection.request("POST", self.endpoint.path, body, headers)
            response = connection.getresponse()
            reply = HttpReply(response.status, response.headers, response.read())
        except (OSError, HTTPException) as error:
            connection.close()
            raise exceptions.HTTPClientError(error=repr(error)) from error
        self._idle.append(connection)
        return reply

    def close(self) -> None:
        """Close the connections that have no request."""
        while self._idle:
            self._idle.pop().close()

    def _take(self) -> HTTPConnection:
        """Return an open connection, or a new one, which connects at its request."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return self._connection()
            if not _is_dropped(connection):
                return connection
            connection.close()

    def _connection(self) -> HTTPConnection:
        host = self.endpoint.netloc
        if self.endpoint.scheme == "http":
            return HTTPConnection(host, timeout=self.timeout)
        return HTTPSConnection(host, timeout=self.timeout, context=tls.SYSTEM_TRUST)


def _is_dropped(connection: HTTPConnection) -> bool:
    """Return whether the server closed a connection: nothing else makes an idle one readable."""
    if connection.sock is None:
        return True
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


@dataclass(frozen=True, slots=True)
class Signer:
    """The signer of requests to a service in a region, with an access key.

    `token` is the session token of a role, empty for the key of a user.
    """

    key_id: str
    secret: str = field(repr=False)
    token: str = field(repr=False)
    region: str
    service: str

    def sign(
        self, headers: Mapping[str, str], body: bytes, path: str, now: Seconds
    ) -> dict[str, str]:
        """Return the headers of a POST with its time, token and signature."""
        moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        signed = {**headers, "X-Amz-Date": moment}
        if self.token:
            signed["X-Amz-Security-Token"] = self.token
        lines = sorted((name.lower(), value) for name, value in signed.items())
        names = ";".join(name for name, _ in lines)
        canonical = "\n".join(
            ("POST", path, "", *(f"{name}:{value}" for name, value in lines), "", names)
        )
        scope = (moment[:8], self.region, self.service, "aws4_request")
        signature = self._signature(f"{canonical}\n{_sha256(body)}", moment, scope)
        credential = f"Credential={self.key_id}/{'/'.join(scope)}"
        authorization = f"{ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"
        return {**signed, "Authorization": authorization}

    def _signature(self, canonical: str, moment: str, scope: tuple[str, ...]) -> str:
        text = "\n".join((ALGORITHM, moment, "/".join(scope), _sha256(canonical.encode())))
        key = f"AWS4{self.secret}".encode()
        for part in (*scope, text):
            key = hmac.digest(key, part.encode(), hashlib.sha256)
        return key.hex()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True, slots=True, repr=False)
class JsonClient:
    """A client of a service: each operation is a method, such as `get_item(TableName=…)`.

    `send` sends the signed headers and the body of a request to the endpoint. It has no `repr`,
    because the environment has secrets.
    """

    endpoint: SplitResult
    signer: Signer
    send: Send
    environment: Mapping[str, str]
    clock: Callable[[], Seconds]

    def __getattr__(self, method: str) -> Callable[..., dict[str, Any]]:
        return partial(self._call, "".join(map(str.capitalize, method.split("_"))))

    def _call(self, operation: str, **request: Any) -> dict[str, Any]:
        """Send a request, and return the content of its answer.

        Raises `ClientError` for an error of AWS, `HTTPClientError` without a response, and
        `ChecksumError` for a damaged response.
        """
        body = json.dumps(request).encode()
        reply = self.send(self._headers(operation, body), body)
        expected, actual = reply.headers.get("x-amz-crc32"), str(zlib.crc32(reply.body))
        if expected is not None and expected != actual:
            raise exceptions.ChecksumError(
                checksum_type="crc32", expected_checksum=expected, actual_checksum=actual
            )
        if reply.status >= FIRST_ERROR:
            raise exceptions.ClientError(_error(reply), operation)
        try:
            content: dict[str, Any] = json.loads(reply.body or b"{}")
        except ValueError as error:
            raise exceptions.HTTPClientError(error=repr(error)) from error
        return content

    def _headers(self, operation: str, body: bytes) -> dict[str, str]:
        headers = {
            "Content-Type": CONTENT_TYPE,
            "Host": self.endpoint.netloc,
            "X-Amz-Target": f"{TARGETS[self.signer.service]}.{operation}",
        }
        signed = self.signer.sign(headers, body, self.endpoint.path, self.clock())
        if trace := self.environment.get(TRACE):
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
    domain = DOMAINS.get(region.rsplit("-", 2)[0], "amazonaws.com")
    url = urlsplit(
        environment.get(f"AWS_ENDPOINT_URL_{service.upper()}")
        or environment.get("AWS_ENDPOINT_URL")
        or f"https://{service}.{region}.{domain}"
    )
    return url._replace(path=url.path or "/")


def _credential(environment: Mapping[str, str], name: str) -> str:
    return required(name, environment.get(name, ""), "a credential of the function's role")


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


def code_of(error: ClientError) -> str:
    """Return the error code of an answer, without the namespace that SQS puts before it."""
    return error.response.get("Error", {}).get("Code", "").rsplit(".", 1)[-1]


def meaning(error: ClientError) -> StorageError:
    """Return the `StorageError` for an error of AWS."""
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    transient = code_of(error) in TRANSIENT or status >= SERVER_ERROR
    return (UnavailableError if transient else StorageRefusedError)(str(error))


@contextmanager
def translate_errors() -> Iterator[None]:
    """Raise a `StorageError` in place of botocore's errors."""
    try:
        yield
    except exceptions.ClientError as error:
        raise meaning(error) from error
    except (
        exceptions.HTTPClientError,
        exceptions.ConnectionError,
        exceptions.ChecksumError,
    ) as error:
        raise UnavailableError(str(error)) from error
    except exceptions.BotoCoreError as error:
        raise StorageRefusedError(str(error)) from error
