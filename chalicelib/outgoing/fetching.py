"""The fetch of a small public file from a host that a stranger names."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol
from urllib.parse import urlsplit

from chalicelib.http.errors import ClientError
from chalicelib.outgoing.http_client import (
    MAX_REPLY_BYTES,
    CallError,
    HttpClient,
    HttpReply,
    describe_refusal,
)
from chalicelib.outgoing.urls import Allowed
from chalicelib.settings import Settings
from chalicelib.units import Seconds

FETCH_SECONDS: Seconds = 5.0
"""The time for one whole fetch, in which its thread answers nobody else."""
MAX_OF_HOST = 4
"""Concurrent fetches from one host, so that one that hangs leaves threads for other requests."""
MAX_UNLISTED = 8
"""Concurrent fetches from all hosts that strangers name, which may be many of one stranger."""
UNLISTED = "*"
HEADERS = {"Accept-Encoding": "identity"}
FOUND = 200
MISSING = {404, 410}


class FetchError(Exception):
    """A file could not be fetched. The message says what was found instead."""


class BusyError(ClientError):
    """Too many files are being fetched."""

    status = 503
    code = "unavailable"
    headers = {"Retry-After": "10"}  # noqa: RUF012  never changed

    def __init__(self) -> None:
        super().__init__("too many other files are being fetched: try again in 10 s")


class Fetcher(Protocol):
    """A fetcher of files."""

    def fetch(self, url: str, *, is_listed: bool) -> bytes:
        """Return a file. The operator has named its host if `is_listed`.

        Raises `FetchError` and `BusyError`.
        """


@dataclass(frozen=True, slots=True)
class GuardedFetcher:
    """The fetcher of files: by `anywhere` from any host, by `listed` from the operator's own."""

    anywhere: HttpClient
    listed: HttpClient
    under_way: list[str] = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)

    def fetch(self, url: str, *, is_listed: bool) -> bytes:
        limits = {urlsplit(url).hostname or "": MAX_OF_HOST}
        if not is_listed:
            limits[UNLISTED] = MAX_UNLISTED
        with self.lock:
            if any(self.under_way.count(name) >= most for name, most in limits.items()):
                raise BusyError
            self.under_way.extend(limits)
        try:
            return _body_of((self.listed if is_listed else self.anywhere).call("GET", url, HEADERS))
        except CallError as failure:
            raise FetchError(str(failure)) from None
        finally:
            with self.lock:
                for name in limits:
                    self.under_way.remove(name)


def fetcher_of(settings: Settings) -> GuardedFetcher:
    """Return the fetcher for the settings. Raises `SettingsError` if WEBHOOK_ALLOW is malformed.

    A stranger chooses the other hosts, so these must be public even if webhooks may call private
    networks.
    """
    return GuardedFetcher(
        HttpClient(Allowed(), seconds=FETCH_SECONDS),
        HttpClient(Allowed.parse(settings.webhook_allow), seconds=FETCH_SECONDS),
    )


def _body_of(reply: HttpReply) -> bytes:
    if reply.status in MISSING:
        raise FetchError(f"there is no file (answered {reply.status})")
    if reply.status != FOUND:
        raise FetchError(describe_refusal(reply.status))
    if reply.body is None:
        size = MAX_REPLY_BYTES // 1024
        raise FetchError(f"the file can't be read to its end, or is longer than {size} KiB")
    return reply.body
