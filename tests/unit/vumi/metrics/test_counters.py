"""The counted metrics, and their text format, as Prometheus' own client reads it."""

from __future__ import annotations

import ast
import logging
import math
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

import chalicelib
import vumi
from chalicelib import telemetry
from chalicelib.api import TABLE
from chalicelib.http.messages import Response
from chalicelib.storage.errors import StorageError
from simulation.logs import logged_events
from tests.unit.vumi.metrics.reading import samples
from vumi.metrics.counters import (
    COUNTED,
    Family,
    Histogram,
    LogEvents,
    RequestMetrics,
    Totals,
    Value,
    render,
)

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


def test_each_name_that_the_core_counts_by_has_a_metric() -> None:
    folders = (Path(str(package.__file__)).parent for package in (chalicelib, vumi))
    trees = (ast.parse(path.read_text()) for one in folders for path in one.rglob("*.py"))
    calls = (
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "telemetry.count"
    )
    assert COUNTED.keys() == {keyword.arg for call in calls for keyword in call.keywords}


def test_totals_begin_at_0_and_add_up() -> None:
    totals = Totals()
    before = samples(totals.families())
    assert before["vumi_views_stored_total"] == 0
    assert before['vumi_events_total{outcome="failed"}'] == 0
    totals.add({"views_put": 2, "views_folded": 1})
    totals.add({"views_put": 3, "views_folded_early": 7})
    totals.add({"events_delivered": 1, "event_lateness_seconds": 4})
    after = samples(totals.families())
    assert after["vumi_views_stored_total"] == 5
    assert after['vumi_views_folded_total{cause="marker"}'] == 1
    assert after['vumi_views_folded_total{cause="visitor"}'] == 7
    assert after['vumi_event_lateness_seconds_bucket{le="2"}'] == 0
    assert after['vumi_event_lateness_seconds_bucket{le="5"}'] == 1
    assert after["vumi_event_lateness_seconds_sum"] == 4
    assert before.keys() == after.keys()


def test_log_events_are_counted_by_name_and_level_but_not_those_of_requests() -> None:
    counted = LogEvents()
    telemetry.log.addHandler(counted)
    telemetry.log.setLevel(logging.INFO)
    try:
        telemetry.event(logging.WARNING, "badge_not_folded", badge="a")
        telemetry.event(logging.ERROR, "badge_not_folded", badge="b")
        telemetry.event(logging.ERROR, "badge_not_folded", badge="c")
        telemetry.event(logging.INFO, "request_answered", status=200)
        telemetry.event(logging.ERROR, "request_failed", reason=StorageError("x"))
    finally:
        telemetry.log.removeHandler(counted)
    assert samples(counted.families()) == {
        'vumi_log_lines_total{level="WARNING"}': 1,
        'vumi_log_lines_total{level="ERROR"}': 3,
        'vumi_log_lines_total{level="CRITICAL"}': 0,
        'vumi_log_events_total{event="badge_not_folded",level="WARNING"}': 1,
        'vumi_log_events_total{event="badge_not_folded",level="ERROR"}': 2,
        'vumi_log_events_total{event="request_failed",level="ERROR"}': 1,
    }


def histogram(*values: float, bounds: tuple[float, ...] = (0.5, 1, 10)) -> Histogram:
    made = Histogram(bounds)
    for value in values:
        made.add(value)
    return made


def things(*labels: tuple[str, str]) -> Family:
    values: dict[tuple[str, ...], Value] = {given: at for at, given in enumerate(labels)}
    return Family("vumi_things_total", "Things.", values, ("name", "state"))


def test_each_family_has_its_help_its_type_and_its_samples() -> None:
    families = [
        things(("a", "new"), ("b", "old")),
        Family("vumi_empty", "Without a value.", {}),
        Family.of("vumi_size_bytes", "A size.", 1.5),
        Family.by_label("vumi_wait", "A wait.", "route", {"/": histogram(0.25, 0.5, 5, 100)}),
    ]
    assert render(families).splitlines() == [
        "# HELP vumi_things_total Things.",
        "# TYPE vumi_things_total counter",
        'vumi_things_total{name="a",state="new"} 0',
        'vumi_things_total{name="b",state="old"} 1',
        "# HELP vumi_size_bytes A size.",
        "# TYPE vumi_size_bytes gauge",
        "vumi_size_bytes 1.5",
        "# HELP vumi_wait A wait.",
        "# TYPE vumi_wait histogram",
        'vumi_wait_bucket{route="/",le="0.5"} 2',
        'vumi_wait_bucket{route="/",le="1"} 2',
        'vumi_wait_bucket{route="/",le="10"} 3',
        'vumi_wait_bucket{route="/",le="+Inf"} 4',
        'vumi_wait_sum{route="/"} 105.75',
        'vumi_wait_count{route="/"} 4',
    ]


@pytest.mark.parametrize("value", [0, 7, 2**63, 0.1, 1e-9, 1.5e300])
def test_a_number_is_read_as_it_was(value: float) -> None:
    text = render([Family.of("vumi_size_bytes", "A size.", value)])
    [family] = text_string_to_metric_families(text)
    assert [sample.value for sample in family.samples] == [float(value)]


@example('a "quote", a \\n backslash\nand a line', [])
@given(st.text(st.characters(exclude_categories=["Cs"])), st.lists(st.floats(0, 1e9)))
def test_prometheus_reads_every_label_and_histogram(label: str, values: list[float]) -> None:
    families = [
        things((label, "x")),
        Family.by_label("vumi_wait", "A wait.", "route", {label: histogram(*values)}),
    ]
    counter, found = text_string_to_metric_families(render(families))
    [sample] = counter.samples
    assert (sample.name, sample.labels) == ("vumi_things_total", {"name": label, "state": "x"})
    samples = {(one.name, one.labels.get("le", "")): one.value for one in found.samples}
    assert samples["vumi_wait_count", ""] == len(values)
    assert samples["vumi_wait_bucket", "1"] == sum(value <= 1 for value in values)
    assert math.isclose(samples["vumi_wait_sum", ""], math.fsum(values), abs_tol=1e-6)
    assert {one.labels["route"] for one in found.samples} == {label}
