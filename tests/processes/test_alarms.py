"""The alarms of the stack: what they watch, and the values that raise them."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate, cycle
from typing import Any, TypeAlias

import pytest

from chalicelib import telemetry
from deploy import template
from tests.processes.conftest import FUNCTIONS, OFF, Resources, made_with, of_type

EMITTED = {
    "AWS/SQS": {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"},
    "AWS/Lambda": {"Errors", "Invocations", "IteratorAge", "PolledEventCount"},
    "AWS/DynamoDB": {"ReadThrottleEvents", "TimeToLiveDeletedItemCount"},
    "AWS/ApiGateway": {"Count", "Latency", "5xx"},
}
"""Metrics that AWS emits, by their namespace, as far as alarms use them."""


def alarms(stack: Resources) -> dict[str, dict[str, Any]]:
    return of_type(stack, "AWS::CloudWatch::Alarm")


def watched(stack: Resources) -> set[tuple[str, str, str]]:
    """Return the metrics that alarms watch, alone or in an expression.

    Each has its namespace, its name and the resource that a dimension names.
    """
    return {
        (metric["Namespace"], metric["MetricName"], _name_of(part["Value"]))
        for alarm in alarms(stack).values()
        for metric in _metrics_of(alarm)
        for part in metric["Dimensions"]
    }


def _metrics_of(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    parts = alarm.get("Metrics", [{"MetricStat": {"Metric": alarm}}])
    return [part["MetricStat"]["Metric"] for part in parts if "MetricStat" in part]


def _name_of(value: Any) -> str:
    """Return the one resource in a dimension; the table's may be a restored one."""
    if isinstance(value, str) and "${" not in value:
        return value
    found = set(template.names_in(value if isinstance(value, dict) else {"Fn::Sub": value}))
    [name] = found - {"RestoredTable"}
    return {"TableInUse": "Table"}.get(name, name)


@pytest.mark.parametrize("off", [{}, {"Events": "off"}, {"Wallets": "off"}, OFF])
def test_alarms_use_only_metrics_that_are_emitted(
    templates: dict[str, dict[str, Any]], off: dict[str, str]
) -> None:
    """A misspelt metric is an alarm that never fires."""
    stack = made_with(templates["prod"], **off)["Resources"]
    paths = (template.ROOT / "chalicelib").rglob("*.py")
    counting = [text for path in paths if "telemetry.count(" in (text := path.read_text())]
    own = set(re.findall(r"\b(\w+)=", "".join(counting)))
    for namespace, name, resource in watched(stack):
        assert name in {**EMITTED, telemetry.NAMESPACE: own}[namespace]
        assert resource in stack


def test_every_alarm_has_an_action_and_ignores_missing_data(stack: Resources) -> None:
    """The exceptions are the alarm on views a day, and whether the sweep runs at all."""
    switching = [{"Fn::GetAtt": ["PauseApi", "Arn"]}]
    for name, alarm in alarms(stack).items():
        more = switching if name == "ViewsADayAlarm" else []
        assert alarm["AlarmActions"] == [{"Ref": "AlarmTopic"}, *more]
        missing = "breaching" if name == "SweepMissingAlarm" else "notBreaching"
        assert alarm["TreatMissingData"] == missing
        assert "Unit" not in alarm, "CloudWatch finds no data of another unit than the metric's"


VISIBLE = "ApproximateNumberOfMessagesVisible"
COVERED = {
    **dict.fromkeys(("APIHandler", "GetViews", "Authorize"), ("5xx", "HttpApi")),
    "PutViews": ("ApproximateAgeOfOldestMessage", "ViewsQueue"),
    "FoldViews": ("IteratorAge", "FoldViews"),
    "SweepEvents": ("Invocations", "SweepEvents"),
    **dict.fromkeys(("DistributeEvents", "DeliverEvents"), ("events_overdue", "SweepEvents")),
    "ArchiveEntries": ("IteratorAge", "ArchiveEntries"),
    "PauseApi": ("Errors", "PauseApi"),
}
"""The metric of an alarm that shows errors, timeouts and throttles of each function."""


def test_every_function_is_watched_and_so_are_its_dead_letters(stack: Resources) -> None:
    seen = {(name, resource) for _, name, resource in watched(stack)}
    assert set(COVERED) == set(FUNCTIONS.values())
    letters = {name for name in of_type(stack, "AWS::SQS::Queue") if "DeadLetters" in name}
    assert {(VISIBLE, name) for name in letters} | set(COVERED.values()) <= seen


@pytest.mark.parametrize("name", ["FoldsLateAlarm", "ArchiveMissingAlarm"])
def test_removals_that_no_consumer_sees_raise_an_alarm_in_time(stack: Resources, name: str) -> None:
    """The stream keeps them for 24 hours. Every metric is of one and the same period."""
    alarm = alarms(stack)[name]
    [_, *metrics] = alarm["Metrics"]
    [period] = {part["MetricStat"]["Period"] for part in metrics}
    assert alarm["EvaluationPeriods"] * period <= 6 * 3_600


