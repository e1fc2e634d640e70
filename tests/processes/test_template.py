"""The resources that SAM makes from the template of the package, and how they fit together."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from chalicelib.api import table_of
from chalicelib.aws import get_views
from chalicelib.aws.chalice_routes import CACHED_SECONDS
from chalicelib.counting import view
from chalicelib.counting.storing import AT_ONCE
from chalicelib.events import event, sweep
from chalicelib.http.routing import Authentication, Route
from chalicelib.settings import Settings
from chalicelib.wallets import archive as archive_module
from deploy import template
from deploy.stage import Folder
from deploy.template import ALL_FEATURES, choose
from tests.processes.conftest import FUNCTIONS, Resources, made_with, of_type
from vumi.operate.installations.stack import DELIVERY_SECONDS

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
    functions = of_type(stack, "AWS::Lambda::Function")
    sends_to_itself = {
        name
        for mapping in of_type(stack, "AWS::Lambda::EventSourceMapping").values()
        if (name := mapping["FunctionName"]["Ref"])
        and {*template.names_in(mapping["EventSourceArn"])}
        & ({*template.names_in(functions[name]["Environment"]["Variables"])} - {"Table"})
    }
    allowed = {name for name, part in functions.items() if part.get("RecursiveLoop") == "Allow"}
    assert sends_to_itself == allowed == {"DeliverEvents"}


def test_the_stack_does_not_show_secrets(templates: dict[str, dict[str, Any]]) -> None:
    given = templates["prod"]["Parameters"]
    hidden = {name for name, parameter in given.items() if parameter.get("NoEcho")}
    assert hidden == {"ApiTokenDigests", "WebhookSecrets"}


def test_each_function_has_its_own_role_with_only_its_policy_its_log_and_only_its_secrets(
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
        settings = stack[resource]["Properties"]["Environment"]["Variables"]
        assert ("WEBHOOK_SECRETS" in settings) == (function == "deliver_events")
        assert ("API_TOKEN_DIGESTS" in settings) == (function in {"api_handler", "authorize"})


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
    kinds = [part["Type"] for part in stack.values()]
    fronts = [kind for kind in kinds if re.search("Stage|Deployment|Url", kind)]
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
    in_order = sorted(fitting, key=lambda key: (key.count("{"), key.startswith("ANY ")))
    return made[[*in_order, "$default"][0]]


def _fits(key: str, method: str, path: str) -> bool:
    of_key, _, template_of_path = key.partition(" ")
    pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template_of_path))
    return of_key in {method, "ANY"} and re.fullmatch(pattern, path) is not None


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


AT_A_ZONE = {
    "DomainName": "badges.example.com",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1a2b-3c4d",
    "HostedZoneId": "Z1D633PJN98FT9",
}
MAX_CONCURRENT_CHANGES = 4
"""The stage, the authorizer and two integrations need only the API."""


@pytest.mark.parametrize(
    "off", [{}, {"Events": "off"}, {"Wallets": "off"}, {"Events": "off", "Wallets": "off"}]
)
def test_all_referenced_names_are_there_and_the_parts_of_the_api_are_made_one_after_another(
    templates: dict[str, dict[str, Any]], off: dict[str, str]
) -> None:
    """API Gateway answers concurrent changes of one API with a conflict.

    CloudFormation makes a part as soon as those that it refers to, or depends on, are made.
    """
    given = templates["prod"]
    made = made_with(given, **off, **AT_A_ZONE)
    stack = made["Resources"]
    assert {*template.names_in([stack, made["Outputs"]])} <= {*stack, *given["Parameters"]}
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


# ---- relations between resources


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
    assert seconds >= 86_400 + view.OLD * Settings().grace_seconds
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
    assert view.YOUNG * grace + timeout <= grace - 240
    assert timeout < (view.OLD - view.YOUNG) * grace


@pytest.mark.parametrize("queue", ["DeliveryQueue", "DistributionQueue"])
def test_a_message_of_an_event_that_fails_ten_times_becomes_a_dead_letter(
    stack: Resources, queue: str
) -> None:
    """The sweep sends the event again before its message is a dead letter, and until it is done.

    A message comes again only after the claim of its event has ended.
    """
    properties = stack[queue]["Properties"]
    assert properties["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["DeliveryDeadLetters", "Arn"]},
        "maxReceiveCount": 10,
    }
    assert properties["VisibilityTimeout"] * 10 > sweep.RESCUE_SECONDS
    if queue == "DeliveryQueue":
        assert properties["VisibilityTimeout"] > event.LEASE_SECONDS
