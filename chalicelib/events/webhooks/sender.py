"""Posts an event to a URL that a user named: only where it may lead, only to the address checked.

What sends is a socket of our own with http.client's parser on it: it connects to the very address
that was checked (`urls.permitted`) while TLS holds the name, and one deadline is over everything.
The first send imports ssl and http.client.
"""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC
from functools import cache
from typing import TYPE_CHECKING, cast

from chalicelib.events.webhooks.addresses import Address, Allowed, BadNetworkError
from chalicelib.events.webhooks.signing import BadSecretError, Signer
from chalicelib.events.webhooks.urls import (
    BadUrlError,
    Resolver,
    Unreachable,
    Url,
    check_url,
    permitted,
)
from chalicelib.lazy import lazy
from chalicelib.settings import Settings, SettingsError

if TYPE_CHECKING:
    import ssl
    from email import utils as email_utils
    from http import client as http_client

    from _typeshed import WriteableBuffer
else:
    ssl, email_utils, http_client = lazy("ssl"), lazy("email.utils"), lazy("http.client")

USER_AGENT = "vu-mi"
SEND_SECONDS = 10.0
MAX_ADDRESSES = 4
"""How many addresses of one name are tried until one takes the connection."""
MAX_ANSWER_BYTES = 64 * 1024
MAX_ERROR_CHARACTERS = 200
MAX_RETRY_AFTER = 86_400
MAX_DIGITS = 9
"""Longer numbers of seconds are the most, without being read."""


class Garbled(Exception):
    """What came back is no HTTP, or has no end."""


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """What became of one POST: the status it was answered, or an error, or both.

    `error` has at most 200 characters and nothing of the answer's text; it is empty for success.
    `retry_after` is in seconds, None where the answer does not say.
    """

    status: int | None
    error: str = ""
    retry_after: float | None = None

    @property
    def delivered(self) -> bool:
        """2xx, and nothing else, is success (Standard Webhooks)."""
        return self.status is not None and 200 <= self.status <= 299  # noqa: PLR2004

    @property
    def gone(self) -> bool:
        """410: the receiver wants no more of these, ever (Standard Webhooks)."""
        return self.status == 410  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment on a monotonic clock by which all must be done."""

    at: float
    monotonic: Callable[[], float]

    def left(self) -> float:
        """Seconds until then. Raises `TimeoutError` once there are none."""
        left = self.at - self.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@cache
def system_trust() -> ssl.SSLContext:
    """The authorities that the system trusts, read once; TLS 1.2 or newer, host names checked."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@dataclass(frozen=True, slots=True)
