"""The events that AWS would send to the measured handlers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from chalicelib.counting.view import View, Windows, marker_item
from chalicelib.http.messages import Caller, Role
from chalicelib.storage.items import Item
from chalicelib.ulids import new_ulid
from simulation.aws_events import API_DOMAIN, http_api_event, item_removal, sqs_event, stream_event

PATH = "/api/v1/views"
WINDOWS = Windows()
HEADERS = {"accept": "*/*", "host": API_DOMAIN, "user-agent": "github-camo"}


def ask(badge_ids: str | Sequence[str], method: str = "GET", path: str = PATH) -> dict[str, Any]:
    """Return a request for badges, as API Gateway's HTTP API sends it to Lambda.

    A POST counts a view of each badge, as the script of web pages sends it.
    """
    query = urlencode({"id": badge_ids}, doseq=True)
    return http_api_event(path, method, rawQueryString=query, headers=HEADERS)


def put_posting(path: str, body: Mapping[str, str]) -> dict[str, Any]:
    """Return a PUT of a deposit or a transfer by an operator, after the authorizer."""
    headers = {**HEADERS, "content-type": "application/json"}
    authorizer = {"lambda": Caller(Role.OPERATOR).fields}
    return http_api_event(
        path, "PUT", headers=headers, authorizer=authorizer, body=json.dumps(body)
    )


def messages(bodies: Sequence[str]) -> dict[str, Any]:
    """Return a batch of SQS messages, each received for the first time."""
    return sqs_event({str(place): body for place, body in enumerate(bodies)})


def views(badge_ids: Sequence[str], now: float, *, hot: bool = False) -> dict[str, Any]:
    """Return a batch of SQS messages, one view for each id; a badge's first one begins its window.

    In reality a few more do, because visitors who come at the same time see the same count.
    """
    first = {badge_id: place for place, badge_id in reversed([*enumerate(badge_ids)])}
    return messages(
        [
            View(one, new_ulid(int(now * 1000)), first[one] == place, hot).to_message()
            for place, one in enumerate(badge_ids)
        ]
    )


def removals(badge_ids: Sequence[str], now: float) -> dict[str, Any]:
    """Return a batch of stream records: each badge's last marker of which the grace is over."""
    mark = WINDOWS.foldable(now)
    ttl = WINDOWS.marker_ttl(mark)
    return removed([marker_item(badge_id, mark, ttl) for badge_id in badge_ids], now)


def removed(items: Sequence[Item], now: float, first: int = 1) -> dict[str, Any]:
    """Return the stream records of items that TTL removed; `first` is the first number."""
    return stream_event(item_removal(item, place, now) for place, item in enumerate(items, first))
