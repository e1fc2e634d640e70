"""`api_handler`: the function of the one stack that answers all routes but those of `get_views`.

It has the whole table of routes, so that it answers every path that API Gateway sends to it.
"""

from __future__ import annotations

from typing import Any

from chalicelib import api
from chalicelib.aws import http_api, resources
from chalicelib.settings import SettingsError

resources.connect()


def handler(event: http_api.Event, context: Any) -> dict[str, Any]:
    """Answer a request."""
    try:
        table = api.table_of(resources.current().settings.drop_in)
    except SettingsError:  # the response says that it failed
        table = api.TABLE
    return http_api.answer(table, event, context)
