"""The bodies of requests: JSON objects, in which nothing is ignored, or none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from chalicelib.http.errors import BadRequestError, TooLargeError

MAX_BYTES = 262_144
MAX_DEPTH = 100
"""Levels of JSON. A deeper value might be stored, but not read again where the stack is deeper."""


def read_fields(body: bytes, known: set[str], most: int = MAX_BYTES) -> Mapping[str, Any]:
    """Return the fields of a body, all of them `known`.

    Raises `BadRequestError`, and `TooLargeError` for a body of more than `most` bytes.
    """
    if len(body) > most:
        raise TooLargeError(f"the body has {len(body)} bytes: give at most {most}")
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


def check_empty(body: bytes) -> None:
    """Raise `BadRequestError` for a body where the query has everything."""
    if body:
        raise BadRequestError(f"the body has {len(body)} bytes: send none, all is in the query")


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; refuse a repeated name, because JSON does not define its value."""
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
