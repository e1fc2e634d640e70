"""DynamoDB and SQS without AWS: answers in the form that AWS sends, made once and kept.

What is measured before them is real: boto's clients build and sign each request, and parse each
answer. Sources: the DynamoDB and SQS API references; "DynamoDB item sizes and formats".
"""

from __future__ import annotations

import hashlib
import json
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, TypeAlias, cast

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from ulid import ULID

WireItem: TypeAlias = dict[str, dict[str, str]]

BADGE_ID = "octocat/hello-world"
PARTITION = f"USER#{BADGE_ID}"
FOLDED = 1_234
"""The stored count of the badge."""
PAGE_BYTES = 1_048_576
FIRST_VIEW_MS = 1_700_000_000_000
CONTENT_TYPE = "application/x-amz-json-1.0"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": "/dev/null",
    "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    "AWS_EC2_METADATA_DISABLED": "true",
    "TABLE_NAME": "vu-mi",
    "VIEWS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/000000000000/vu-mi-views",
}


def isolate(environment: MutableMapping[str, str]) -> None:
    """Forget every account and endpoint of the person who measures."""
    for name in [name for name in environment if name.startswith("AWS_")]:
        del environment[name]
    environment.update(ENVIRONMENT)


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer with status 200, and its headers."""

    body: bytes
    headers: Mapping[str, str]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Answer:
        body = json.dumps(content, separators=(",", ":")).encode()
        checksum = {"x-amz-crc32": str(zlib.crc32(body)), "Content-Length": str(len(body))}
        return cls(body, {"Content-Type": CONTENT_TYPE, **checksum})

    def stream(self) -> Iterator[bytes]:
        """As the response of urllib3 has it."""
        yield self.body


class StubbedAws:
    """One badge with as many live views as it is told to have, and a queue that takes all."""

    def __init__(self, live_views: int = 0) -> None:
        self.hold(live_views)

    def hold(self, live_views: int) -> None:
        """Have so many live views from now on."""
        self._items = [_user(), *(_view(place) for place in range(live_views))]
        self._sort_keys = [item["SK"]["S"] for item in self._items]
        self._answers: dict[bytes, Answer] = {}

    def attach(self, client: Any) -> None:
        """Answer whatever this client of botocore sends, in place of the network."""
        client.meta.events.register("before-send", self._before_send)

    def _before_send(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        answer = self.answer(_text(request.headers["X-Amz-Target"]), cast("bytes", request.body))
        return AWSResponse(request.url, 200, answer.headers, answer)  # type: ignore[arg-type]

    def answer(self, target: str, body: bytes) -> Answer:
        """The answer to a request; `target` is its header `X-Amz-Target`."""
        if not target.endswith(".Query"):
            return Answer.of(OTHERS[target.partition(".")[2]](json.loads(body)))
        if body not in self._answers:
            self._answers[body] = Answer.of(self._page(json.loads(body)))
        return self._answers[body]

    def _page(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """A page ends at `Limit` items or at 1 MB, whichever comes first."""
        start = self._start(request)
        most = request.get("Limit", len(self._items))
        end, size = start, 0
        while end < len(self._items) and end - start < most and size < PAGE_BYTES:
            size += _size(self._items[end])
            end += 1
        items = self._items[start:end]
        page: dict[str, Any] = {"Count": len(items), "ScannedCount": len(items)}
        if request.get("Select") != "COUNT":
            page["Items"] = [_projected(item, request) for item in items]
        if items and (end < len(self._items) or len(items) == most):
            page["LastEvaluatedKey"] = {name: items[-1][name] for name in ("PK", "SK")}
        return page

    def _start(self, request: Mapping[str, Any]) -> int:
        if "ExclusiveStartKey" in request:
            return bisect_right(self._sort_keys, request["ExclusiveStartKey"]["SK"]["S"])
        [bound] = {value["S"] for value in request["ExpressionAttributeValues"].values()} - {
            PARTITION
        }
        inclusive = ">=" in request["KeyConditionExpression"]
        return (bisect_left if inclusive else bisect_right)(self._sort_keys, bound)


def _sent(request: Mapping[str, Any]) -> dict[str, Any]:
    digest = hashlib.md5(request["MessageBody"].encode(), usedforsecurity=False)
    return {"MD5OfMessageBody": digest.hexdigest(), "MessageId": "0" * 36}


OTHERS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "BatchWriteItem": lambda _: {"UnprocessedItems": {}},
    "SendMessage": _sent,
    "UpdateItem": lambda _: {},
}
"""The answers of the operations that read nothing."""


def _user() -> WireItem:
    attributes = {"count": FOLDED, "floor": FOLDED, "created": 1_700_000_000}
    numbers = {name: {"N": str(value)} for name, value in attributes.items()}
    folded = f"2024-01-01T00:00:00.000#{FOLDED:040}"
    return {"PK": {"S": PARTITION}, "SK": {"S": "USER"}, "folded": {"S": folded}, **numbers}


def _view(place: int) -> WireItem:
    sort_key = f"VIEW#{ULID.from_timestamp(FIRST_VIEW_MS + place)}"
    return {"PK": {"S": PARTITION}, "SK": {"S": sort_key}, "ttl": {"N": "1700000300"}}


def _size(item: WireItem) -> int:
    """A number takes a byte for two digits, and one."""
    return sum(
        len(name.encode())
        + (len(value["S"].encode()) if "S" in value else len(value["N"]) // 2 + 1)
        for name, value in item.items()
    )


def _projected(item: WireItem, request: Mapping[str, Any]) -> WireItem:
    if "ProjectionExpression" not in request:
        return item
    names = request.get("ExpressionAttributeNames", {})
    wanted = [names.get(name, name) for name in request["ProjectionExpression"].split(", ")]
    return {name: item[name] for name in wanted if name in item}


def _text(header: str | bytes) -> str:
    return header.decode() if isinstance(header, bytes) else header


@contextmanager
def serving(aws: StubbedAws) -> Iterator[str]:
    """The URL of an endpoint on 127.0.0.1, for clients in other processes."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            answer = aws.answer(self.headers["X-Amz-Target"], body)
            self.send_response(200)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            """Say nothing: the tables are the output."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
