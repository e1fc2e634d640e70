"""The totals of what the core counts: every name has a metric, and commits count once."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import chalicelib
import vumi
from chalicelib import telemetry
from chalicelib.storage.errors import StorageError
from tests.unit.vumi.metrics.reading import samples
from vumi.metrics.totals import COUNTED, LogEvents, Totals


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
