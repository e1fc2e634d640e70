"""The framing of a request: a head that two programs may read differently is refused."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from chalicelib.http.errors import BadRequestError, TooLargeError
from chalicelib.http.fields import MAX_BYTES
from vumi.server.asgi import MAX_HEAD_BYTES, HeadTooLargeError, read_framing

HOST = (b"host", b"h")
HOST_BYTES = len("host: h\r\n")


def check(
    target: bytes = b"/", headers: Iterable[tuple[bytes, bytes]] = (HOST,), version: str = "1.1"
) -> int:
    path, _, query = target.partition(b"?")
    length, _ = read_framing(
        {
            "raw_path": path,
            "query_string": query,
            "headers": list(headers),
            "http_version": version,
        }
    )
    return length


@pytest.mark.parametrize(
    "target", [b"/", b"/a//b", b"/%2F/", b"/a?b?c=//d", b"/a|{}\\^`", b"/~!", b"/a%20b"]
)
def test_a_target_is_one_slash_and_printable_ascii(target: bytes) -> None:
    assert check(target) == 0


def hosts(*values: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"host", value) for value in values]


def lengths(*values: bytes) -> list[tuple[bytes, bytes]]:
    return [HOST, *((b"content-length", value) for value in values)]


@pytest.mark.parametrize(
    "target",
    [
        *b"* a h:80 // //x/api/v1/events http://h/ /a\x7f \xc3\xbc /?id=\xc3\xbc".split(b" "),
        *(b"", b"/a b", b"/a\n", b"/?a b", b"/?a\n"),
    ],
)
def test_any_other_target_is_refused(target: bytes) -> None:
    with pytest.raises(BadRequestError, match="the target must be a path"):
        check(target)


@pytest.mark.parametrize(
    ("given", "version"),
    [
        (hosts(), "1.1"),
        (hosts(b""), "1.1"),
        (hosts(b"a", b"b"), "1.1"),
        (hosts(b"a", b"a"), "1.1"),
        (hosts(b"a", b"a"), "1"),
    ],
)
def test_any_other_number_of_hosts_is_refused(
    given: list[tuple[bytes, bytes]], version: str
) -> None:
    """The server replaces a missing `Host` with an empty one, which HTTP/1.0 allows."""
    with pytest.raises(BadRequestError, match="send one Host header"):
        check(headers=given, version=version)
    assert check(headers=hosts(b""), version="1") == 0


@pytest.mark.parametrize("length", [[], [b"1"]])
@pytest.mark.parametrize("coding", [b"chunked", b"gzip, chunked", b""])
def test_a_transfer_coding_is_refused(coding: bytes, length: list[bytes]) -> None:
    """Also alone, because the parser drops a `Content-Length` beside it."""
    with pytest.raises(BadRequestError, match="send the body with Content-Length"):
        check(headers=[*lengths(*length), (b"transfer-encoding", coding)])


@pytest.mark.parametrize(
    ("length", "read"), [(b"0", 0), (b"7", 7), (b"007", 7), (b"%d" % MAX_BYTES, MAX_BYTES)]
)
def test_a_length_is_a_number(length: bytes, read: int) -> None:
    assert check(headers=lengths(length)) == read


@pytest.mark.parametrize(
    "given", [[b"1", b"1"], *([one] for one in b"+1 -1 1_0 0x1 1,1".split()), [b""], [b"9" * 5_000]]
)
def test_any_other_length_is_refused(given: list[bytes]) -> None:
    """Python refuses to read 5,000 digits, with an error that was once logged."""
    with pytest.raises(BadRequestError, match="Content-Length: send it once, as a number"):
        check(headers=lengths(*given))


@pytest.mark.parametrize("length", [MAX_BYTES + 1, 10**17])
def test_a_body_has_a_maximum(length: int) -> None:
    with pytest.raises(TooLargeError, match=f"has {length} bytes: give at most 262144"):
        check(headers=lengths(b"%d" % length))


@pytest.mark.parametrize("part", ["path", "query", "header"])
def test_a_head_has_a_maximum(part: str) -> None:
    def sized(size: int) -> int:
        if part == "header":
            filler = b"a" * (size - HOST_BYTES - len("/") - len("a: \r\n"))
            return check(headers=[HOST, (b"a", filler)])
        target = b"/" if part == "path" else b"/?"
        return check(target + b"a" * (size - HOST_BYTES - len("/")))

    assert sized(MAX_HEAD_BYTES) == 0
    with pytest.raises(HeadTooLargeError, match="the head has 16385 bytes: give at most 16384"):
        sized(MAX_HEAD_BYTES + 1)
