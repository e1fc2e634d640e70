"""Bad input from a seed: ids, options, paths, methods, headers, bodies, and bytes that are no HTTP.

The documented rules refuse every case that names a badge under check, so its count must not change.
Cases that might be views name badges that are not checked.
"""

from __future__ import annotations

import json
import random
import unicodedata
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias
from urllib.parse import quote

INJECTIONS = (
    "' OR '1'='1",
    '"; DROP TABLE items; --',
    "1; SELECT sleep(10)",
    "${jndi:ldap://127.0.0.1/a}",
    "{{7*7}}",
    "<script>alert(1)</script>",
    "<![CDATA[x]]>",
    "]]></title><svg onload=alert(1)>",
    "&xxe;",
    "../../../../etc/passwd",
    "..\\..\\windows\\win.ini",
    "$(sleep 10)",
    "`sleep 10`",
    "|| sleep 10 ||",
    '{"$gt": ""}',
    "USER",
    "VIEW#",
    "USER#a#b",
    "%s%n%x",
    "{0.__class__}",
    "\r\nSet-Cookie: a=b",
    "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    "null",
    "NaN",
    "-1",
    "0x7f",
    "1e999",
    "true",
)
STRANGE = (
    "\x00",
    "a\x00b",
    "\x07\x1b[31m",
    "\x7f\x80\x9f",
    "\ufeff",
    "\u202egnp.exe",
    "\u200b\u200c\u200d",
    "\ufffe\uffff",
    "\U0010ffff",
    "e" + "\u0301" * 300,
    "👩‍👩‍👧‍👦" * 20,
    "ﷺ" * 50,
    "\u0130\u0131\u017f\u212a",
    "가" * 70,
    " ",
    "\t\r\n",
    "\u2028\u2029",
)
BROKEN_ENCODINGS = (
    "%",
    "%2",
    "%GG",
    "%u0041",
    "%00",
    "%C0%AF",
    "%E0%80%80",
    "%ED%A0%80",
    "%F4%90%80%80",
    "%F8%88%80%80%80",
    "%FF%FE",
    "%25%32%46",
    "%c3%28",
    "%0d%0aX:%20y",
    "+%2B+",
    "%80" * 30,
)
HOSTILE_LOGOS = (
    "",
    "<svg/>",
    "<script/>",
    "<svg viewBox='0 0 1 1'><script>alert(1)</script><path d='M0 0'/></svg>",
    "<svg viewBox='0 0 1 1'><path d='M0 0' onload='alert(1)'/></svg>",
    "<svg viewBox='0 0 1 1'><image href='http://127.0.0.1/a.png'/></svg>",
    "<svg viewBox='0 0 1 1'><path d='M0 0' style='fill:url(http://127.0.0.1/)'/></svg>",
    "<!DOCTYPE s [<!ENTITY a SYSTEM 'file:///etc/passwd'>]><svg>&a;</svg>",
    "<!DOCTYPE s [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;&a;'>]><svg>&b;&b;</svg>",
    "<svg viewBox='0 0 1e99 1e99'><path d='M0 0'/></svg>",
    "<svg viewBox='0 0 1 1'><path d='M1e999 0'/></svg>",
    "<svg viewBox='0 0 1 1'>" + "<g>" * 200,
    "<svg viewBox='0 0 1 1'><path d='" + "0" * 9_000,
)


def _own_logo(document: str) -> str:
    return "data:image/svg+xml;base64," + b64encode(document.encode()).decode()


