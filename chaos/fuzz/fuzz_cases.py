"""Bad input from a seed, in bytes that no client of the described API sends.

Headers, transfer codings, sizes, requests that end too early or have changed bytes, and bytes that
are no HTTP. schemathesis sends wrong ids, options, methods and bodies. No case is a view of a badge
under check.
"""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

ODD_TEXTS = (
    "' OR '1'='1",
    '"; DROP TABLE items; --',
    "${jndi:ldap://127.0.0.1/a}",
    "<script>alert(1)</script>",
    "../../../../etc/passwd",
    "$(sleep 10)",
    "USER#a#b",
    "%s%n%x",
    "-1",
    "1e999",
    "\x00",
    "a\x00b",
    "\x07\x1b[31m",
    "\x7f\x80\x9f",
    "\ufeff",
    "\u202egnp.exe",
    "\U0010ffff",
    "e" + "\u0301" * 300,
    "ﷺ" * 50,
    "\u2028\u2029",
)
ROUTES = (
    "/api/v1/views",
    "/api/v1/views.svg",
    "/v1/api/views",
    "/api/v1/views/history",
    "/api/v1/views/history.svg",
)
NO_HTTP = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"EHLO example.org\r\n\r\n",
    b"GET /\r\n\r\n",
    b"GET / HTTP/9.9\r\nHost: x\r\n\r\n",
    b"GET / HTTP/1.1 extra\r\nHost: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    b"\r\n" * 500,
    b"\x00" * 1_000,
    b"GET  /  HTTP/1.1\r\n\r\n",
    b"*1\r\n$4\r\nPING\r\n",
    b"\n\n\n\nGET / HTTP/1.1\n\n",
)
NOT_IMPLEMENTED = frozenset({501})
"""The right answer to an unknown transfer coding (RFC 9112, section 6.1)."""


@dataclass(frozen=True, slots=True)
class Case:
    """One bad input as bytes.

    `whole` says whether it is a whole request; otherwise the client shuts down its side after it.
    `also` are right statuses of 500 or more.
    """

    family: str
    raw: bytes
    whole: bool = True
    also: frozenset[int] = frozenset()


Chance: TypeAlias = random.Random
Family: TypeAlias = Callable[[Chance, Sequence[str]], Case]


def cases(seed: object, number: int, checked: Sequence[str]) -> Iterator[Case]:
    """Yield cases of each family; the counts of the badges in `checked` must not change."""
    chance = random.Random(f"{seed}/fuzz")
    for place in range(number):
        yield FAMILIES[place % len(FAMILIES)](chance, checked)


def _request(
    target: str | bytes,
    method: str = "GET",
    headers: Sequence[tuple[str, str]] = (),
    body: bytes = b"",
) -> bytes:
    """Return a request in the form that a client writes, whatever its parts contain."""
    raw = target if isinstance(target, bytes) else target.encode("utf-8", "surrogatepass")
    length = [("Content-Length", str(len(body)))] if body else []
    lines = [f"{name}: {value}\r\n" for name, value in [("Host", "chaos"), *length, *headers]]
    head = b"".join(line.encode("latin-1", "replace") for line in lines)
    return method.encode() + b" " + raw + b" HTTP/1.1\r\n" + head + b"\r\n" + body


def _odd_text(chance: Chance) -> str:
    """Return an odd text that somebody might try."""
    match chance.randrange(3):
        case 0:
            return chance.choice(ODD_TEXTS)
        case 1:
            length = chance.choice((0, 1, 199, 200, 201, 1_000, 3_000))
            return chance.choice(("a", "ü", "🦆", "/")) * length
    letters = (chr(chance.randrange(0x11_0000)) for _ in range(chance.randrange(1, 40)))
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Cs")