Values: TypeAlias = Mapping[str, int | None]
"""The values of an alarm's metrics; None is a metric without data, if nothing happened."""
RAISED: dict[str, list[Values]] = {
    "FoldsLateAlarm": [
        {"stored": 1, "age": None},
        {"stored": 1, "age": 900_001},
        {"stored": None, "age": 900_001},
    ],
    "ArchiveMissingAlarm": [{"removed": 1, "polled": None}, {"removed": 1, "polled": 0}],
    "RequestsNearLimitAlarm": [{"requests": 24_000}, {"requests": 90_000}],
    "QueueRefusalsAlarm": [
        {"refused": 1, "of_drop_in": None},
        {"refused": None, "of_drop_in": 1},
    ],
}
NOT_RAISED: dict[str, list[Values]] = {
    "FoldsLateAlarm": [
        {"stored": 1, "age": 0},
        {"stored": 1, "age": 900_000},
        {"stored": None, "age": 900_000},
        {"stored": None, "age": None},
    ],
    "ArchiveMissingAlarm": [
        {"removed": 1, "polled": 1},
        {"removed": 0, "polled": None},
        {"removed": None, "polled": None},
    ],
    "RequestsNearLimitAlarm": [{"requests": 23_999}],
    "QueueRefusalsAlarm": [{"refused": None, "of_drop_in": None}],
}
CASES = [
    (name, values, cases is RAISED)
    for cases in (RAISED, NOT_RAISED)
    for name, given in cases.items()
    for values in given
]


@pytest.mark.parametrize(("name", "values", "is_raised"), CASES)
def test_an_alarm_on_several_metrics_is_raised_by_these_values(
    templates: dict[str, dict[str, Any]], name: str, values: Values, *, is_raised: bool
) -> None:
    """An idle consumer is no fault, and `api_handler` answers the URLs of other counters."""
    stack = made_with(templates["prod"], DropIn="komarev")["Resources"]
    alarm = alarms(stack)[name]
    [expression, *metrics] = alarm["Metrics"]
    assert {part["Id"] for part in metrics} == values.keys()
    assert not any(part["ReturnData"] for part in metrics)
    text = template.resolve(expression["Expression"], {"RequestsPerSecond": "500"})
    found, threshold = _calculate(text, values), alarm["Threshold"]
    assert EXCEEDS[alarm["ComparisonOperator"]](found, threshold) is is_raised


EXCEEDS = {
    "GreaterThanThreshold": operator.gt,
    "GreaterThanOrEqualToThreshold": operator.ge,
}


def _calculate(expression: str, values: Values) -> float:
    """Evaluate an expression of CloudWatch's metric math, as far as it is used here."""
    functions = {
        "IF": lambda condition, then, otherwise: then if condition else otherwise,
        "FILL": lambda value, filler: filler if value is None else value,
    }
    python = re.sub(r"\b(AND|OR)\b", lambda found: found[0].lower(), expression)
    calculated: float = eval(python, functions, dict(values))  # noqa: S307  our own template
    return calculated


def test_an_alarm_on_a_metric_of_the_table_ends_without_data(stack: Resources) -> None:
    """Alarms on metrics in AWS/DynamoDB ignore missing data, whatever `TreatMissingData` says.

    Source: the CloudWatch user guide, "Configuring how CloudWatch alarms treat missing data".
    """
    for alarm in alarms(stack).values():
        for part in alarm.get("Metrics", [{"Id": "alone", "MetricStat": {"Metric": alarm}}]):
            metric = part.get("MetricStat", {}).get("Metric", {})
            if metric.get("Namespace") == "AWS/DynamoDB":
                expression = alarm["Metrics"][0]["Expression"]
                uses = re.findall(rf"(FILL\()?\b{part['Id']}\b(, 0\))?", expression)
                assert uses == [("FILL(", ", 0)")]
                assert alarm["DatapointsToAlarm"] < alarm["EvaluationPeriods"]


# ---- the limit of views a day

MIDNIGHT, PERIOD = 86_400 * 20_000, 300


@dataclass(frozen=True)
class Series:
    """A series of CloudWatch's metric math: values by the begins of their periods."""

    points: dict[int, Any]

    def map(self, function: Callable[[Any], Any]) -> Series:
        return Series({at: function(value) for at, value in self.points.items()})

    def __add__(self, other: Series) -> Series:
        return Series({at: value + other.points[at] for at, value in self.points.items()})

    def __ge__(self, least: float) -> Series:
        return self.map(lambda value: value >= least)


