"""`api_handler`: the function of the one stack that answers all routes but those of `get_views`.

It has the whole table of routes, so that it answers every path that API Gateway sends to it.
"""

from __future__ import annotations

from typing import Any

from chalicelib.api import TABLE
from chalicelib.aws import http_api, resources

resources.connect()


def handler(event: http_api.Event, context: Any) -> dict[str, Any]:
    """Answer a request."""
    return http_api.answer(TABLE, event, context)
