"""The events that AWS would send to the measured handlers."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from ulid import ULID

from chalicelib.counting.view import View, new_ulid
from chalicelib.counting.windows import Windows, marker_item
from chalicelib.http.messages import Caller, Role
from chalicelib.storage.items import Item
from chalicelib.wallets.wallet import HOT_SECONDS, Entry, Posting
from simulation.aws_events import (
    API_DOMAIN,
    authorizer_event,
    http_api_event,
    item_removal,
    sqs_event,
    stream_event,
)

PATH = "/api/v1/views"
WINDOWS = Windows()
EVENTS_PATH = "/api/v1/events"


HEADERS = {"accept": "*/*", "host": API_DOMAIN, "user-agent": "github-camo"}


def get_views(badge_id: str) -> dict[str, Any]:
    """Return a GET of a badge, as API Gateway's HTTP API sends it to Lambda."""
    query = urlencode({"id": badge_id})
    return http_api_event(PATH, rawQueryString=query, headers=HEADERS)


def get_badge(badge_id: str) -> dict[str, Any]:
    """Return a GET of a badge as SVG."""
    return http_api_event(
        f"{PATH}.svg", rawQueryString=urlencode({"id": badge_id}), headers=HEADERS
    )


def get_views_by_rest(badge_id: str) -> dict[str, Any]:
    """Return a GET of a badge, as a REST API sends it to the original's Lambda."""
    return {
        "resource": PATH,
        "path": PATH,
        "httpMethod": "GET",
        "headers": {"Accept": "*/*", "Host": "badges.example", "User-Agent": "github-camo"},
        "multiValueHeaders": {
            "Accept": ["*/*"],
            "Host": ["badges.example"],
            "User-Agent": ["github-camo"],
        },
        "queryStringParameters": {"id": badge_id},
        "multiValueQueryStringParameters": {"id": [badge_id]},
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "resourcePath": PATH,
            "httpMethod": "GET",
            "path": f"/api{PATH}",
            "stage": "api",
            "identity": {"sourceIp": "192.0.2.1", "userAgent": "github-camo"},
        },
        "body": None,
        "isBase64Encoded": False,
    }


def post_event(document: Mapping[str, Any], token: str) -> dict[str, Any]:
    """Return a POST of an event, as API Gateway sends it to Lambda after the authorizer."""
    return _request_of_an_operator(EVENTS_PATH, "POST", token, document)


def put_posting(path: str, body: Mapping[str, str]) -> dict[str, Any]:
    """Return a PUT of a deposit or a transfer, with a token without a user."""
    return _request_of_an_operator(path, "PUT", "token", body)


def get_of_a_wallet(path: str) -> dict[str, Any]:
    """Return a GET of a wallet's balance or journal."""
    return _request_of_an_operator(path, "GET", "token")


def _request_of_an_operator(
    path: str, method: str, token: str, body: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    return http_api_event(
        path,
        method,
        headers={**HEADERS, **headers},
        authorizer={"lambda": Caller(Role.OPERATOR).fields},
        **({} if body is None else {"body": json.dumps(body)}),
    )


def authorization(token: str) -> dict[str, Any]:
    """Return the event that API Gateway sends to the authorizer for a token's first request."""
    return authorizer_event(f"Bearer {token}", EVENTS_PATH)


def messages(bodies: Sequence[str]) -> dict[str, Any]:
    """Return a batch of SQS messages, each received for the first time."""
    return sqs_event({str(place): body for place, body in enumerate(bodies)})


def views(
    badge_ids: Sequence[str], now: float, *, hot: bool = False, fold: bool = False
) -> dict[str, Any]:
    """Return a batch of SQS messages, one view for each id; a badge's first one begins its window.

    In reality a few more do, because visitors who come at the same time see the same count.
    """
    seen: set[str] = set()
    bodies = []
    for badge_id in badge_ids:
        first = badge_id not in seen
        seen.add(badge_id)
        view = View(badge_id, new_ulid(int(now * 1000)), first, hot, fold)
        bodies.append(view.to_message())
    return messages(bodies)


def removals(badge_ids: Sequence[str], now: float, first: int = 1) -> dict[str, Any]:
    """Return a batch of stream records: each badge's last marker of which the grace is over.

    `first` is the first sequence number.
    """
    mark = WINDOWS.foldable(now)
    items = [marker_item(badge_id, mark, WINDOWS.marker_ttl(mark)) for badge_id in badge_ids]
    return removed(items, now, first)


def removed(items: Sequence[Item], now: float, first: int = 1) -> dict[str, Any]:
    """Return the stream records of the removal of items by TTL."""
    return stream_event(item_removal(item, place, now) for place, item in enumerate(items, first))


def removed_entries(count: int) -> dict[str, Any]:
    """Return a batch of stream records of removed entries, two for each transfer of one day.

    Wallets, nonces and amounts vary like those of many users, and are the same in each run.
    """
    some, now = random.Random(count), time.time()  # noqa: S311  not for security
    at = int(now - HOT_SECONDS) * 1000
    wallets = [str(ULID.from_bytes(some.randbytes(15).rjust(16, b"\0"))) for _ in range(count)]
    items: list[Item] = []
    while len(items) < count:
        source, target = some.sample(wallets, 2) if count > 1 else (wallets[0], wallets[0][::-1])
        entry_id = str(ULID.from_timestamp(at / 1000))[:10] + some.choice(wallets)[10:]
        nonce = str(UUID(bytes=some.randbytes(16)))
        posting = Posting(nonce, some.randrange(1, 10**9), target, source)
        entry = Entry(entry_id, posting, at + len(items))
        items += [entry.item(source), entry.item(target)]
    return removed(items[:count], now)
