"""The metrics of the process, their route, and who may read it: an operator, or a local program."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from chalicelib import VERSION
from chalicelib.http import authentication, tokens
from chalicelib.http.dispatch import dispatch
from chalicelib.http.errors import ForbiddenError, UnauthorizedError
from chalicelib.http.messages import Caller, Request, Response, Role
from chalicelib.settings import Settings
from simulation.resources import GivenResources
from simulation.storage import MemoryTable
from tests.unit.vumi.metrics.reading import samples
from vumi.metrics import access
from vumi.metrics.access import MetricsAccess
from vumi.metrics.counters import CONTENT_TYPE, Family
from vumi.metrics.monitoring import KEPT_SECONDS, Monitoring, read_process
from vumi.server.clients import ClientLimits, TrustedProxies


class Scraped:
    """An endpoint of which one metric is the number of its computations."""

    def __init__(self) -> None:
        self.now, self.computed = 5.0, 0
        check = partial(access.check, access=MetricsAccess.LOCAL, proxies=TrustedProxies())
        clock = lambda: self.now  # noqa: E731  both need one
        limits = ClientLimits({}, clock)
        self.table = Monitoring(
            [], [self.parts], limits, check, access_log=False, stopwatch=clock
        ).table

    def parts(self) -> Iterator[Family]:
        self.computed += 1
        yield Family.of("vumi_scrapes_total", "Scrapes.", self.computed)

    def get(self, client: str = "127.0.0.1", method: str = "GET") -> Response:
        request = Request(method, "/metrics", headers={"host": "localhost"}, client=client)
        return dispatch(self.table, request, GivenResources())


def test_a_scrape_is_text_that_no_cache_keeps_and_no_page_reads() -> None:
    response = Scraped().get()
    assert (response.status, response.body.splitlines()[-1]) == (200, b"vumi_scrapes_total 1")
    assert response.headers == {
        "Content-Type": CONTENT_TYPE,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def test_scrapes_within_a_second_share_one_computation() -> None:
    scraped = Scraped()
    bodies = [scraped.get().body for _ in range(3)]
    scraped.now += KEPT_SECONDS - 0.001
    assert {*bodies, scraped.get().body} == {bodies[0]}
    scraped.now += 0.001
    assert scraped.get().body.endswith(b" 2\n")
    assert scraped.computed == 2


def test_a_refused_scrape_computes_nothing() -> None:
    scraped = Scraped()
    response = scraped.get("192.0.2.1")
    assert (response.status, response.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert scraped.get(method="POST").status == 405
    assert scraped.computed == 0


def test_a_process_has_its_start_memory_and_files(tmp_path: Path) -> None:
    found = samples(read_process(1_000.5))
    versions = f'python="{platform.python_version()}",sqlite="{sqlite3.sqlite_version}"'
    assert found[f'vumi_build_info{{version="{VERSION}",{versions}}}'] == 1
    assert found["process_start_time_seconds"] == 1_000.5
    assert found["process_cpu_seconds_total"] > 0
    assert 10e6 < found["process_resident_memory_bytes"] < 10e9
    assert 3 <= found["process_open_fds"] <= found["process_max_fds"]
    with Path(os.devnull).open():
        assert samples(read_process(0))["process_open_fds"] == found["process_open_fds"] + 1
    without_proc = samples(read_process(0, tmp_path / "proc"))
    missing = {"process_resident_memory_bytes", "process_open_fds"}
    assert found.keys() - without_proc.keys() == missing


OPERATOR, USER, UNKNOWN = "o" * 40, "u" * 40, "x" * 40
NONE = TrustedProxies()
HOST = {"host": "localhost:8000"}
SCRAPER = {
    **HOST,
    "user-agent": "Prometheus/2.42.0",
    "accept": "text/plain;version=0.0.4",
    "accept-encoding": "gzip",
    "x-prometheus-scrape-timeout-seconds": "10",
}
BROWSER = {
    **HOST,
    "connection": "keep-alive",
    "sec-ch-ua": '"Chromium"',
    "sec-fetch-site": "none",
    "sec-fetch-mode": "navigate",
    "upgrade-insecure-requests": "1",
    "accept-language": "en",
    "cookie": "of=another-program-at-localhost",
}


def request(headers: dict[str, str], client: str = "127.0.0.1", authorization: str = "") -> Request:
    given = {"authorization": authorization} if authorization else {}
    return Request("GET", "/metrics", headers={**headers, **given}, client=client)


def allowed(
    asked: Request, access_: MetricsAccess = MetricsAccess.LOCAL, proxies: TrustedProxies = NONE
) -> bool:
    """Return whether a request may read the metrics; without a token it gets a 401."""
    table = MemoryTable()
    user = Caller(Role.USER, "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11")
    key = authentication.key(tokens.digest(USER))
    table.put_all([{"PK": key.pk, "SK": key.sk, **user.fields}])
    settings = Settings(api_token_digests=frozenset({tokens.digest(OPERATOR)}))
    try:
        access.check(asked, GivenResources(table=table, settings=settings), access_, proxies)
    except UnauthorizedError:
        return False
    return True


MARKS = """
forwarded via x-forwarded-for x-forwarded-host x-forwarded-proto x-real-ip cf-connecting-ip
true-client-ip x-amzn-trace-id x-of-any-other-proxy origin referer
"""
"""The headers that a proxy or a page of another site sends."""
OTHER_HOSTS = """
: :8000 example.org 127.0.0.1.example.org localhost.example.org:8000 localhost. 127.1 0.0.0.0
192.0.2.1:8000 localhost:x localhost@example.org [::1 [::2]:8000
"""
OWN_HOSTS = "localhost LOCALHOST:1 127.0.0.1 127.0.0.1:8000 127.1.2.3:80 [::1] [::1]:8"


@pytest.mark.parametrize("client", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
@pytest.mark.parametrize(
    "headers", [SCRAPER, BROWSER, *({"host": host} for host in OWN_HOSTS.split())]
)
def test_a_program_on_this_machine_needs_no_token(client: str, headers: dict[str, str]) -> None:
    assert allowed(request(headers, client))


@pytest.mark.parametrize(
    "headers",
    [
        *({name: value} for name in MARKS.split() for value in ("", "127.0.0.1")),
        *({"connection": value} for value in ("close", "Close", "upgrade", "keep-alive, close")),
        *({"sec-fetch-site": site} for site in ("cross-site", "same-site", "", "x")),
        *({"host": host} for host in ("", *OTHER_HOSTS.split())),
    ],
    ids=str,
)
def test_a_proxy_a_page_of_another_site_and_a_rebound_host_need_a_token(
    headers: dict[str, str],
) -> None:
    """Nginx without headers of its own sends `Connection: close`."""
    asked = HOST | headers
    assert not allowed(request(asked))
    assert allowed(request(asked, authorization=f"Bearer {OPERATOR}"))


@pytest.mark.parametrize("client", ["192.0.2.1", "2001:db8::1", "10.0.0.1", "", "localhost"])
def test_another_machine_a_unix_socket_and_a_request_without_a_host_need_a_token(
    client: str,
) -> None:
    assert not allowed(request(HOST, client))
    assert allowed(request(HOST, client, f"Bearer {OPERATOR}"))
    assert not allowed(request({}))


def test_a_trusted_proxy_on_this_machine_needs_a_token_even_if_it_shows_no_mark() -> None:
    proxies = TrustedProxies.parse("127.0.0.1, 10.0.0.0/8")
    assert not allowed(request(HOST), proxies=proxies)
    assert allowed(request(HOST, "::1"), proxies=proxies)
    assert allowed(request(HOST, authorization=f"Bearer {OPERATOR}"), proxies=proxies)


def test_the_setting_token_lets_no_request_of_this_machine_in() -> None:
    assert not allowed(request(HOST), MetricsAccess.TOKEN)
    assert allowed(request(HOST, authorization=f"Bearer {OPERATOR}"), MetricsAccess.TOKEN)


@pytest.mark.parametrize("token", [USER, UNKNOWN])
@pytest.mark.parametrize("client", ["127.0.0.1", "192.0.2.1"])
def test_a_token_that_is_no_operators_is_refused_from_anywhere(token: str, client: str) -> None:
    with pytest.raises(ForbiddenError):
        allowed(request(HOST, client, f"Bearer {token}"))


def test_a_malformed_token_is_refused_on_this_machine_too() -> None:
    assert not allowed(request(HOST, authorization="Basic abc"))
