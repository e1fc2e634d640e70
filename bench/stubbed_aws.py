"""DynamoDB and SQS without AWS: answers in the form of AWS, each made once.

The measured code is real: clients build and sign each request, and parse each answer.
Sources: the DynamoDB and SQS API references.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, TypeAlias

import botocore
from cryptography.x509 import IPAddress

from chalicelib.aws.attribute_values import AttributeValue, encode_item
from chalicelib.aws.json_client import HttpReply
from chalicelib.counting import keys
from chalicelib.counting.summary import HOURS_OF_DAY, Day, hour_of
from chalicelib.ulids import new_ulid
from simulation import loopback
from simulation.authority import Authority

WireItem: TypeAlias = dict[str, AttributeValue]

BADGE_ID = "octocat/hello-world"
FOLDED = 1_234
"""The stored count of the badge."""
FIRST_VIEW_MS = 1_767_268_800_000
"""2026-01-01T12:00:00Z."""
CONTENT_TYPE = "application/x-amz-json-1.0"
AUTHORITIES = Path(botocore.__file__).parent / "cacert.pem"
TRUST = ("SSL_CERT_FILE", "AWS_CA_BUNDLE")
"""The variables that name a file of authorities, of OpenSSL and of botocore."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The body of an answer with status 200, and its headers."""

    body: bytes
    headers: Mapping[str, str]

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Answer:
        body = json.dumps(content, separators=(",", ":")).encode()
        return cls(body, {"Content-Type": CONTENT_TYPE, "x-amz-crc32": str(zlib.crc32(body))})


class StubbedAws:
    """A badge with a number of live views, and a queue that accepts everything."""

    def __init__(self, live_views: int = 0) -> None:
        self.hold(live_views)

    def hold(self, live_views: int) -> None:
        """Set the number of live views."""
        self._items = [*(_view(place) for place in range(live_views)), summary()]
        self._sort_keys = [item["SK"]["S"] for item in self._items]
        self._answers: dict[bytes, Answer] = {}

    def send(self, headers: Mapping[str, str], body: bytes) -> HttpReply:
        """Answer a request of vu-mi's client in place of the network."""
        answer = self.answer(headers["X-Amz-Target"], body)
        return HttpReply(200, answer.headers, answer.body)

    def answer(self, target: str, body: bytes) -> Answer:
        """Return the answer to a request; `target` is its header `X-Amz-Target`."""
        if not target.endswith(".Query"):
            return Answer.of(OTHERS[target.partition(".")[2]](json.loads(body)))
        if body not in self._answers:
            self._answers[body] = Answer.of(self._page(json.loads(body)))
        return self._answers[body]

    def _page(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the one page of a Query: no badge here has 1 MB of views."""
        asked = self._select(request)
        items = asked[: request.get("Limit", len(asked))]
        page: dict[str, Any] = {"Count": len(items), "ScannedCount": len(items)}
        if request.get("Select") != "COUNT":
            page["Items"] = [_project(item, request) for item in items]
        if len(items) < len(asked):
            page["LastEvaluatedKey"] = {name: items[-1][name] for name in ("PK", "SK")}
        return page

    def _select(self, request: Mapping[str, Any]) -> Sequence[WireItem]:
        """Return the items between the sort keys that a Query names; there are no bans."""
        values = {value["S"] for value in request["ExpressionAttributeValues"].values()}
        between = values - {keys.partition(BADGE_ID)}
        if between == values:
            return ()
        first, last = sorted(between)
        start, end = bisect_left(self._sort_keys, first), bisect_right(self._sort_keys, last)
        items = self._items[start:end]
        return items if request.get("ScanIndexForward", True) else items[::-1]


def _answer_send(request: Mapping[str, Any]) -> dict[str, Any]:
    digest = hashlib.md5(request["MessageBody"].encode(), usedforsecurity=False)
    return {"MD5OfMessageBody": digest.hexdigest(), "MessageId": "0" * 36}


OTHERS: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "BatchWriteItem": lambda _: {"UnprocessedItems": {}},
    "GetItem": lambda _: {"Item": summary()},
    "SendMessage": _answer_send,
    "UpdateItem": lambda _: {},
}
"""The answers of the operations that read no views."""


def summary() -> WireItem:
    """Return the summary of the badge, which has views in every hour of the day."""
    hours = dict.fromkeys(range(HOURS_OF_DAY), FOLDED // HOURS_OF_DAY)
    today = Day(hour_of(FIRST_VIEW_MS).day, hours)
    pk, sk = keys.summary(BADGE_ID)
    return encode_item(
        {
            "PK": pk,
            "SK": sk,
            "count": FOLDED,
            "watermark": FIRST_VIEW_MS - 1,
            "today": {"day": today.day, **today.attributes},
            "version": 96,
            "created": FIRST_VIEW_MS // 1000,
        }
    )


def _view(place: int) -> WireItem:
    pk, sk = keys.view(BADGE_ID, new_ulid(FIRST_VIEW_MS + place))
    return encode_item({"PK": pk, "SK": sk, "ttl": FIRST_VIEW_MS // 1000})


def _project(item: WireItem, request: Mapping[str, Any]) -> WireItem:
    if "ProjectionExpression" not in request:
        return item
    names = request.get("ExpressionAttributeNames", {})
    wanted = [names.get(name, name) for name in request["ProjectionExpression"].split(", ")]
    return {name: item[name] for name in wanted if name in item}


@contextmanager
def serving(aws: StubbedAws, folder: Path) -> Iterator[Mapping[str, str]]:
    """Serve the answers over TLS on 127.0.0.1, and yield the environment of its clients.

    They trust the authorities that botocore brings, as many as on Lambda, and one of the folder.
    """

    class Handler(loopback.SilentHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            answer = aws.answer(self.headers["X-Amz-Target"], self.read())
            self.reply(200, answer.body, **answer.headers)

    authority, trusted = Authority.create(folder), folder / "trusted.pem"
    trusted.write_bytes(AUTHORITIES.read_bytes() + authority.file().read_bytes())
    tls = authority.server(IPAddress(ip_address("127.0.0.1")))
    with loopback.serving(Handler, tls) as port:
        yield {"AWS_ENDPOINT_URL": f"https://127.0.0.1:{port}"} | dict.fromkeys(TRUST, str(trusted))