WRONG_OPTIONS = {
    "peek": ("2", "yes", "-1", "true", "01"),
    "color": ("#ggg", "javascript:x", "rgb(1", "#12", "url(x)", "no-such-color"),
    "labelColor": ("#12345", "expression(1)", "--"),
    "style": ("round", "FLAT", "flat square", "../flat"),
    "logo": ("GitHub", "a b", "x" * 51, "<svg>", "é", "data:,x", *map(_own_logo, HOSTILE_LOGOS)),
    "logoColor": ("#ggg", "url(#a)", "currentColor"),
    "format": ("roman", "PLAIN", "%d"),
    "base": ("-1", "1.5", "1e3", "9" * 30, "0x10", "٣"),
    "label": ("x" * 101, "\x00", "a\nb"),
    "show": ("day", "TODAY", "total,today"),
    "tz": ("5:30", "15", "-13", "Europe/Berlin", "٣"),
    "spark": ("6", "91", "-7", "1e1"),
    "colour": ("red",),
    "<svg>": ("x",),
    "x" * 5_000: ("1",),
}
METHODS = ("PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "BREW")
BAD_METHODS = ("get", "G\x00T", "GET\tGET", "", "G" * 9_000, "ÜT", "GE T", "<GET>")
ROUTES = (
    "/api/v1/views",
    "/api/v1/views.svg",
    "/v1/api/views",
    "/api/v1/views/history",
    "/api/v1/views/history.svg",
)
TOKEN_ROUTES = (
    "/timers",
    "/timers/x",
    "/echoAtTime?ts=1",
    "/api/v1/events",
    "/api/v1/events/x",
    "/api/v1/wallets",
    "/api/v1/wallets/x/balance",
    "/api/v1/wallets/x/deposit",
    "/api/v1/wallets/x/transfer/y",
    "/api/v1/wallets/me",
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
    match chance.randrange(4):
        case 0:
            return chance.choice(INJECTIONS)
        case 1:
            return chance.choice(STRANGE)
        case 2:
            length = chance.choice((0, 1, 199, 200, 201, 1_000, 3_000))
            return chance.choice(("a", "ü", "🦆", "/")) * length
    letters = (chr(chance.randrange(0x11_0000)) for _ in range(chance.randrange(1, 40)))
    return "".join(letter for letter in letters if unicodedata.category(letter) != "Cs")


def _encode(chance: Chance) -> str:
    """Return text for a query, encoded correctly or not."""
    if chance.random() < 0.4:  # noqa: PLR2004
        return chance.choice(BROKEN_ENCODINGS) + str(chance.randrange(1_000))
    return quote(_odd_text(chance) + str(chance.randrange(1_000)), safe=chance.choice(("", "/;,")))


def _id(chance: Chance, _: Sequence[str]) -> Case:
    return Case("id", _request(f"{chance.choice(ROUTES)}?id={_encode(chance)}"))


def _query(chance: Chance, _: Sequence[str]) -> Case:
    """Return a query with repeated, empty, unknown or very many parameters."""
    names = ["id", "ID", "id[]", "peek", "days", "by", "label", "width", "", _encode(chance)]
    pairs = [
        chance.choice(("{}={}", "{}", "{}=={}", "={}")).format(
            chance.choice(names), _encode(chance)
        )
        for _ in range(chance.choice((0, 1, 2, 5, 200)))
    ]
    return Case(
        "query", _request(f"{chance.choice(ROUTES)}?{chance.choice('&;').join(pairs)}"[:60_000])
    )


def _option(chance: Chance, checked: Sequence[str]) -> Case:
    """Return a request for a badge under check with a wrong option, which counts nothing."""
    name = chance.choice(list(WRONG_OPTIONS))
    value = quote(chance.choice(WRONG_OPTIONS[name]), safe="")
    badge_id = quote(chance.choice(checked), safe="")
    return Case(
        "option", _request(f"{chance.choice(ROUTES[:3])}?id={badge_id}&{quote(name)}={value}")
    )


def _double(chance: Chance, checked: Sequence[str]) -> Case:
    """Return a malformed request for a badge under check."""
    badge_id = quote(chance.choice(checked), safe="")
    query = chance.choice(
        (
            f"id={badge_id}&id={badge_id}",
            f"id={badge_id}&id=",
            f"id={badge_id}&peek=1&peek=0",
            f"id={badge_id}%00",
            f"id={badge_id}%0A",
            f"ID={badge_id}",
            f"id%00={badge_id}",
            f"id={badge_id}&style=flat&style=social",
        )
    )
    return Case("twice", _request(f"{chance.choice(ROUTES[:3])}?{query}"))


def _method(chance: Chance, checked: Sequence[str]) -> Case:
    """Return a request for a badge under check with a method that badges don't have."""
    bad = chance.random() < 0.5  # noqa: PLR2004
    method = chance.choice(BAD_METHODS if bad else METHODS)
    target = f"{chance.choice(ROUTES[:3])}?id={quote(chance.choice(checked), safe='')}"
    return Case("method", _request(target, method, body=b"" if bad else b"{}"))


def _path(chance: Chance, _: Sequence[str]) -> Case:
    paths = (
        "/" + _encode(chance),
        "/api/v1/views/" + _encode(chance),
        "/api/v1//views",
        "//" + _encode(chance),
        "/api/v1/events/" + _encode(chance) + "/badge.svg",
        "/api/v1/wallets/" + _encode(chance) + "/badge",
        "/api/v1/views;id=x",
        "/../" * 50,
        "/" + "a/" * chance.choice((10, 1_000)),
        "http://other.example/api/v1/views?id=bad",
        "*",
        "?id=bad",
        "#",
        "/api/v1/views#?id=bad",
        "/" + "x" * 100_000,
    )
    return Case("path", _request(chance.choice(paths)))


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


def _json(chance: Chance, checked: Sequence[str]) -> bytes:
    """Return a body for a claim; one for a badge under check is always invalid."""
    wrong: object = chance.choice(
        (None, True, -1, 1.5, 10**400, [], {}, [[]], {"id": {}}, "text", {"id": 1, "base": "x"})
    )
    texts = (
        b"",
        b"{",
        b"[" * 100_000,
        b'{"a":' * 20_000,
        b"\xff\xfe{\x00}\x00",
        b"\xef\xbb\xbf{}",
        b'{"id":"\xed\xa0\x80"}',
        b'{"id":"\\ud800"}',
        b'{"id":"a","id":"b","base":NaN}',
        b'{"id":"bad","base":' + b"9" * 5_000 + b"}",
        b"\x1f\x8b\x08\x00" + bytes(20),
        json.dumps(wrong).encode() if wrong != 10**400 else b"1" * 5_000,
        json.dumps({"id": _odd_text(chance), "base": wrong if wrong != 10**400 else 0}).encode(),
        json.dumps({"id": chance.choice(checked), "base": -5}).encode(),
        json.dumps({"id": "", "x": "y" * 70_000}).encode(),
    )
    return chance.choice(texts)


def _body(chance: Chance, checked: Sequence[str]) -> Case:
    body = _json(chance, checked)
    match chance.randrange(4):
        case 0:
            return Case("body", _request("/api/v1/badges", "POST", body=body))
        case 1:
            target = "/api/v1/badges/" + quote(chance.choice(checked), safe="")
            method = chance.choice(("PATCH", "DELETE"))
            headers = [
                ("Authorization", "Bearer " + chance.choice(("x", "", "ü", "a b", "y" * 5_000)))
            ]
            return Case("body", _request(target, method, headers, body))
        case 2:
            target, method = (
                chance.choice(TOKEN_ROUTES),
                chance.choice(("POST", "PUT", "PATCH", "GET")),
            )
            return Case("body", _request(target, method, body=body))
    return Case("body", _request("/api/v1/views?id=bad", body=body))


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
    _id,
    _query,
    _option,
    _double,
    _method,
    _path,
    _header,
    _transfer,
    _body,
    _huge,
    _no_http,
    _cut,
    _flip_bytes,
)
