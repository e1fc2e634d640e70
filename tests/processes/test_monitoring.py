"""The metrics of a real server, and the files for Prometheus and Grafana that use them.

Prometheus' own promtool evaluates the alert rules over made-up series.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from simulation.environment import ROOT
from tests.processes.programs import Server, require, running, succeed
from tests.unit.vumi.metrics.reading import parse
from vumi.metrics.counters import CONTENT_TYPE

PROMETHEUS = ROOT / "examples" / "prometheus"
DASHBOARD = ROOT / "examples" / "grafana" / "vu-mi.json"
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((PROMETHEUS / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
]
UP = "up"
"""A metric that Prometheus makes itself."""
LABELS_OF_A_SCRAPE = {"job", "instance"}
NAME = re.compile(r"\b(?:(?:vumi|process)_\w+|up)\b")
LABELS = re.compile(r"\{([^}]*)\}|\bby ?\(([^)]*)\)")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Yield a server that has counted views and refused and failed requests."""
    folder = tmp_path_factory.mktemp("data")
    limits = {"CLIENT_NEW_IDS_PER_MINUTE": "3", "CLIENT_NEW_IDS_PER_DAY": "8", "MAX_BADGES": "9"}
    with running(folder, ACCESS_LOG="on", **limits) as server:
        for badge_id in ("secret/a", "secret/a", "secret/b", "secret/c", "secret/d"):
            server.badge(badge_id, "&label=secret-label")
        server.badge("secret/a", "&peek=1")
        server.request("/api/v1/views?id=secret", method="HEAD")
        server.request("/secret-path?secret=query", method="BREW")
        server.request("/api/v1/events/secret-event", headers={"User-Agent": "secret-agent"})
        yield server


@pytest.fixture(scope="module")
def scraped(server: Server) -> str:
    status, headers, body = server.request("/metrics")
    assert (status, headers["Content-Type"]) == (200, CONTENT_TYPE)
    return body.decode()


def test_the_limits_of_badges_and_of_the_busiest_client_are_told(scraped: str) -> None:
    found = parse(scraped)
    limits = {"badges": 6, "new_id_a_day": 5}
    assert {name: found[f'vumi_limit_left{{limit="{name}"}}'] for name in limits} == limits


def expressions() -> dict[str, str]:
    """Return every expression of the dashboard and of the alerts, by its panel or alert."""
    found = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in json.loads(DASHBOARD.read_text())["panels"]
        for target in panel.get("targets", [])
    }
    return found | {rule["alert"]: rule["expr"] for rule in RULES}


def test_every_expression_uses_metrics_and_labels_that_the_server_has(scraped: str) -> None:
    families = [*text_string_to_metric_families(scraped)]
    assert len(families) == scraped.count("# TYPE")
    samples = [sample for family in families for sample in family.samples]
    served = {sample.name for sample in samples}
    labels = {label for sample in samples for label in sample.labels} | LABELS_OF_A_SCRAPE
    for place, expression in expressions().items():
        names = set(NAME.findall(LABELS.sub("", re.sub(r'"[^"]*"', "", expression))))
        assert names, place
        assert names <= served | {UP}, place
        for inside, by in LABELS.findall(expression):
            given = re.findall(r"(\w+)\s*[=!]~?", inside) + re.findall(r"\w+", by)
            assert set(given) <= labels, place


JOB = 'job="vu-mi", instance="here"'

REQUESTS = f'vumi_http_requests_total{{{JOB}, method="GET", route="/", status="%s"}}'
TIMES = f'vumi_http_request_duration_seconds_bucket{{{JOB}, route="/", le="%s"}}'
LINES = f'vumi_log_lines_total{{{JOB}, level="%s"}}'
FREE = f"vumi_disk_free_bytes{{{JOB}}}"
AGE = f'vumi_queue_oldest_message_age_seconds{{{JOB}, queue="%s"}}'
OVERDUE = f'vumi_queue_overdue_seconds{{{JOB}, queue="%s"}}'
VIEWS, MINE = "vu-mi-views", "event-mine"

