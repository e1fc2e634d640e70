"""The resources that SAM makes from the template of the package, and how they fit together."""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import accumulate, cycle
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from chalicelib import telemetry
from chalicelib.api import table_of
from chalicelib.aws import get_views
from chalicelib.aws.authorizer import CACHED_SECONDS
from chalicelib.counting import windows
from chalicelib.counting.count_at_once import AT_ONCE
from chalicelib.events import claims, sweep
from chalicelib.http.routing import Authentication, Route
from chalicelib.settings import Settings, SettingsError
from chalicelib.wallets import archive as archive_module
from deploy import template
from deploy.completion import FUNCTIONS as OF_CHALICE
from deploy.conditions import ALL_FEATURES, choose, decide
from deploy.http_api import APART
from deploy.stage import Folder
from tests import checkers
from tests.template_conditions import evaluate
from vumi.operate.installations.stack import DELIVERY_SECONDS

FUNCTIONS = {**OF_CHALICE, **{function: name for name, function in APART.items()}}
USER_ID = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
Resources: TypeAlias = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def templates(packages: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the template of each stage as CloudFormation sees it, after SAM's translation.

    The package's place in S3 is the one that `aws cloudformation package` would write.
    """
    templates = {}
    for stage, folder in packages.items():
        given = template.load(folder / "sam.yaml")
        for resource in given["Resources"].values():
            if resource["Type"] == "AWS::Serverless::Function":
                assert resource["Properties"]["CodeUri"] == "./deployment.zip"
                resource["Properties"]["CodeUri"] = "s3://bucket/deployment.zip"
        templates[stage] = checkers.translate(given)
    return templates


@pytest.fixture(scope="module")
def stack(templates: dict[str, dict[str, Any]]) -> Resources:
    """Return the resources of prod with all features; dev differs by its protection alone."""
    return resources_of(templates["prod"])


def resources_of(given: dict[str, Any]) -> Resources:
    resources: Resources = decide(given, ALL_FEATURES)["Resources"]
    return resources


def kinds_of(stack: Resources) -> list[str]:
    return [part["Type"] for part in stack.values()]


def of_type(stack: Resources, kind: str) -> dict[str, dict[str, Any]]:
    """Return the properties of the resources of a type."""
    return {name: part["Properties"] for name, part in stack.items() if part["Type"] == kind}


# ---- the functions

CONSUMERS = {
    "PutViews": "ViewsQueue",
    "DistributeEvents": "DistributionQueue",
    "DeliverEvents": "DeliveryQueue",
    "FoldViews": "Table",
    "ArchiveEntries": "Table",
}
"""The source of the events of each consumer; two read the stream, the most that it allows."""


@pytest.mark.parametrize("function", CONSUMERS)
def test_a_consumer_reports_the_parts_of_a_batch_that_failed_and_loses_no_record(
    stack: Resources, function: str
) -> None:
    """The stream is read from its first record, and a record is retried until it succeeds."""
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping").values()
    assert len(mappings) == len(CONSUMERS)
    [source] = [one for one in mappings if one["FunctionName"] == {"Ref": function}]
    names = {*template.names_in(source["EventSourceArn"])}
    assert names - {"RestoredStream"} == {CONSUMERS[function]}
    assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    assert source.get("Enabled", True)
    if CONSUMERS[function] == "Table":
        retries = ("MaximumRetryAttempts", "MaximumRecordAgeInSeconds")
        assert [source[name] for name in retries] == [-1, -1]
        assert source["StartingPosition"] == "TRIM_HORIZON"
        assert source["BisectBatchOnFunctionError"]
    else:
        assert source["ScalingConfig"]["MaximumConcurrency"] <= 50
    if function == "PutViews":
        assert source["BatchSize"] == AT_ONCE


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_bounded_memory_and_time_and_only_its_secrets(
    stack: Resources, function: str
) -> None:
    properties = stack[FUNCTIONS[function]]["Properties"]
    assert properties["FunctionName"] == {"Fn::Sub": f"${{AWS::StackName}}-{function}"}
    assert properties["Timeout"] <= 60
    settings = properties["Environment"]["Variables"]
    assert ("WEBHOOK_SECRETS" in settings) == (function == "deliver_events")
    assert ("API_TOKEN_DIGESTS" in settings) == (function in {"api_handler", "authorize"})


def test_empty_parameters_leave_the_defaults_of_the_code(
    templates: dict[str, dict[str, Any]], stack: Resources
) -> None:
    """Settings that come from an empty parameter count as not set."""
    given = templates["prod"]["Parameters"]
    from_parameters = {
        setting: given[value["Ref"]]["Default"]
        for function in of_type(stack, "AWS::Lambda::Function").values()
        for setting, value in function["Environment"]["Variables"].items()
        if value.get("Ref") in given
    }
    assert {"RETRY_SECONDS", "EVENTS", "WALLETS", "IDS"} < from_parameters.keys()
    assert Settings.from_environment(from_parameters) == Settings()


def test_no_archived_object_is_ever_removed(stack: Resources) -> None:
    """Those older than a month move to a cheaper storage class."""
    [archive] = of_type(stack, "AWS::S3::Bucket").values()
    [moved] = archive["LifecycleConfiguration"]["Rules"]
    assert (moved["Status"], moved["Prefix"]) == ("Enabled", f"{archive_module.PREFIX}/")
    assert not [name for name in moved if name.startswith("Expiration")]


def test_lambda_does_not_stop_the_retries_that_a_function_sends_to_its_own_queue(
    stack: Resources,
) -> None:
    """Lambda counts runs that follow from each other, and stops them after about 16.

    Source: the Lambda developer guide, "Use Lambda recursive loop detection".
    """
    queues = {"DELIVERY_QUEUE_URL", "DISTRIBUTION_QUEUE_URL", "VIEWS_QUEUE_URL"}
    functions = of_type(stack, "AWS::Lambda::Function")
    sends_to_itself = set()
    for mapping in of_type(stack, "AWS::Lambda::EventSourceMapping").values():
        name = mapping["FunctionName"]["Ref"]
        settings = functions[name]["Environment"]["Variables"]
        sent_to = set(template.names_in([settings.get(queue) for queue in queues]))
        if sent_to & set(template.names_in(mapping["EventSourceArn"])):
            sends_to_itself.add(name)
    assert sends_to_itself == {"DeliverEvents"}
    allowed = {name: part.get("RecursiveLoop") for name, part in functions.items()}
    assert {name: kind for name, kind in allowed.items() if kind} == {"DeliverEvents": "Allow"}


@pytest.mark.parametrize(
    ("value", "is_allowed"),
    [
        ("", True),
        ("a" * 64, True),
        (f"{'a' * 64}, {'b' * 64}", True),
        ("A" * 64, False),
        ("a" * 64 + "b" * 64, False),
        (f"{'a' * 64}={USER_ID}", False),
    ],
)
def test_malformed_digests_of_tokens_are_not_deployed(
    templates: dict[str, dict[str, Any]], value: str, *, is_allowed: bool
) -> None:
    pattern = templates["prod"]["Parameters"]["ApiTokenDigests"]["AllowedPattern"]
    assert (re.fullmatch(pattern, value) is not None) is is_allowed
    with nullcontext() if is_allowed else pytest.raises(SettingsError):
        Settings.from_environment({"API_TOKEN_DIGESTS": value})


def test_the_stack_does_not_show_secrets(templates: dict[str, dict[str, Any]]) -> None:
    given = templates["prod"]["Parameters"]
    hidden = {name for name, parameter in given.items() if parameter.get("NoEcho")}
    assert hidden == {"ApiTokenDigests", "WebhookSecrets"}


def test_each_function_has_its_own_role_with_only_its_policy_and_a_log_group_with_a_retention(
    stack: Resources,
) -> None:
    roles = of_type(stack, "AWS::IAM::Role")
    groups = [*of_type(stack, "AWS::Logs::LogGroup").values()]
    assert len(roles) == len(groups) == len(FUNCTIONS)
    for function, resource in FUNCTIONS.items():
        [name, _] = stack[resource]["Properties"]["Role"]["Fn::GetAtt"]
        role = roles.pop(name)
        assert set(role) == {"AssumeRolePolicyDocument", "Policies"}
        [policy] = role["Policies"]
        written = json.loads(Folder().policy(function).read_text())
        assert policy["PolicyDocument"] == choose(written, ALL_FEATURES)
        [trust] = role["AssumeRolePolicyDocument"]["Statement"]
        assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
        group = {"Fn::Sub": f"/aws/lambda/${{{resource}}}"}
        assert {"LogGroupName": group, "RetentionInDays": 30} in groups


# ---- the API

THROTTLE = {
    "ThrottlingRateLimit": {"Ref": "RequestsPerSecond"},
    "ThrottlingBurstLimit": {"Ref": "RequestsAtOnce"},
    "DetailedMetricsEnabled": False,
}


def test_the_one_stage_is_throttled_and_logs_no_visitor(stack: Resources) -> None:
    """An access log would contain addresses. The functions send the headers of CORS.

    SAM adds a stage without throttling to each `AWS::Serverless::Api` without OpenApiVersion.
    """
    [stage] = of_type(stack, "AWS::ApiGatewayV2::Stage").values()
    [api] = of_type(stack, "AWS::ApiGatewayV2::Api").values()
    assert stage["DefaultRouteSettings"] == THROTTLE
    assert "AccessLogSettings" not in stage
    assert "CorsConfiguration" not in api
    fronts = [kind for kind in kinds_of(stack) if re.search("Stage|Deployment|Url", kind)]
    assert fronts == ["AWS::ApiGatewayV2::Stage"]


@pytest.mark.parametrize(
    ("function", "limit"), [("GetViews", 29), ("APIHandler", 29), ("Authorize", 10)]
)
def test_a_function_of_the_api_ends_before_api_gateway_gives_up(
    stack: Resources, function: str, limit: int
) -> None:
    """The limits are those of a REST API, 1 s shorter than an HTTP API's, and of an authorizer.

    Source: the API Gateway developer guide, "Quotas for configuring and running a REST API in API
    Gateway", and the same for an HTTP API.
    """
    assert stack[function]["Properties"]["Timeout"] < limit


def routes(stack: Resources) -> dict[str, dict[str, Any]]:
    return {
        route["RouteKey"]: route for route in of_type(stack, "AWS::ApiGatewayV2::Route").values()
    }


def function_of(stack: Resources, route: Mapping[str, Any]) -> str:
    """Return the function that a route calls by its integration."""
    [name] = template.names_in(route["Target"])
    integration = stack[name]["Properties"]
    assert integration["IntegrationType"] == "AWS_PROXY"
    assert integration["PayloadFormatVersion"] == "2.0"
    [function] = template.names_in(integration["IntegrationUri"])
    return function


def selected(stack: Resources, method: str, path: str) -> dict[str, Any]:
    """Return the route that API Gateway selects: the most specific one, else `$default`.

    Source: the API Gateway developer guide, "Create routes for HTTP APIs in API Gateway".
    """
    made = routes(stack)
    fitting = [key for key in made if _fits(key, method, path)]
    return made[min(fitting, key=_specificity, default="$default")]


def _fits(key: str, method: str, path: str) -> bool:
    of_key, _, template_of_path = key.partition(" ")
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template_of_path))
    return of_key in {method, "ANY"} and re.fullmatch(pattern, path) is not None


def _specificity(key: str) -> tuple[int, bool]:
    return key.count("{"), key.startswith("ANY ")


TABLES = {"GetViews": get_views.TABLE, "APIHandler": table_of(("komarev",))}
"""The table of routes of each function, with the URLs of other counters."""
REQUESTS = [(method, route) for route in TABLES["APIHandler"].routes for method in route.methods]


@pytest.mark.parametrize(
    ("method", "route"), REQUESTS, ids=lambda part: getattr(part, "path", part)
)
def test_a_route_of_the_table_reaches_its_function_with_its_authorizer_and_its_throttle(
    stack: Resources, method: str, route: Route
) -> None:
    path = re.sub(r"\{\w+\+?\}", "x", route.path)
    made = selected(stack, method, path)
    function = function_of(stack, made)
    assert (function == "GetViews") is (route in get_views.TABLE.routes)
    match = TABLES[function].find(path)
    assert match is not None
    assert match.routes[method] == route
    is_guarded = route.feature and route.authentication is not Authentication.NONE
    assert made["AuthorizationType"] == ("CUSTOM" if is_guarded else "NONE")
    assert made.get("AuthorizerId") == ({"Ref": "HttpApiAuthorizer"} if is_guarded else None)
    [stage] = of_type(stack, "AWS::ApiGatewayV2::Stage").values()
    own = stage.get("RouteSettings", {}).get(made["RouteKey"], {})
    assert {**stage["DefaultRouteSettings"], **own} == THROTTLE


@pytest.mark.parametrize(
    ("path", "function"),
    [("/timers", "APIHandler"), ("/nowhere", "APIHandler"), ("/api/v1/views", "GetViews")],
)
def test_a_method_without_a_route_reaches_a_function_and_needs_no_token(
    stack: Resources, path: str, function: str
) -> None:
    made = selected(stack, "OPTIONS", path)
    assert (function_of(stack, made), made["AuthorizationType"]) == (function, "NONE")


def test_the_api_may_call_the_functions_of_its_routes_and_its_authorizer_alone(
    stack: Resources,
) -> None:
    called = {function_of(stack, route) for route in routes(stack).values()}
    [authorizer] = of_type(stack, "AWS::ApiGatewayV2::Authorizer").values()
    assert authorizer["AuthorizerResultTtlInSeconds"] == CACHED_SECONDS
    called |= {*template.names_in(authorizer["AuthorizerUri"])}
    permissions = [
        permission
        for permission in of_type(stack, "AWS::Lambda::Permission").values()
        if permission["Principal"] == "apigateway.amazonaws.com"
    ]
    assert {*template.names_in([one["FunctionName"] for one in permissions])} == called
    assert {*template.names_in([one["SourceArn"] for one in permissions])} == {"HttpApi"}


def _depends_on(part: Mapping[str, Any]) -> list[str]:
    named = part.get("DependsOn", [])
    return [named] if isinstance(named, str) else named


MAX_CONCURRENT_CHANGES = 4
"""The stage, the authorizer and two integrations need only the API."""


@pytest.mark.parametrize(
    "off", [{}, {"Events": "off"}, {"Wallets": "off"}, {"Events": "off", "Wallets": "off"}]
)
def test_the_parts_of_the_api_are_made_one_after_another(
    templates: dict[str, dict[str, Any]], off: dict[str, str]
) -> None:
    """API Gateway answers concurrent changes of one API with a conflict.

    CloudFormation makes a part as soon as those that it refers to, or depends on, are made.
    """
    stack = made_with(templates["prod"], **off, **AT_A_ZONE)["Resources"]
    waiting = {
        name: {*template.names_in(part), *_depends_on(part)}
        for name, part in stack.items()
        if part["Type"].startswith("AWS::ApiGatewayV2::")
    }
    assert {name for part in stack.values() for name in _depends_on(part)} <= stack.keys()
    while waiting:
        ready = [name for name, needed in waiting.items() if not needed & waiting.keys()]
        assert 0 < len(ready) <= MAX_CONCURRENT_CHANGES
        for name in ready:
            del waiting[name]


# ---- alarms

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


def test_alarms_use_only_metrics_that_are_emitted(stack: Resources) -> None:
    """A misspelt metric is an alarm that never fires."""
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

OFF = {"Events": "off", "Wallets": "off"}
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


# ---- relations between resources


def test_only_the_data_of_prod_outlives_its_stack(
    templates: dict[str, dict[str, Any]],
) -> None:
    for stage, given in templates.items():
        stack = resources_of(given)
        kept = {n: part["DeletionPolicy"] for n, part in stack.items() if "DeletionPolicy" in part}
        protected = stack["Table"]["Properties"].get("DeletionProtectionEnabled", False)
        kinds = ("ViewsDeadLetters", "Archive", "ArchivePolicy")
        others = dict.fromkeys(kinds, "RetainExceptOnCreate")
        expected = ({"Table": "Retain", **others}, True) if stage == "prod" else ({}, False)
        assert (kept, protected) == expected


RETENTION = Settings().retention_seconds


def test_a_view_or_its_marker_outlives_every_delivery_of_its_message(stack: Resources) -> None:
    """This is law 4. A dead letter's age counts from the first sending of its message."""
    for name in ("ViewsQueue", "ViewsDeadLetters"):
        kept = stack[name]["Properties"]["MessageRetentionPeriod"]
        assert kept + DELIVERY_SECONDS <= RETENTION


def test_a_message_is_redelivered_until_its_view_is_old_and_a_day_has_passed(
    stack: Resources,
) -> None:
    """A throttled poller returns its messages, and each receive counts."""
    queue = stack["ViewsQueue"]["Properties"]
    seconds = queue["VisibilityTimeout"] * queue["RedrivePolicy"]["maxReceiveCount"]
    assert seconds >= 86_400 + windows.OLD * Settings().grace_seconds
    assert seconds < queue["MessageRetentionPeriod"]
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {
        "Fn::GetAtt": ["ViewsDeadLetters", "Arn"]
    }


@pytest.mark.parametrize("function", ["PutViews", "DistributeEvents", "DeliverEvents"])
def test_a_message_is_invisible_for_six_runs_and_the_batch_window(
    stack: Resources, function: str
) -> None:
    """AWS advises this, because its poller may be throttled and try again.

    Source: the Lambda developer guide, "Configuring your queue to use with Lambda".
    """
    mapping = stack[f"{function}{function}SqsEventSource"]["Properties"]
    queue, _ = mapping["EventSourceArn"]["Fn::GetAtt"]
    longest = 6 * stack[function]["Properties"]["Timeout"]
    visible = stack[queue]["Properties"]["VisibilityTimeout"]
    assert visible >= longest + mapping["MaximumBatchingWindowInSeconds"]


def test_no_run_of_put_views_is_longer_than_the_grace_allows(stack: Resources) -> None:
    """So a young view is stored before its window is folded, and no run sees it as young and old.

    The rest of the grace, 280 s, allows for clocks that differ.
    """
    grace, timeout = Settings().grace_seconds, stack["PutViews"]["Properties"]["Timeout"]
    assert windows.YOUNG * grace + timeout <= grace - 240
    assert timeout < (windows.OLD - windows.YOUNG) * grace


def test_an_event_is_redelivered_only_after_its_claim_has_ended(stack: Resources) -> None:
    visible = stack["DeliveryQueue"]["Properties"]["VisibilityTimeout"]
    assert visible > claims.LEASE_SECONDS


@pytest.mark.parametrize("queue", ["DeliveryQueue", "DistributionQueue"])
def test_a_message_of_an_event_that_fails_ten_times_becomes_a_dead_letter(
    stack: Resources, queue: str
) -> None:
    """The sweep sends the event again before its message is a dead letter, and until it is done."""
    properties = stack[queue]["Properties"]
    assert properties["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["DeliveryDeadLetters", "Arn"]},
        "maxReceiveCount": 10,
    }
    assert properties["VisibilityTimeout"] * 10 > sweep.RESCUE_SECONDS


# ---- stacks without a feature, or with a domain

AT_A_ZONE = {
    "DomainName": "badges.example.com",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1a2b-3c4d",
    "HostedZoneId": "Z1D633PJN98FT9",
}


def made_with(given: dict[str, Any], **parameters: str) -> dict[str, Any]:
    """Return a template as CloudFormation makes it with these parameters."""
    return decide(given, evaluate(given, parameters))


@pytest.fixture
def badges_alone(templates: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return made_with(templates["prod"], **OFF)


def test_a_stack_of_badges_alone_has_nothing_of_events_and_wallets(
    badges_alone: dict[str, Any],
) -> None:
    stack = badges_alone["Resources"]
    functions = {"APIHandler", "GetViews", "PutViews", "FoldViews"}
    assert set(of_type(stack, "AWS::Lambda::Function")) == functions
    assert set(of_type(stack, "AWS::SQS::Queue")) == {"ViewsQueue", "ViewsDeadLetters"}
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping").values()
    assert {mapping["FunctionName"]["Ref"] for mapping in mappings} == {"PutViews", "FoldViews"}
    assert not [kind for kind in kinds_of(stack) if re.search("Events::|S3::|Authorizer", kind)]
    assert not [key for key in routes(stack) if re.search("event|wallet|timer|echo", key.lower())]
    assert badges_alone["Outputs"].keys().isdisjoint({"DeliveryQueueUrl", "ArchiveBucket"})


def test_a_stack_of_badges_alone_has_no_more_alarms_than_are_free(
    badges_alone: dict[str, Any],
) -> None:
    """Each metric in an expression is billed. Source: CloudWatch pricing, "Free tier"."""
    metrics = [len(_metrics_of(alarm)) for alarm in alarms(badges_alone["Resources"]).values()]
    assert sum(metrics) <= 10


@pytest.mark.parametrize("off", [["Events"], ["Wallets"], ["Events", "Wallets"]])
def test_without_a_feature_every_referenced_name_is_in_the_stack(
    templates: dict[str, dict[str, Any]], off: list[str]
) -> None:
    given = templates["prod"]
    made = made_with(given, **dict.fromkeys(off, "off"))
    stack = made["Resources"]
    assert set(template.names_in([stack, made["Outputs"]])) <= {*stack, *given["Parameters"]}
    assert {resource for _, _, resource in watched(stack)} <= stack.keys()
