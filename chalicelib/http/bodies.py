"""Bodies of requests: JSON objects, read so that nothing in them is passed over."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chalice.app import Request

MAX_DEPTH = 100
"""Deeper JSON could be taken here and not be read back where more calls lie on the stack."""


class BadRequestError(ValueError):
    """A request is wrong; the message says what to give."""


NOT_UTF_8 = b"\xff"


def body_of(request: Request) -> bytes:
    """The body of a request; of one that no UTF-8 can hold, something that is none either."""
    try:
        body = request.raw_body
    except UnicodeEncodeError:
        return NOT_UTF_8
    return body if isinstance(body, bytes) else body.encode()


def read_fields(body: bytes, known: set[str]) -> Mapping[str, Any]:
    """The fields of a body, of which none may be another. Raises `BadRequestError`."""
    try:
        fields = json.loads(body, object_pairs_hook=_once)
    except BadRequestError:
        raise
    except (ValueError, RecursionError):
        raise BadRequestError("the body must be a JSON object") from None
    if not isinstance(fields, dict):
        raise BadRequestError("the body must be a JSON object")
    if unknown := sorted(fields.keys() - known):
        raise BadRequestError(f"no field {unknown[0][:30]!r}: there are {', '.join(sorted(known))}")
    _check_depth(fields, MAX_DEPTH)
    return fields


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """An object none of whose names is given twice: which of them is meant, JSON leaves open."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise BadRequestError(f"{name[:30]!r} is given twice: give it once")
        fields[name] = value
    return fields


def _check_depth(value: object, left: int) -> None:
    if isinstance(value, dict | list):
        if not left:
            raise BadRequestError(f"the body is too deep: give at most {MAX_DEPTH} levels of JSON")
        for inner in value.values() if isinstance(value, dict) else value:
            _check_depth(inner, left - 1)