# The series of a minute each, for an hour and a half; the alerts are evaluated at its end.
FIRING: list[tuple[str, dict[str, str]]] = [
    ("VuMiDown", {f"up{{{JOB}}}": "1x80 0x10"}),
    ("VuMiFileUnreadable", {f"vumi_storage_up{{{JOB}}}": "1x80 0x10"}),
    ("VuMiRestarts", {f"process_start_time_seconds{{{JOB}}}": "1x60 2x9 3x9 4x10"}),
    ("VuMiServerErrors", {REQUESTS % 200: "0+100x90", REQUESTS % 503: "0+2x90"}),
    ("VuMiErrorsLogged", {LINES % "ERROR": "0x85 1x5"}),
    ("VuMiErrorsLogged", {LINES % "CRITICAL": "0x85 1x5"}),
    ("VuMiSlow", {TIMES % 1: "0+98x90", TIMES % "2.5": "0+100x90", TIMES % "+Inf": "0+100x90"}),
    ("VuMiNotFolding", {f"vumi_fold_lag_seconds{{{JOB}}}": "0+60x90"}),
    ("VuMiOldMessages", {OVERDUE % VIEWS: "0x70 0+60x20"}),
    ("VuMiOldMessages", {AGE % VIEWS: "3600+60x90"}),
    ("VuMiDeadLetters", {f'vumi_dead_letters{{{JOB}, queue="{VIEWS}"}}': "0x85 1x5"}),
    ("VuMiEventsFailed", {f'vumi_events_total{{{JOB}, outcome="failed"}}': "0x80 1x10"}),
    ("VuMiDiskFull", {FREE: "900000000x90"}),
    ("VuMiDiskFull", {FREE: "50000000000-10000000x90"}),
    ("VuMiWalGrows", {f"vumi_wal_size_bytes{{{JOB}}}": "600000000+1000000x90"}),
]
QUIET: dict[str, str] = {
    f"up{{{JOB}}}": "1x90",
    'up{job="another"}': "0x90",
    f"vumi_storage_up{{{JOB}}}": "1x90",
    f"process_start_time_seconds{{{JOB}}}": "1x70 2x9 3x10",
    REQUESTS % 200: "0+1000x90",
    REQUESTS % 404: "0+1000x90",
    REQUESTS % 503: "0+2x90",
    LINES % "WARNING": "0+1x90",
    LINES % "ERROR": "3x90",
    TIMES % 1: "0+100x90",
    TIMES % "+Inf": "0+100x90",
    f"vumi_fold_lag_seconds{{{JOB}}}": "0+9x90",
    OVERDUE % VIEWS: "0x86 0+100x5",
    AGE % VIEWS: "7000x90",
    OVERDUE % MINE: "0+60x90",
    AGE % MINE: "9000x90",
    f'vumi_dead_letters{{{JOB}, queue="{VIEWS}"}}': "0x90",
    f'vumi_events_total{{{JOB}, outcome="delivered"}}': "0+1x90",
    f'vumi_events_total{{{JOB}, outcome="failed"}}': "7x90",
    FREE: "50000000000-1000000x90",
    f"vumi_wal_size_bytes{{{JOB}}}": "600000000x90",
}


def series(firing: str, values: dict[str, str]) -> dict[str, Any]:
    """Return a test of promtool: at most this alert fires after an hour and a half."""
    samples = [{"labels": f'{{alertname="{firing}"}}', "value": 1}] if firing else []
    fire = 'group by (alertname) (ALERTS{alertstate="firing", job="vu-mi"})'
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": value} for name, value in values.items()],
        "promql_expr_test": [{"expr": fire, "eval_time": "90m", "exp_samples": samples}],
    }


def test_each_alert_fires_alone_and_none_while_all_is_well(tmp_path: Path) -> None:
    require("promtool")
    assert {rule["alert"] for rule in RULES} == {alert for alert, _ in FIRING}
    tests = [series(alert, values) for alert, values in [*FIRING, ("", QUIET)]]
    rules = {"rule_files": [str(PROMETHEUS / "alerts.yml")], "evaluation_interval": "1m"}
    (tmp_path / "test.yml").write_text(yaml.safe_dump({**rules, "tests": tests}))
    succeed("promtool", "test", "rules", tmp_path / "test.yml")
    succeed("promtool", "check", "config", PROMETHEUS / "prometheus.yml")
