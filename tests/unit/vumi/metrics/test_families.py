"""The text format of metrics, as Prometheus' own client reads it."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from vumi.metrics.families import Family, Histogram, Value, render


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
