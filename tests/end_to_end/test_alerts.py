"""The alert rules, evaluated by Prometheus' own promtool over made-up series."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

RULES = Path(__file__).parents[2] / "examples" / "prometheus" / "alerts.yml"
PROMTOOL = shutil.which("promtool") or ""
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


@pytest.fixture(autouse=True, scope="module")
def _need_promtool() -> None:
    if not PROMTOOL:
        missing = "make can't install promtool: apt-get install prometheus"
        (pytest.fail if "CI" in os.environ else pytest.skip)(missing)


def check(tmp_path: Path, series: dict[str, str], firing: list[str]) -> None:
    """Check that exactly these alerts fire after an hour and a half."""
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in firing]
    fire = 'group by (alertname) (ALERTS{alertstate="firing", job="vu-mi"})'
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [{"expr": fire, "eval_time": "90m", "exp_samples": samples}],
    }
    path = tmp_path / "test.yml"
    rules = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}
    path.write_text(yaml.safe_dump(rules))
    done = subprocess.run(  # noqa: S603  a tool of the system
        [PROMTOOL, "test", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("alert", "series"), FIRING)
def test_an_alert_fires_alone(tmp_path: Path, alert: str, series: dict[str, str]) -> None:
    check(tmp_path, series, [alert])


def test_no_alert_fires_while_all_is_well(tmp_path: Path) -> None:
    check(tmp_path, QUIET, [])


def test_each_alert_fires_in_a_test() -> None:
    rules = yaml.safe_load(RULES.read_text())["groups"][0]["rules"]
    assert {rule["alert"] for rule in rules} == {alert for alert, _ in FIRING}


def test_promtool_finds_no_fault_in_the_example() -> None:
    example = RULES.with_name("prometheus.yml")
    done = subprocess.run(  # noqa: S603  a tool of the system
        [PROMTOOL, "check", "config", str(example)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
