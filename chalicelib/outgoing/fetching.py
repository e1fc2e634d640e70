"""The fetch of a small public file from a host that a stranger names."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import Protocol

from chalicelib.http.errors import ClientError
from chalicelib.outgoing.addresses import Allowed
from chalicelib.outgoing.http_client import (
    MAX_ANSWER_BYTES,
    Answer,
    CallError,
    HttpClient,
    describe_refusal,
)
from chalicelib.settings import Settings
from chalicelib.units import Seconds

FETCH_SECONDS: Seconds = 5.0
"""The time for one whole fetch, in which its thread answers nobody else."""
MAX_FETCHES = 8
"""Concurrent fetches, so that hosts that hang leave threads for other requests."""
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
        super().__init__(f"{MAX_FETCHES} other files are being fetched: try again in 10 s")


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
    slots: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(MAX_FETCHES))

    def fetch(self, url: str, *, is_listed: bool) -> bytes:
        if not self.slots.acquire(blocking=False):
            raise BusyError
        try:
            answer = (self.listed if is_listed else self.anywhere).call("GET", url, HEADERS)
        except CallError as failure:
            raise FetchError(str(failure)) from None
        finally:
            self.slots.release()
        return _body_of(answer)


def fetcher_of(settings: Settings) -> GuardedFetcher:
    """Return the fetcher for the settings. Raises `SettingsError` if WEBHOOK_ALLOW is malformed.

    A stranger chooses the other hosts, so these must be public even if webhooks may call private
    networks.
    """
    return GuardedFetcher(
        HttpClient(Allowed(), seconds=FETCH_SECONDS),
        HttpClient(Allowed.parse(settings.webhook_allow), seconds=FETCH_SECONDS),
    )


def _body_of(answer: Answer) -> bytes:
    if answer.status in MISSING:
        raise FetchError(f"there is no file (answered {answer.status})")
    if answer.status != FOUND:
        raise FetchError(describe_refusal(answer.status))
    if answer.body is None:
        size = MAX_ANSWER_BYTES // 1024
        raise FetchError(f"the file can't be read to its end, or is longer than {size} KiB")
    return answer.body