def _header(chance: Chance, _: Sequence[str]) -> Case:
    odd = "".join(letter for letter in _odd_text(chance) if letter not in "\r\n")[:2_000]
    headers = chance.choice(
        (
            [("X-Odd", odd)],
            [(odd or "empty", "x")],
            [("Content-Type", odd)],
            [("Accept", odd), ("Accept-Encoding", odd)],
            [("Authorization", f"Bearer {odd}")],
            [("Host", odd)],
            [("Cookie", "a=b; " * 3_000)],
            [("X-HTTP-Method-Override", "DELETE"), ("X-Forwarded-For", odd)],
            [(f"X-{number}", "y") for number in range(chance.choice((50, 2_000)))],
            [("X-Long", "z" * chance.choice((8_000, 300_000)))],
            [("Content-Length", "0"), ("Content-Length", "5")],
            [("Content-Length", chance.choice(("-1", "+1", "1_0", "0x1", "9" * 40, "1 1", "")))],
            [("Range", "bytes=0-18446744073709551615")],
            [("Connection", "close, keep-alive, Host"), ("Upgrade", "h2c")],
            [("X-Folded", "a\r\n b")],
            [("No colon\r\nX", "y")],
            [("Expect", "200-maybe")],
        )
    )
    # A wrong length may make a server wait for the rest.
    whole = not any(name == "Content-Length" for name, _ in headers)
    return Case("header", _request(f"{chance.choice(ROUTES)}?id=bad", headers=headers), whole=whole)


def _transfer(chance: Chance, _: Sequence[str]) -> Case:
    """Return transfer codings, which are refused, with a length too, as in request smuggling."""
    coding = chance.choice(
        ("chunked", "gzip", "chunked, chunked", "identity", "xchunked", "CHUNKED")
    )
    body = chance.choice(
        (
            b"0\r\n\r\n",
            b"5\r\nhello\r\n0\r\n\r\n",
            b"zz\r\n",
            b"-1\r\n",
            b"f" * 20 + b"\r\n",
            b"5;a=b\r\nhel",
        )
    )
    length = chance.choice(([], [("Content-Length", "3")]))
    headers = [("Transfer-Encoding", coding), *length]
    raw = _request("/api/v1/badges", "POST", headers) + body
    return Case("transfer", raw, whole=False, also=NOT_IMPLEMENTED)


def _huge(chance: Chance, _: Sequence[str]) -> Case:
    """Return a request above the size limit, announced or sent."""
    if chance.random() < 0.9:  # noqa: PLR2004
        headers = [("Content-Length", str(chance.choice((2**20 + 1, 2**31, 2**63, 2**64))))]
        return Case("huge", _request("/api/v1/badges", "POST", headers), whole=False)
    return Case("huge", _request("/api/v1/badges", "POST", body=b" " * (2**20 + 1)), whole=False)


def _no_http(chance: Chance, _: Sequence[str]) -> Case:
    if chance.random() < 0.5:  # noqa: PLR2004
        return Case("no HTTP", chance.choice(NO_HTTP), whole=False)
    return Case("no HTTP", chance.randbytes(chance.randrange(1, 3_000)), whole=False)


def _cut(chance: Chance, checked: Sequence[str]) -> Case:
    """Return an incomplete request for a badge under check."""
    whole = _request(f"/api/v1/views?id={quote(chance.choice(checked), safe='')}")
    return Case("cut", whole[: chance.randrange(1, len(whole))], whole=False)


def _flip_bytes(chance: Chance, checked: Sequence[str]) -> Case:
    """Return a right request with some bytes changed, but none of the id in its target."""
    del checked
    raw = bytearray(_request("/api/v1/views?id=bad", headers=[("Accept", "*/*"), ("X", "y")]))
    for _ in range(chance.randrange(1, 6)):
        raw[chance.randrange(len(raw))] = chance.randrange(256)
    return Case("flipped", bytes(raw), whole=False)


FAMILIES: tuple[Family, ...] = (
    _header,
    _transfer,
    _huge,
    _no_http,
    _cut,
    _flip_bytes,
)
