"""The metrics of the process, and their route, which computes them at most once a second."""

from __future__ import annotations

import os
import platform
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from chalicelib import VERSION
from chalicelib.http.dispatch import dispatch
from chalicelib.http.messages import Request, Response
from simulation.resources import GivenResources
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