SERIES_MATH: dict[str, Callable[..., Any]] = {
    "EPOCH": lambda series: Series({at: at for at in series.points}),
    "FILL": lambda series, filler: series.map(lambda value: filler if value is None else value),
    "FLOOR": math.floor,
    "IF": lambda which, then, otherwise: Series(
        {at: then.points[at] if is_true else otherwise for at, is_true in which.points.items()}
    ),
    "MAX": lambda series: max(series.points.values()),
    "RUNNING_SUM": lambda series: Series(
        dict(zip(series.points, accumulate(series.points.values()), strict=True))
    ),
}
"""The functions of metric math. Source: the CloudWatch user guide, "Metric math functions"."""


@pytest.mark.parametrize("off", [{}, OFF])
@pytest.mark.parametrize(
    ("taken", "now", "is_raised"),
    [
        ({-600: 400, 3_600: 50, 7_200: 51}, 7_500, True),
        ({-600: 400, 3_600: 50, 7_200: 50}, 7_500, False),
        ({-3_600: 101}, 0, True),
        ({-3_600: 101}, PERIOD, False),
        ({-260: 101, 40: 100}, 340, False),
        ({}, 7_500, False),
    ],
)
def test_more_requests_since_midnight_than_the_limit_raise_the_alarm_until_the_next_one(
    templates: dict[str, dict[str, Any]],
    off: dict[str, str],
    taken: dict[int, int],
    now: int,
    *,
    is_raised: bool,
) -> None:
    """The periods slide with the clock. The functions take turns."""
    stack = made_with(templates["prod"], MaxViewsPerDay="100", **off)["Resources"]
    alarm = alarms(stack)["ViewsADayAlarm"]
    today, sum_of_all, *metrics = alarm["Metrics"]
    assert [part["Id"] for part in alarm["Metrics"] if part.get("ReturnData", True)] == ["today"]
    assert {part["MetricStat"]["Period"] for part in metrics} == {PERIOD}
    assert alarm["EvaluationPeriods"] * PERIOD == 86_400
    begins = range(MIDNIGHT + now - 86_400, MIDNIGHT + now, PERIOD)
    values = {part["Id"]: Series(dict.fromkeys(begins)) for part in metrics}
    for (at, requests), part in zip(taken.items(), cycle(metrics), strict=False):
        values[part["Id"]].points[MIDNIGHT + at] = requests
    for part in (sum_of_all, today):
        values[part["Id"]] = eval(part["Expression"], SERIES_MATH, values)  # noqa: S307
    found = max(values["today"].points.values())
    assert EXCEEDS[alarm["ComparisonOperator"]](found, 100) is is_raised
    assert (alarm["Threshold"], alarm["DatapointsToAlarm"]) == ({"Ref": "MaxViewsPerDay"}, 1)


@pytest.mark.parametrize("off", [{}, OFF])
def test_the_alarm_alone_switches_the_functions_that_the_api_calls_and_counts_their_runs(
    templates: dict[str, dict[str, Any]], off: dict[str, str]
) -> None:
    stack = made_with(templates["prod"], MaxViewsPerDay="100", **off)["Resources"]
    public = {
        name
        for one in of_type(stack, "AWS::Lambda::Permission").values()
        if one["Principal"] == "apigateway.amazonaws.com"
        for name in template.names_in(one["FunctionName"])
    }
    pause = stack["PauseApi"]["Properties"]
    assert pause["ReservedConcurrentExecutions"] == 1
    assert {*template.names_in(pause["Environment"])} == public
    [policy] = stack["PauseApiRole"]["Properties"]["Policies"]
    assert {*template.names_in(policy)} == public
    watching = alarms(stack)["ViewsADayAlarm"]
    metrics = _metrics_of(watching)
    assert {_name_of(one["Dimensions"][0]["Value"]) for one in metrics} == public
    permission = stack["PauseApiPermission"]["Properties"]
    assert permission["SourceArn"]["Fn::Sub"].endswith(f":{watching['AlarmName']['Fn::Sub']}")
    assert permission["SourceAccount"] == {"Ref": "AWS::AccountId"}


def test_without_a_limit_the_stack_has_nothing_of_it(templates: dict[str, dict[str, Any]]) -> None:
    made = made_with(templates["prod"])
    assert not [name for name in made["Resources"] if re.search("Pause|ViewsADay", name)]
    assert "FunctionConcurrency" not in json.dumps(made)


def test_a_stack_of_badges_alone_has_no_more_alarms_than_are_free(
    templates: dict[str, dict[str, Any]],
) -> None:
    """Each metric in an expression is billed. Source: CloudWatch pricing, "Free tier"."""
    badges_alone = made_with(templates["prod"], **OFF)["Resources"]
    assert sum(len(_metrics_of(alarm)) for alarm in alarms(badges_alone).values()) <= 10
