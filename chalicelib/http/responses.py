"""The JSON responses that all features share."""

from __future__ import annotations

import json as json_codec
from collections.abc import Mapping
from typing import Any

from chalicelib.http.messages import Change, Response, Unchanging

NOT_STORED = {"Cache-Control": "no-store"}
NOSNIFF = {"X-Content-Type-Options": "nosniff"}
"""Browsers must not take a response for another type than its own (Fetch standard)."""
TYPES = {"Content-Type": "application/json", **NOSNIFF}

HEADERS = Unchanging({**TYPES, **NOT_STORED})

to_compact_json = json_codec.JSONEncoder(separators=(",", ":")).encode


def json(body: Mapping[str, Any], status: int = 200, change: Change | None = None) -> Response:
    """Return a JSON response, which no cache may keep."""
    return Response(status, HEADERS, to_compact_json(body).encode(), change)


def no_content(change: Change | None) -> Response:
    """Return a response without a body, after a change, or one that the log does not tell."""
    return Response(204, NOT_STORED, change=change)


def error(
    status: int, code: str, message: str, details: Mapping[str, str] | None = None
) -> Response:
    """Return `{"error": {"code", "message"}}`, the form of every error but a badge's."""
    return json({"error": {"code": code, "message": message, **(details or {})}}, status)
