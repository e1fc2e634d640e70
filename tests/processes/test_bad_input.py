"""Bytes that no client of the described API sends, each answered below 500 or by a hang-up.

Tests of the web server send wrong framing and sizes, and schemathesis sends wrong ids, options,
methods and bodies.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from simulation.raw_http import receive
from tests.processes.programs import PATIENCE_SECONDS, Server

NAMES = ("X-Odd", "Content-Type", "Accept", "Authorization", "Host", "Expect", "Upgrade", "Range")
BELOW_500 = re.compile(rb"HTTP/1\.[01] [1-4]\d\d ")


def request(badge_id: str, *headers: str) -> bytes:
    lines = (f"GET /api/v1/views?id={badge_id} HTTP/1.1", "Host: odd", *headers, "", "")
    return "\r\n".join(lines).encode("latin-1", "replace")


RIGHT, UNFINISHED = request("right", "Accept: */*", "X: y"), request("unfinished")


def change(changes: Iterable[tuple[int, int]]) -> bytes:
    raw = bytearray(RIGHT)
    for place, byte in changes:
        raw[place] = byte
    return bytes(raw)


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=40)
odd_headers = st.builds("{}: {}".format, st.sampled_from(NAMES) | words, words)
changes = st.tuples(st.integers(0, len(RIGHT) - 1), st.integers(0, 255))
unfinished = st.one_of(
    st.binary(min_size=1, max_size=3_000),
    st.integers(1, len(UNFINISHED) - 1).map(lambda end: UNFINISHED[:end]),
    st.lists(changes, min_size=1, max_size=5).map(change),
)


def answer(server: Server, raw: bytes, *, is_whole: bool) -> bytes:
    """Return the response, or nothing if the server hangs up. Raises `TimeoutError`."""
    address = server.host, server.port
    with (
        socket.create_connection(address, PATIENCE_SECONDS) as connected,
        suppress(ConnectionError),
    ):
        connected.sendall(raw)
        if not is_whole:
            with suppress(OSError):  # the server has hung up already
                connected.shutdown(socket.SHUT_WR)
        return receive(connected)
    return b""


@given(odd_headers.map(lambda header: request("odd", header)))
@settings(max_examples=300)
def test_a_request_with_any_header_is_answered(server: Server, raw: bytes) -> None:
    assert BELOW_500.match(answer(server, raw, is_whole=True))


@given(unfinished)
@settings(max_examples=900)
def test_bytes_without_an_end_are_refused_and_count_nothing(server: Server, raw: bytes) -> None:
    answered = answer(server, raw, is_whole=False)
    assert not answered or BELOW_500.match(answered)
    assert server.peek("unfinished") == 0
