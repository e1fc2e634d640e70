"""The metrics and the access log of a real server."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.end_to_end.server import Server, running
from tests.unit.vumi.metrics.reading import parse
from vumi.metrics import catalogue
from vumi.metrics.families import CONTENT_TYPE, Kind, Metric

METRICS = [one for one in vars(catalogue).values() if isinstance(one, Metric)]
SUFFIXES = {Kind.COUNTER: [""], Kind.GAUGE: [""], Kind.HISTOGRAM: ["_bucket", "_sum", "_count"]}
SAMPLES = {f"{one.name}{suffix}" for one in METRICS for suffix in SUFFIXES[one.kind]}
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


def scrape(server: Server, headers: Mapping[str, str] = NO_HEADERS) -> tuple[int, str]:
    status, _, body = server.request("/metrics", headers=headers)
    return status, body.decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    """Yield a server that has counted views and refused and failed requests."""
    with running(folder, ACCESS_LOG="on", CLIENT_NEW_IDS_PER_MINUTE="3") as server:
        for badge_id in ("secret/a", "secret/a", "secret/b", "secret/c", "secret/d"):
            server.badge(badge_id, "&label=secret-label")
        server.badge("secret/a", "&peek=1")
        server.request("/api/v1/views?id=secret", method="HEAD")
        server.request("/secret-path?secret=query", method="BREW")
        server.request("/api/v1/events/secret-event", headers={"User-Agent": "secret-agent"})
        yield server


@pytest.fixture(scope="module")
def scraped(server: Server) -> str:
    status, text = scrape(server)
    assert status == 200
    return text


def test_prometheus_reads_every_metric_of_the_catalogue(server: Server, scraped: str) -> None:
    _, headers, _ = server.request("/metrics")
    assert headers["Content-Type"] == CONTENT_TYPE
    found = {one.name: one for one in text_string_to_metric_families(scraped)}
    for metric in METRICS:
        family = found.pop(metric.name.removesuffix("_total"))
        assert (family.type, family.documentation) == (metric.kind, metric.meaning)
        for sample in family.samples:
            assert sample.labels.keys() - {"le"} == set(metric.labels)
            assert sample.name in SAMPLES
    assert not found


def test_the_metrics_count_what_happened(scraped: str) -> None:
    found = parse(scraped)
    requests = 'vumi_http_requests_total{method="%s",route="%s",status="%s"}'
    assert found[requests % ("GET", "/api/v1/views", 200)] == 6
    assert found[requests % ("HEAD", "/api/v1/views", 200)] == 1
    assert found[requests % ("other", "none", 404)] == 1
    assert found[requests % ("GET", "/api/v1/events/{event_id}", 401)] == 1
    assert found["vumi_views_taken_total"] == found["vumi_views_stored_total"] == 4
    assert found['vumi_limit_refusals_total{limit="new_id"}'] == 1
    assert found['vumi_log_events_total{event="token_refused",level="WARNING"}'] == 1
    assert found["vumi_commit_requests_sum"] == found["vumi_commit_requests_count"] == 9
    assert found['vumi_http_request_duration_seconds_count{route="/api/v1/views"}'] == 7
    assert found["vumi_storage_up"] == 1
    assert found["vumi_fold_lag_seconds"] == 0
    assert found["vumi_file_size_bytes"] > 0


def test_no_metric_has_an_id_or_anything_of_a_client(scraped: str) -> None:
    assert "secret" not in scraped
    assert "127.0.0.1" not in scraped


def test_the_access_log_has_no_part_of_a_request_but_its_route(tmp_path: Path) -> None:
    with running(tmp_path, ACCESS_LOG="on") as server:
        server.badge("secret/a", "&label=secret")
        secrets = dict.fromkeys(("User-Agent", "Referer", "Cookie", "X-Forwarded-For"), "secret")
        server.request("/secret", "BREW", headers=secrets)
        _, _, errors = server.stop(signal.SIGTERM)
    lines: list[dict[str, Any]] = [json.loads(line) for line in errors.splitlines()]
    for line in lines:
        assert line.pop("timestamp")
        assert line.pop("duration_ms") > 0
        assert line.pop("bytes") > 0
    logged = {"function": "vu-mi", "level": "INFO", "message": "request_answered"}
    assert lines == [
        {**logged, "method": "GET", "route": "/api/v1/views", "status": 200},
        {**logged, "method": "other", "route": "none", "status": 404},
    ]
