"""The sender of webhooks, which posts an event to a user's URL if that may be called.

It uses its own socket with the parser of http.client. So it connects to exactly the address that
was checked (`urls.permitted`), TLS verifies the name, and one deadline covers all steps.
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
from chalicelib.units import Seconds

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
"""The maximum number of addresses of a name that are tried."""
MAX_ANSWER_BYTES = 64 * 1024
MAX_ERROR_CHARACTERS = 200
MAX_RETRY_AFTER_SECONDS = 86_400
MAX_DIGITS = 9
"""Longer numbers of seconds are replaced by the maximum."""


class MalformedAnswer(Exception):
    """The answer is not HTTP, or is too long."""


@dataclass(frozen=True, slots=True)
class PostOutcome:
    """The outcome of one POST: the status of the answer, or an error, or both.

    `error` has at most 200 characters and no text of the answer; it is empty after a success.
    `retry_after` is in seconds, or None if the answer has none.
    """

    status: int | None
    error: str = ""
    retry_after: Seconds | None = None

    @property
    def delivered(self) -> bool:
        """Return whether the status is 2xx, which is success (Standard Webhooks)."""
        return self.status is not None and 200 <= self.status <= 299  # noqa: PLR2004

    @property
    def gone(self) -> bool:
        """Return whether the status is 410, which ends all attempts (Standard Webhooks)."""
        return self.status == 410  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class Deadline:
    """The end of the time for one POST, on a monotonic clock."""

    at: Seconds
    monotonic: Callable[[], Seconds]

    def seconds_left(self) -> Seconds:
        """Return the time until the deadline. Raises `TimeoutError` after it."""
        left = self.at - self.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


@cache
def system_trust() -> ssl.SSLContext:
    """Load the system's authorities once; require TLS 1.2 or newer and check host names."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of webhooks, which raises no errors of the network.

    `seconds` is the time for one whole POST: resolving, connecting, sending and reading. Redirects
    are not followed, and no proxy is used.
    """

    signer: Signer
    allowed: Allowed
    resolver: Resolver = socket.getaddrinfo
    clock: Callable[[], Seconds] = time.time
    monotonic: Callable[[], Seconds] = time.monotonic
    trust: Callable[[], ssl.SSLContext] = system_trust
    seconds: Seconds = SEND_SECONDS

    def post(
        self, url: str, webhook_id: str, body: bytes, content_type: str = "application/json"
    ) -> PostOutcome:
        """Post a signed body to a URL. Each attempt of an event has the same id.

        Raises `BadWebhookIdError`, and `ValueError` if the content type is not printable ASCII.
        """
        if not (content_type.isascii() and content_type.isprintable()):
            raise ValueError(f"the content type must be printable ASCII, not {content_type!r}")
        headers = {
            "Content-Type": content_type,
            **self.signer.headers(webhook_id, int(self.clock()), body),
        }
        try:
            status, retry_after = self._exchange(url, headers, body)
        except BadUrlError as refusal:
            return _fail(f"not called: {refusal}")
        except (Unreachable, MalformedAnswer) as failure:
            return _fail(str(failure))
        except OSError as failure:
            return _fail(self._describe_error(failure))
        outcome = PostOutcome(status, "", seconds_to_wait(retry_after, self.clock()))
        return outcome if outcome.delivered else replace(outcome, error=_describe_refusal(status))

    def _exchange(self, raw: str, headers: dict[str, str], body: bytes) -> tuple[int, str]:
        deadline = Deadline(self.monotonic() + self.seconds, self.monotonic)
        url = check_url(raw, self.allowed)
        addresses = permitted(url, self.allowed, self.resolver, deadline.seconds_left())
        with (
            _connect(addresses, url.port, deadline) as plain,
            self._secure(plain, url, deadline) as wire,
        ):
            _send(wire, _write_request(url, headers, body), deadline)
            return read_answer(wire, deadline)

    def _secure(self, plain: socket.socket, url: Url, deadline: Deadline) -> socket.socket:
        if url.scheme == "http":
            return plain
        context = self.trust()
        plain.settimeout(deadline.seconds_left())
        return context.wrap_socket(plain, server_hostname=url.host)

    def _describe_error(self, failure: OSError) -> str:
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
                return "the connection was closed before an answer"
            case _:
                return f"no connection: {failure.strerror or type(failure).__name__}"


def sender_of(settings: Settings) -> Sender | None:
    """Return the sender of webhooks for the settings, or None without a secret.

    Raises `SettingsError` if a setting is malformed.
    """
    try:
        allowed = Allowed.parse(settings.webhook_allow)
        if not settings.webhook_secrets:
            return None
        return Sender(Signer(settings.webhook_secrets), allowed)
    except BadNetworkError as error:
        raise SettingsError(str(error)) from error
    except BadSecretError as error:
        raise SettingsError(f"WEBHOOK_SECRETS: {error}") from error


def _fail(error: str) -> PostOutcome:
    return PostOutcome(None, error[:MAX_ERROR_CHARACTERS])


def _describe_refusal(status: int) -> str:
    redirect = 300 <= status <= 399  # noqa: PLR2004
    return f"answered {status}" + (", and redirects are not followed" if redirect else "")


def _connect(addresses: Sequence[Address], port: int, deadline: Deadline) -> socket.socket:
    """Connect to the first address that accepts; each has an equal share of the time left."""
    tried = addresses[:MAX_ADDRESSES]
    for left, address in zip(range(len(tried), 0, -1), tried, strict=True):
        try:
            return _dial(address, port, deadline.seconds_left() / left)
        except OSError:
            if left == 1:
                raise
    raise Unreachable("the name has no address")


def _dial(address: Address, port: int, seconds: Seconds) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6  # noqa: PLR2004
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(seconds)
        connection.connect((str(address), port))
    except BaseException:
        connection.close()
        raise
    return connection


def _write_request(url: Url, headers: dict[str, str], body: bytes) -> bytes:
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
    """Send a request by the deadline; `SSLSocket.sendall` restarts its timeout at each part."""
    left = memoryview(request)
    while left:
        wire.settimeout(deadline.seconds_left())
        left = left[wire.send(left) :]


class _SharedReader(io.BufferedReader):
    """A reader that stays open: each of several answers closes it when it is collected."""

    def close(self) -> None:
        """Leave the stream open; the socket under it is closed by its owner."""


class _Answer(io.RawIOBase):
    """A stream of up to 64 KiB from a socket until the deadline, which `HTTPResponse` reads."""

    def __init__(self, wire: socket.socket, deadline: Deadline) -> None:
        self._wire = wire
        self._deadline = deadline
        self._left = MAX_ANSWER_BYTES
        self._reader = _SharedReader(self)

    def makefile(self, _mode: str) -> io.BufferedIOBase:
        return self._reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer)[: self._left]
        if not room:
            raise MalformedAnswer(f"the answer is longer than {MAX_ANSWER_BYTES // 1024} KiB")
        self._wire.settimeout(self._deadline.seconds_left())
        received = self._wire.recv_into(room)
        self._left -= received
        return received


def read_answer(wire: socket.socket, deadline: Deadline) -> tuple[int, str]:
    """Read the status of an answer and its `Retry-After`, or "".

    The head alone is the answer. Raises `MalformedAnswer` and `OSError`.
    """
    answer = cast("socket.socket", _Answer(wire, deadline))
    try:
        response = http_client.HTTPResponse(answer, method="POST")
        response.begin()
        while response.status < 200:  # noqa: PLR2004  an answer before the final one
            response = http_client.HTTPResponse(answer, method="POST")
            response.begin()
    except ConnectionError:
        raise
    except http_client.HTTPException:
        raise MalformedAnswer("the answer is not HTTP") from None
    _read_body(response)
    return response.status, response.headers.get("Retry-After", "")


def _read_body(response: http_client.HTTPResponse) -> None:
    """Read a body to its end, so that the receiver can finish its work.

    Its content and its errors are ignored, because the head is the answer. `_Answer` limits
    its bytes and its time. `HTTPResponse` raises many kinds of errors for a malformed chunk.
    """
    with suppress(Exception):
        response.read(MAX_ANSWER_BYTES)


def seconds_to_wait(retry_after: str, now: Seconds) -> Seconds | None:
    """Parse the header `Retry-After` as seconds from now, 0 to 86,400; None if it is malformed.

    It has a number of seconds or an HTTP date (RFC 9110, 10.2.3 and 5.6.7).
    """
    given = retry_after.strip()
    if given.isascii() and given.isdecimal():
        seconds = int(given) if len(given) <= MAX_DIGITS else MAX_RETRY_AFTER_SECONDS
        return float(min(seconds, MAX_RETRY_AFTER_SECONDS))
    try:
        moment = email_utils.parsedate_to_datetime(given)
        wait = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(wait, 0.0), float(MAX_RETRY_AFTER_SECONDS))
