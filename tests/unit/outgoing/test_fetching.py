"""The fetch of a public file: its outcomes, its limits, and the hosts that it may reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import cast

import pytest

from chalicelib.outgoing.fetching import BusyError, FetchError, GuardedFetcher, fetcher_of
from chalicelib.outgoing.http_client import CallError, HttpClient, HttpReply
from chalicelib.outgoing.urls import Allowed
from chalicelib.settings import Settings, SettingsError
from simulation.resources import Names
from tests.unit.outgoing.receivers import receiver

URL = "https://host.example/.vu-mi"


@dataclass
class FakeClient:
    """A client with one answer, or a failure; `calls` records its requests."""

    answer: Callable[[], HttpReply]
    calls: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)

    def call(self, method: str, url: str, headers: Mapping[str, str]) -> HttpReply:
        self.calls.append((method, url, headers))
        return self.answer()


def fetcher(anywhere: FakeClient, listed: FakeClient | None = None) -> GuardedFetcher:
    return GuardedFetcher(cast("HttpClient", anywhere), cast("HttpClient", listed or anywhere))


def test_a_file_is_fetched_by_one_get() -> None:
    client = FakeClient(lambda: HttpReply(200, b"line\n"))
    assert fetcher(client).fetch(URL, is_listed=False) == b"line\n"
    assert client.calls == [("GET", URL, {"Accept-Encoding": "identity"})]


@pytest.mark.parametrize("is_listed", [False, True])
def test_a_host_of_the_operator_has_a_client_of_its_own(*, is_listed: bool) -> None:
    anywhere, listed = (FakeClient(lambda: HttpReply(200, b"")) for _ in range(2))
    fetcher(anywhere, listed).fetch(URL, is_listed=is_listed)
    assert (len(anywhere.calls), len(listed.calls)) == (1 - is_listed, int(is_listed))


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (HttpReply(404, b"secret"), "there is no file (answered 404)"),
        (HttpReply(410, b"secret"), "there is no file (answered 410)"),
        (HttpReply(204, b""), "answered 204"),
        (HttpReply(301, b"secret"), "answered 301, and redirects are not followed"),
        (HttpReply(429, None), "answered 429"),
        (HttpReply(500, b"secret"), "answered 500"),
        (HttpReply(200), "the file can't be read to its end, or is longer than 64 KiB"),
    ],
)
def test_anything_else_is_said_without_its_content(answer: HttpReply, found: str) -> None:
    with pytest.raises(FetchError) as failure:
        fetcher(FakeClient(lambda: answer)).fetch(URL, is_listed=False)
    assert str(failure.value) == found


def test_a_failure_of_the_network_is_said_and_leaves_the_slot_free() -> None:
    def fail() -> HttpReply:
        raise CallError("no response within 5 s")

    one = fetcher(FakeClient(fail))
    for _ in range(2):
        with pytest.raises(FetchError, match="no response within 5 s"):
            one.fetch(URL, is_listed=False)


def fetch_while_held(held: Sequence[tuple[str, bool]], url: str, *, is_listed: bool) -> bytes:
    """Fetch a file while other fetches, each of a URL that may be listed, are under way."""
    left = iter([*held, (url, is_listed)])

    def answer() -> HttpReply:
        if following := next(left, None):
            return HttpReply(200, one.fetch(following[0], is_listed=following[1]))
        return HttpReply(200, b"line")

    one = fetcher(FakeClient(answer))
    first, listed = next(left)
    return one.fetch(first, is_listed=listed)


def hosts(number: int) -> list[tuple[str, bool]]:
    return [(f"https://{place}.example/.vu-mi", False) for place in range(number)]


LISTED = "https://raw.githubusercontent.com/{}/.vu-mi"


@pytest.mark.parametrize(
    ("held", "url", "is_listed"),
    [
        ([(URL, False)] * 3, URL, False),
        ([(URL, False)] * 4, "https://other.example/.vu-mi", False),
        (hosts(7), URL, False),
        (hosts(8), LISTED.format("a/b"), True),
        ([(LISTED.format(number), True) for number in range(4)], "https://gitlab.com/a", True),
        ([(LISTED.format(number), True) for number in range(4)], URL, False),
    ],
)
def test_hosts_that_hang_leave_slots_for_others(
    held: Sequence[tuple[str, bool]], url: str, *, is_listed: bool
) -> None:
    assert fetch_while_held(held, url, is_listed=is_listed) == b"line"


@pytest.mark.parametrize(
    ("held", "url", "is_listed"),
    [
        ([(URL, False)] * 4, URL.replace("host", "HOST") + "?", False),
        (hosts(8), URL, False),
        ([(LISTED.format(number), True) for number in range(4)], LISTED.format("a"), True),
    ],
)
def test_more_fetches_of_one_host_or_of_all_unlisted_ones_are_refused(
    held: Sequence[tuple[str, bool]], url: str, *, is_listed: bool
) -> None:
    with pytest.raises(BusyError) as refusal:
        fetch_while_held(held, url, is_listed=is_listed)
    assert (refusal.value.status, refusal.value.headers) == (503, {"Retry-After": "10"})


def test_only_hosts_of_the_operator_may_be_private() -> None:
    """A stranger chooses the others, and must not reach the networks that webhooks may call."""
    made = fetcher_of(Settings(webhook_allow="10.0.0.0/8"))
    assert made.anywhere.allowed == Allowed()
    assert made.listed.allowed == Allowed.parse("10.0.0.0/8")
    assert made.anywhere.seconds == made.listed.seconds == 5
    private = GuardedFetcher(HttpClient(Allowed(), Names(["10.0.0.9"])), made.listed)
    with pytest.raises(FetchError, match="resolves to an address that is not public"):
        private.fetch(URL, is_listed=False)
    with pytest.raises(SettingsError):
        fetcher_of(Settings(webhook_allow="everything"))


def test_a_get_has_no_body_and_names_its_host() -> None:
    """Over a real connection, with an answer that is longer than its limit."""
    made = fetcher_of(Settings(webhook_allow="127.0.0.0/8"))
    for size, found in ((5, nullcontext()), (70_000, pytest.raises(FetchError, match="64 KiB"))):
        with receiver(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * size) as server, found:
            assert made.fetch(server.url(), is_listed=True) == b"aaaaa"
    assert server.requests == [
        b"GET /hook?a=b HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUser-Agent: vu-mi\r\nAccept: */*\r\n"
        b"Connection: close\r\nAccept-Encoding: identity\r\n\r\n" % server.port
    ]
    with pytest.raises(FetchError, match="not called: "):
        made.fetch(server.url(), is_listed=False)
