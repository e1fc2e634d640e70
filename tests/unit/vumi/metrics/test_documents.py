"""The document of monitoring: it lists every metric with its type and its labels."""

from __future__ import annotations

import re
from pathlib import Path

from vumi.metrics import catalogue
from vumi.metrics.families import Metric

TEXT = (Path(__file__).parents[4] / "docs" / "monitoring.md").read_text()
METRICS = [one for one in vars(catalogue).values() if isinstance(one, Metric)]
ROW = re.compile(
    r"^\| `((?:vumi|process)_\w+)` \| (\w+) \| ([^|]*)\| ([^|]*)\| (.*) \|$", re.MULTILINE
)
UNITS = {"seconds": "seconds", "bytes": "bytes", "info": "", "up": ""}


def test_each_metric_is_documented_with_its_type_labels_and_meaning() -> None:
    rows = {
        name: (kind, tuple(re.findall(r"`(\w+)`", labels)), meaning)
        for name, kind, labels, _, meaning in ROW.findall(TEXT)
    }
    assert rows.keys() == {metric.name for metric in METRICS}
    for metric in METRICS:
        kind, labels, meaning = rows[metric.name]
        assert (kind, labels) == (metric.kind, metric.labels)
        assert meaning.startswith(metric.meaning.removesuffix("."))


def test_each_unit_is_that_of_the_name() -> None:
    for name, _, _, unit, _ in ROW.findall(TEXT):
        base = name.removesuffix("_total").rpartition("_")[2]
        assert base not in UNITS or unit.strip() == UNITS[base], name
