"""The framing of a request: what HTTP forbids in a head, and the parser accepts.

A proxy before this server must read a request in the same way, because its rules depend on that.
So a request that two programs may read differently is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from chalicelib.http.errors import BadRequestError, ClientError, TooLargeError
from chalicelib.http.fields import MAX_BYTES

Scope: TypeAlias = Mapping[str, Any]

MAX_HEAD_BYTES = 16_384
HEADER_BYTES = 4
"""The bytes of a header beside its name and value: `: ` and the end of the line."""
TARGET = re.compile(rb"/(?!/)[!-~]*")
"""One slash and printable ASCII. Some proxies take the text after two slashes for a host."""
QUERY = re.compile(rb"[!-~]*")
LENGTH = re.compile(rb"[0-9]{1,18}")


class HeadTooLargeError(ClientError):
    """The target and the headers of a request are too long (RFC 6585, section 5)."""

    status = 431
    code = "head_too_large"

    def __init__(self, size: int) -> None:
        super().__init__(f"the head has {size} bytes: give at most {MAX_HEAD_BYTES}")


def check(scope: Scope) -> int:
    """Return the length of the body of a request. Raises `ClientError`.

    Sources: RFC 9112, section 3.2 for `Host` and the target, and section 6.1 for the length. The
    parser drops a `Content-Length` beside a `Transfer-Encoding`, so both are refused together.
    """
    _check_size(scope)
    if not (TARGET.fullmatch(scope["raw_path"]) and QUERY.fullmatch(scope["query_string"])):
        raise BadRequestError("the target must be a path with one / before it, percent-encoded")
    names = [name for name, _ in scope["headers"]]
    hosts = _values(scope, b"host")
    if len(hosts) != 1 or (not hosts[0] and scope["http_version"] != "1"):
        raise BadRequestError("send one Host header")
    if b"transfer-encoding" in names:
        raise BadRequestError("send the body with Content-Length, not with Transfer-Encoding")
    return _length(_values(scope, b"content-length")) if b"content-length" in names else 0


def _check_size(scope: Scope) -> None:
    headers = scope["headers"]
    size = len(scope["raw_path"]) + len(scope["query_string"]) + HEADER_BYTES * len(headers)
    size += len(b"".join([part for header in headers for part in header]))
    if size > MAX_HEAD_BYTES:
        raise HeadTooLargeError(size)


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for given, value in scope["headers"] if given == name]


def _length(lengths: list[bytes]) -> int:
    if len(lengths) > 1 or not LENGTH.fullmatch(lengths[0]):
        raise BadRequestError("Content-Length: send it once, as a number of at most 18 digits")
    length = int(lengths[0])
    if length > MAX_BYTES:
        raise TooLargeError(f"the body has {length} bytes: give at most {MAX_BYTES}")
    return length
