"""The description of the parts that all features share, and of the routes that belong to none."""

from __future__ import annotations

import re

from chalicelib.http import page
from chalicelib.http.openapi import (
    Operation,
    Refusal,
    Section,
    fields,
    header,
    integer,
    json_content,
    schema,
    string,
    success,
)

NO_CONTROL_CHARACTERS = re.compile(r"[^\u0000-\u001f\u007f-\u009f]*")
BASE64_URL = re.compile("[A-Za-z0-9_-]+")
ISO_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"
MOMENT = schema(
    "Moment", string(re.compile(ISO_MOMENT), format="date-time"), "In UTC, to the millisecond."
)
NEXT_PAGE = "The `cursor` of the page before; none for the first page."

ANY_ORIGIN = {
    "Access-Control-Allow-Origin": header(
        "AnyOrigin", "A script of any site may read it.", {"const": "*"}
    )
}
CACHED = header(
    "Cached",
    f"A cache may keep it for {page.CACHED_SECONDS // 60} minutes.",
    {"const": f"public, max-age={page.CACHED_SECONDS}"},
)
RETRY_AFTER = {"Retry-After": header("RetryAfter", "Seconds to wait.", integer(1))}

TOO_LARGE = Refusal(
    "TooLarge",
    413,
    ["too_large"],
    "The body is larger than 256 KiB, or than 16 KiB for the owner of a badge.",
)
TOO_MANY_REQUESTS = Refusal(
    "TooManyRequests",
    429,
    ["too_many_requests"],
    "On AWS: there are more requests than the API serves. On one machine: there are more from the"
    " client's address than the operator allows. This one counted and changed nothing.",
    RETRY_AFTER,
)
INTERNAL = Refusal("Internal", 500, ["internal"], "A fault of the server. The log has it.")
UNAVAILABLE = Refusal(
    "Unavailable",
    503,
    ["unavailable"],
    "The table does not answer. Nothing is half-done.",
    RETRY_AFTER,
)

PAGE = {
    "description": "One file. It loads nothing but the badges that it shows.",
    "headers": {
        "Cache-Control": CACHED,
        "Content-Security-Policy": {
            "required": True,
            "description": "Allows the page's own style and script, by hash.",
            "schema": {"type": "string"},
        },
        "Permissions-Policy": header(
            "Permissions", "The page uses none of these.", {"const": page.PERMISSIONS}
        ),
        "Cross-Origin-Opener-Policy": header(
            "Opener", "No page of another site reaches it.", {"const": "same-origin"}
        ),
    },
    "content": {"text/html": {}},
}
DOCUMENT = {
    "description": "OpenAPI 3.1.",
    "headers": {"Cache-Control": CACHED},
    "content": json_content(
        {"type": "object", "required": ["openapi", "info", "paths"]},
        {"openapi": "3.1.0", "info": {"title": "vu-mi", "version": "1.0.0"}, "paths": {}},
    ),
}
OPERATIONS = {
    "GET /": Operation("getPage", responses={200: PAGE}, can_fail=False),
    "GET /openapi.json": Operation("getDescription", responses={200: DOCUMENT}, can_fail=False),
    "GET /healthz": Operation(
        "getHealth",
        responses={200: success(fields({"status": {"const": "ok"}}), example={"status": "ok"})},
    ),
}
SECTIONS = (
    Section("service", "The page, this document, and the health of the service.", OPERATIONS),
)
