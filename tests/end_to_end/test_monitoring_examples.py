"""The files for Prometheus and Grafana: they use only what a real server has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.end_to_end.server import running
from tests.unit.vumi.metrics.reading import parse
from vumi.metrics import catalogue
from vumi.metrics.families import Metric

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
METRICS = [one for one in vars(catalogue).values() if isinstance(one, Metric)]
LABELS_OF_A_SCRAPE = {"job", "instance", "le"}
UP = "up"
"""A metric that Prometheus makes itself."""
NAME = re.compile(r"\b(?:(?:vumi|process)_\w+|up)\b")
LABELS = re.compile(r"\{([^}]*)\}|\bby ?\(([^)]*)\)")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Return the names of the samples of a real server that has logged a warning."""
    with running(tmp_path_factory.mktemp("data")) as server:
        server.request("/api/v1/events")
        _, _, body = server.request("/metrics")
    return {name.partition("{")[0] for name in parse(body.decode())}


def dashboard() -> Any:
    return json.loads((EXAMPLES / "grafana" / "vu-mi.json").read_text())


def alerts() -> list[dict[str, Any]]:
    rules = yaml.safe_load((EXAMPLES / "prometheus" / "alerts.yml").read_text())
    return [rule for group in rules["groups"] for rule in group["rules"]]


def expressions() -> dict[str, str]:
    """Return every expression of the dashboard and of the alerts, by its panel or alert."""
    found = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in dashboard()["panels"]
        for target in panel.get("targets", [])
    }
    return found | {rule["alert"]: rule["expr"] for rule in alerts()}


def used(expression: str) -> set[str]:
    """Return the metrics that an expression uses, without its texts and labels."""
    return set(NAME.findall(LABELS.sub("", re.sub(r'"[^"]*"', "", expression))))


@pytest.mark.parametrize(("place", "expression"), expressions().items())
def test_every_expression_uses_metrics_and_labels_that_the_server_has(
    place: str, expression: str, served: set[str]
) -> None:
    names = used(expression)
    assert names, place
    assert names <= served | {UP}, place
    labels = {label for one in METRICS for label in one.labels} | LABELS_OF_A_SCRAPE
    for inside, by in LABELS.findall(expression):
        given = re.findall(r"(\w+)\s*[=!]~?", inside) + re.findall(r"\w+", by)
        assert set(given) <= labels, place