class Sender:
    """Posts to URLs that users name, and never raises for what the network does.

    `clock` tells the time in seconds since 1970, `seconds` is the deadline over the whole of one
    POST: resolving, connecting, sending and reading. No redirect is followed, no proxy is asked.
    """

    signer: Signer
    allowed: Allowed
    resolver: Resolver = socket.getaddrinfo
    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    trust: Callable[[], ssl.SSLContext] = system_trust
    seconds: float = SEND_SECONDS

    def post(
        self, url: str, webhook_id: str, body: bytes, content_type: str = "application/json"
    ) -> PostOutcome:
        """Post a body to a URL, signed. The id is the same whenever the same is sent again.

        Raises `BadWebhookIdError`, and `ValueError` for a content type that no header can hold.
        """
        if not (content_type.isascii() and content_type.isprintable()):
            raise ValueError(f"a content type is printable ASCII, not {content_type!r}")
        headers = {
            "Content-Type": content_type,
            **self.signer.headers(webhook_id, int(self.clock()), body),
        }
        try:
            status, retry_after = self._exchange(url, headers, body)
        except BadUrlError as refusal:
            return _failed(f"not called: {refusal}")
        except (Unreachable, Garbled) as failure:
            return _failed(str(failure))
        except OSError as failure:
            return _failed(self._reason(failure))
        outcome = PostOutcome(status, "", seconds_to_wait(retry_after, self.clock()))
        return outcome if outcome.delivered else replace(outcome, error=_refused(status))

    def _exchange(self, raw: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        deadline = Deadline(self.monotonic() + self.seconds, self.monotonic)
        url = check_url(raw, self.allowed)
        addresses = permitted(url, self.allowed, self.resolver, deadline.left())
        with (
            _connected(addresses, url.port, deadline) as plain,
            self._secured(plain, url, deadline) as wire,
        ):
            _send(wire, _request(url, headers, body), deadline)
            return read_answer(wire, deadline)

    def _secured(self, plain: socket.socket, url: Url, deadline: Deadline) -> socket.socket:
        if url.scheme == "http":
            return plain
        context = self.trust()
        plain.settimeout(deadline.left())
        return context.wrap_socket(plain, server_hostname=url.host)

    def _reason(self, failure: OSError) -> str:
        match failure:
            case TimeoutError():
                return f"no answer within {self.seconds:g} s"
            case ssl.SSLCertVerificationError():
                return f"the certificate is not accepted: {failure.verify_message}"
            case ssl.SSLError():
                return f"TLS failed: {failure.reason or 'no reason given'}"
            case ConnectionRefusedError():
                return "the connection was refused"
            case ConnectionError():
                return "the connection broke off before an answer"
            case _:
                return f"no connection: {failure.strerror or type(failure).__name__}"


def sender_of(settings: Settings) -> Sender | None:
    """Return the sender of webhooks by these settings, or None without a secret to sign them with.

    Raises `SettingsError` for wrong ones.
    """
    try:
        allowed = Allowed.parse(settings.webhook_allow)
        if not settings.webhook_secrets:
            return None
        return Sender(Signer(settings.webhook_secrets), allowed)
    except BadNetworkError as wrong:
        raise SettingsError(str(wrong)) from wrong
    except BadSecretError as wrong:
        raise SettingsError(f"WEBHOOK_SECRETS: {wrong}") from wrong


def _failed(error: str) -> PostOutcome:
    return PostOutcome(None, error[:MAX_ERROR_CHARACTERS])


def _refused(status: int) -> str:
    redirect = 300 <= status <= 399  # noqa: PLR2004
    return f"answered {status}" + (", and redirects are not followed" if redirect else "")


def _connected(addresses: Sequence[Address], port: int, deadline: Deadline) -> socket.socket:
    """A connection to the first address that takes one, each given its share of the time."""
    tried = addresses[:MAX_ADDRESSES]
    for left, address in zip(range(len(tried), 0, -1), tried, strict=True):
        try:
            return _dialled(address, port, deadline.left() / left)
        except OSError:
            if left == 1:
                raise
    raise Unreachable("there is no address to call")


def _dialled(address: Address, port: int, seconds: float) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect((str(address), port))
    except BaseException:
        connection.close()
        raise
    return connection


def _request(url: Url, headers: dict[str, str], body: bytes) -> bytes:
    fields = {
        "Host": url.authority,
        "User-Agent": USER_AGENT,
        "Accept": "*/*",
        "Connection": "close",
        "Content-Length": str(len(body)),
        **headers,
    }
    lines = [f"POST {url.target} HTTP/1.1", *(f"{name}: {fields[name]}" for name in fields)]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + body


def _send(wire: socket.socket, request: bytes, deadline: Deadline) -> None:
    """Send all of it. `SSLSocket.sendall` would begin its time-out anew at each part."""
    left = memoryview(request)
    while left:
        wire.settimeout(deadline.left())
        left = left[wire.send(left) :]


class _Answer(io.RawIOBase):
    """What a socket receives until the deadline and up to 64 KiB, for `HTTPResponse` to read."""

    def __init__(self, wire: socket.socket, deadline: Deadline) -> None:
        self._wire = wire
        self._deadline = deadline
        self._left = MAX_ANSWER_BYTES
        self._reader = io.BufferedReader(self)

    def makefile(self, _mode: str) -> io.BufferedIOBase:
        return self._reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer)[: self._left]
        if not room:
            raise Garbled("what was answered is too long")
        self._wire.settimeout(self._deadline.left())
        received = self._wire.recv_into(room)
        self._left -= received
        return received


def read_answer(wire: socket.socket, deadline: Deadline) -> tuple[int, str]:
    """The status of an answer and its `Retry-After`, empty for none. Raises `Garbled`, `OSError`.

    The body is read to its end, so that the receiver is not cut off at its work, but what becomes
    of it changes nothing.
    """
    answer = cast("socket.socket", _Answer(wire, deadline))
    passed = []  # answers before the final one (1xx), kept: collected they would close the stream
    try:
        response = http_client.HTTPResponse(answer, method="POST")
        response.begin()
        while response.status < 200:  # noqa: PLR2004
            passed.append(response)
            response = http_client.HTTPResponse(answer, method="POST")
            response.begin()
    except ConnectionError:
        raise
    except http_client.HTTPException:
        raise Garbled("what was answered is no HTTP") from None
    with suppress(OSError, http_client.HTTPException, Garbled):
        response.read(MAX_ANSWER_BYTES)
    return response.status, response.headers.get("Retry-After", "")


def seconds_to_wait(retry_after: str, now: float) -> float | None:
    """The header `Retry-After` as seconds from now, 0 to 86,400; None where it says nothing.

    It is a number of seconds or an HTTP date (RFC 9110, 10.2.3 and 5.6.7).
    """
    given = retry_after.strip()
    if given.isascii() and given.isdecimal():
        seconds = int(given) if len(given) <= MAX_DIGITS else MAX_RETRY_AFTER
        return float(min(seconds, MAX_RETRY_AFTER))
    try:
        moment = email_utils.parsedate_to_datetime(given)
        wait = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(wait, 0.0), float(MAX_RETRY_AFTER))
