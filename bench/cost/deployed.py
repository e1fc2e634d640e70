"""The parts of `.chalice/` on which a bill depends: memory, batches, logs, alarms."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bench.cost.invocations import (
    ACCEPT,
    API,
    ARCHIVE,
    AUTHORIZE,
    DISTRIBUTE,
    FIRE,
    FOLD,
    GET,
    PUT,
    SWEEP,
)
from chalicelib.api import TABLE
from deploy import http_api, template
from deploy.conditions import ALL_FEATURES, decide
from simulation.environment import ROOT

FOLDER = ROOT / ".chalice"
STACK = "vu-mi-prod"
LOGICAL_IDS = {
    GET: "GetViews",
    API: "APIHandler",
    PUT: "PutViews",
    FOLD: "FoldViews",
    AUTHORIZE: "Authorize",
    ACCEPT: "APIHandler",
    SWEEP: "SweepTimers",
    DISTRIBUTE: "DistributeTimers",
    FIRE: "FireTimers",
    ARCHIVE: "ArchiveEntries",
}
"""Chalice's names of the functions in the template."""
ALARM, COMPOSITE_ALARM = "AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm"
DASHBOARD = "AWS::CloudWatch::Dashboard"
ROUTE = "AWS::ApiGatewayV2::Route"
BADGES_ALONE = dict.fromkeys(ALL_FEATURES, False)
"""The conditions of a stack with Events=off and Wallets=off."""
METRICS_OF_A_MAPPING = 5
"""The metrics of a stream's event source mapping with EventCount: polled, filtered out, invoked,
failed and dropped events (Lambda developer guide, "Event source mapping metrics")."""


@dataclass(frozen=True, slots=True)
class Unused:
    """The parts of a stack that cost something each month if nobody uses it."""

    alarm_metrics: int
    mapping_metrics: int
    dashboards: int
    polled_queues: int
    is_swept: bool

    @classmethod
    def of(cls, resources: Mapping[str, Any]) -> Unused:
        sources = _event_sources(resources)
        return cls(
            alarm_metrics=sum(map(_metrics_of, _of_type(resources, ALARM))),
            mapping_metrics=METRICS_OF_A_MAPPING
            * sum("MetricsConfig" in source for source in sources),
            dashboards=len(_of_type(resources, DASHBOARD)),
            polled_queues=sum(map(_is_queue, sources)),
            is_swept=LOGICAL_IDS[SWEEP] in resources,
        )


@dataclass(frozen=True, slots=True)
class Deployed:
    """A stack with all features, as `chalice package` makes it, and its cost without use.

    `badges_alone` is a stack without events and wallets.
    """

    memory_mb: int
    architecture: str
    function_names: Mapping[str, str]
    put_batch: int
    put_window_seconds: int
    put_visibility_seconds: int
    fold_batch: int
    fold_window_seconds: int
    fold_batches_of_a_shard: int
    fire_batch: int
    archive_batch: int
    archive_window_seconds: int
    most_at_once: Mapping[str, int]
    most_requests_a_second: int
    routes: int
    sweep_timeout_seconds: int
    unused: Unused
    badges_alone: Unused

    @classmethod
    def read(cls) -> Deployed:
        """Read a stack from the files that deploy it. Raises `RuntimeError` as `of` does."""
        config = json.loads((FOLDER / "config.json").read_text())
        return cls.of(config, read_template())

    @classmethod
    def of(cls, config: Mapping[str, Any], template: Mapping[str, Any]) -> Deployed:
        """Make a stack. Raises `RuntimeError` if its cost differs from the one counted here."""
        resources = decide(template, ALL_FEATURES)["Resources"]
        _check(resources)
        put, fold, archive = (_event_source(resources, name) for name in (PUT, FOLD, ARCHIVE))
        return cls(
            memory_mb=int(config["lambda_memory_size"]),
            architecture=config["lambda_architecture"],
            function_names={function: _name(resources, function) for function in LOGICAL_IDS},
            put_batch=put["BatchSize"],
            put_window_seconds=put["MaximumBatchingWindowInSeconds"],
            put_visibility_seconds=resources["ViewsQueue"]["Properties"]["VisibilityTimeout"],
            fold_batch=fold["BatchSize"],
            fold_window_seconds=fold["MaximumBatchingWindowInSeconds"],
            fold_batches_of_a_shard=fold["ParallelizationFactor"],
            fire_batch=_event_source(resources, FIRE)["BatchSize"],
            archive_batch=archive["BatchSize"],
            archive_window_seconds=archive["MaximumBatchingWindowInSeconds"],
            most_at_once={
                function: _event_source(resources, function)["ScalingConfig"]["MaximumConcurrency"]
                for function in (PUT, DISTRIBUTE, FIRE)
            },
            most_requests_a_second=template["Parameters"]["RequestsPerSecond"]["Default"],
            routes=len(_of_type(resources, ROUTE)),
            sweep_timeout_seconds=config["lambda_functions"][SWEEP]["lambda_timeout"],
            unused=Unused.of(resources),
            badges_alone=Unused.of(decide(template, BADGES_ALONE)["Resources"]),
        )


def read_template() -> template.Template:
    """Read the resources of the one stack that Chalice does not make."""
    read = template.load()
    read["Resources"] |= http_api.load()["Resources"] | http_api.routes(TABLE.routes)
    return read


def _check(resources: Mapping[str, Any]) -> None:
    """Refuse a stack whose stream runs consumers for each write, or where Lambda logs each run."""
    if _of_type(resources, COMPOSITE_ALARM):
        raise RuntimeError("composite alarms have no price in prices.json")
    for function in (FOLD, ARCHIVE):
        if "FilterCriteria" not in _event_source(resources, function):
            raise RuntimeError(f"the stream is not filtered for {function}")
    if _event_source(resources, DISTRIBUTE)["BatchSize"] != 1:
        raise RuntimeError("groups of events are distributed together")
    for function in LOGICAL_IDS:
        logging = _properties(resources, function).get("LoggingConfig", {})
        if logging.get("SystemLogLevel") != "WARN":
            raise RuntimeError(f"Lambda logs each run of {function}")


def _properties(resources: Mapping[str, Any], function: str) -> dict[str, Any]:
    properties: dict[str, Any] = resources[LOGICAL_IDS[function]]["Properties"]
    return properties


def _event_source(resources: Mapping[str, Any], function: str) -> dict[str, Any]:
    [source] = _properties(resources, function)["Events"].values()
    properties: dict[str, Any] = source["Properties"]
    return properties


def _event_sources(resources: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        source["Properties"]
        for resource in resources.values()
        for source in resource.get("Properties", {}).get("Events", {}).values()
    ]


def _is_queue(event_source: Mapping[str, Any]) -> bool:
    return "Queue" in event_source


def _name(resources: Mapping[str, Any], function: str) -> str:
    template: str = _properties(resources, function)["FunctionName"]["Fn::Sub"]
    return template.replace("${AWS::StackName}", STACK)


def _of_type(resources: Mapping[str, Any], kind: str) -> list[dict[str, Any]]:
    return [
        resource["Properties"] for resource in resources.values() if resource.get("Type") == kind
    ]


def _metrics_of(alarm: Mapping[str, Any]) -> int:
    """Count an alarm's metrics; each in an expression is billed (CloudWatch pricing, "Alarms")."""
    return sum("MetricStat" in metric for metric in alarm.get("Metrics", ())) or 1
