"""The metrics of requests: no label and no line of the access log is a client's text."""

from __future__ import annotations

import logging

import pytest

from chalicelib.api import TABLE
from chalicelib.http.messages import Response
from simulation.logs import logged_events
from tests.unit.vumi.metrics.reading import samples
from vumi.metrics.requests import RequestMetrics

OK = Response(200, {}, b"12345")


@pytest.mark.parametrize(
    ("method", "path", "labels"),
    [
        ("GET", "/api/v1/views", ("GET", "/api/v1/views")),
        ("HEAD", "/api/v1/views.svg", ("HEAD", "/api/v1/views.svg")),
        ("GET", "/api/v1/events/secret-id", ("GET", "/api/v1/events/{event_id}")),
        ("DELETE", "/api/v1/badges/a%2Fb", ("DELETE", "/api/v1/badges/{badge_id}")),
        ("PUT", "/api/v1/views", ("PUT", "/api/v1/views")),
        ("BREW", "/api/v1/views", ("other", "/api/v1/views")),
        ("GET", "/secret", ("GET", "none")),
        ("SECRET", "/secret", ("other", "none")),
        ("GET", "none", ("GET", "none")),
        ("get", "/api/v1/views", ("other", "/api/v1/views")),
    ],
)
def test_a_request_is_counted_and_logged_by_the_template_of_its_route(
    method: str, path: str, labels: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    """So any number of paths and methods has a bounded number of samples."""
    caplog.set_level(logging.INFO, "vu-mi")
    name, route = labels
    for access_log in (False, True):
        metrics = RequestMetrics(TABLE, access_log=access_log)
        metrics.add(method, path, OK, 0.0123456)
        sample = f'vumi_http_requests_total{{method="{name}",route="{route}",status="200"}}'
        requests = [one for one in samples(metrics.families()) if "requests_total" in one]
        assert requests == [sample]
    times = {"duration_ms": 12.346, "bytes": 0 if method == "HEAD" else 5}
    fields = {"method": name, "route": route, "status": 200, **times}
    assert logged_events(caplog) == [(logging.INFO, "request_answered", fields)]


def test_requests_add_up_by_status_and_their_times_by_route() -> None:
    metrics = RequestMetrics(TABLE, access_log=False)
    for status, seconds in ((200, 0.002), (200, 0.2), (500, 3.0)):
        metrics.add("GET", "/api/v1/views", Response(status), seconds)
    metrics.add("HEAD", "/api/v1/views", OK, 0.0001)
    found = samples(metrics.families())
    total = 'vumi_http_requests_total{method="%s",route="/api/v1/views",status="%s"}'
    assert [found[total % one] for one in (("GET", 200), ("GET", 500), ("HEAD", 200))] == [2, 1, 1]
    times = "vumi_http_request_duration_seconds"
    assert found[f'{times}_count{{route="/api/v1/views"}}'] == 4
    assert found[f'{times}_bucket{{route="/api/v1/views",le="0.0025"}}'] == 2
    assert found[f'{times}_sum{{route="/api/v1/views"}}'] == pytest.approx(3.2021)


def test_commits_are_measured_by_time_and_by_requests() -> None:
    metrics = RequestMetrics(TABLE, access_log=False)
    metrics.add_commit(1, 0.002)
    metrics.add_commit(30, 0.2)
    found = samples(metrics.families())
    assert found["vumi_commit_duration_seconds_sum"] == pytest.approx(0.202)
    assert found['vumi_commit_requests_bucket{le="1"}'] == 1
    assert found['vumi_commit_requests_bucket{le="20"}'] == 1
    assert found['vumi_commit_requests_bucket{le="50"}'] == 2
    assert found["vumi_commit_requests_sum"] == 31
