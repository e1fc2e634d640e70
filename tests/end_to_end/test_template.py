"""The package as it is made: its bytes, and what SAM makes of its template."""

from __future__ import annotations

import ast
import copy
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import ZipFile

import pytest
import yaml
from cfnlint.api import lint_file  # type: ignore[import-untyped]
from samtranslator.parser.parser import Parser  # type: ignore[import-untyped]
from samtranslator.translator.translator import Translator  # type: ignore[import-untyped]

from app import app
from chalicelib import telemetry
from chalicelib.aws.stream_records import entry_removal, marker_removal
from chalicelib.events import claims, sweep
from chalicelib.http import authorization
from chalicelib.settings import Settings
from chalicelib.views import keys, windows
from chalicelib.wallets import archive as archive_module
from chalicelib.wallets.wallet import Entry, Posting
from deploy import __main__ as deploying
from deploy import redrive, template
from deploy.completion import FUNCTIONS
from deploy.stage import SETTINGS, Folder, write_names
from simulation import aws_events as events
from simulation.aws_events import entry_record

STAGES = ["prod", "dev"]
MOST_BYTES = 400_000
"""Lambda unpacks it at a cold start; boto3 alone would be some 15 MB."""

Resources: TypeAlias = dict[str, dict[str, Any]]


def read(folder: Path) -> dict[str, Any]:
    template: dict[str, Any] = yaml.safe_load((folder / "sam.yaml").read_text())
    return template


def names(folder: Path) -> list[str]:
    with ZipFile(folder / "deployment.zip") as zipped:
        return zipped.namelist()


@pytest.fixture(scope="module")
def stacks(packages: dict[str, Path]) -> dict[str, Resources]:
    """By stage, the resources that CloudFormation gets to see: SAM's own are translated.

    The package's place in S3 is what `aws cloudformation package` would write there.
    """
    stacks = {}
    for stage, folder in packages.items():
        given = read(folder)
        for resource in given["Resources"].values():
            if resource["Type"] == "AWS::Serverless::Function":
                assert resource["Properties"]["CodeUri"] == "./deployment.zip"
                resource["Properties"]["CodeUri"] = "s3://bucket/deployment.zip"
        stacks[stage] = Translator({}, Parser()).translate(given, {})["Resources"]
    return stacks


@pytest.fixture(params=STAGES)
def stack(request: pytest.FixtureRequest, stacks: dict[str, Resources]) -> Resources:
    return stacks[request.param]


@pytest.fixture
def prod(stacks: dict[str, Resources]) -> Resources:
    return stacks["prod"]


def of_type(stack: Resources, kind: str) -> dict[str, dict[str, Any]]:
    """The properties of the resources of a type."""
    return {name: part["Properties"] for name, part in stack.items() if part["Type"] == kind}


# ---- the package


def test_packaged_elsewhere_and_after_a_chalice_deploy_it_is_the_same_bytes(
    packages: dict[str, Path], tmp_path: Path
) -> None:
    """The names of another stack's table have no place in a package that brings its own."""
    for name in ("app.py", "requirements.txt", "constraints.txt"):
        shutil.copy(template.ROOT / name, tmp_path)
    for name in ("chalicelib", "vumi", "deploy", ".chalice"):
        shutil.copytree(template.ROOT / name, tmp_path / name)
    arn = "arn:aws:dynamodb:us-east-1:123456789012:table/other/stream/label"
    write_names("dev", OUTPUTS | {"TableStreamArn": arn}, Folder(tmp_path / ".chalice"))
    subprocess.run(
        [sys.executable, "-m", "deploy", "package", "--stage", "dev", "--out", "made"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )
    for name in ("sam.yaml", "deployment.zip"):
        again = (tmp_path / "made" / name).read_bytes()
        assert again == (packages["dev"] / name).read_bytes()


OUTPUTS = dict.fromkeys(SETTINGS.values(), "of another stack")


def test_every_stage_has_the_same_zip(packages: dict[str, Path]) -> None:
    prod, dev = ((packages[stage] / "deployment.zip").read_bytes() for stage in STAGES)
    assert prod == dev


def test_nothing_is_left_beside_the_package(packages: dict[str, Path]) -> None:
    for folder in packages.values():
        assert {path.name for path in folder.iterdir()} == {"sam.yaml", "deployment.zip"}


def test_the_zip_is_small(packages: dict[str, Path]) -> None:
    size = (packages["prod"] / "deployment.zip").stat().st_size
    assert size < MOST_BYTES, f"deployment.zip has {size:,} of at most {MOST_BYTES:,} bytes"


def test_the_zip_has_the_app_chalices_runtime_and_what_is_required(
    packages: dict[str, Path],
) -> None:
    """python-ulid needs typing_extensions before Python 3.12."""
    older = {"typing_extensions.py"} if sys.version_info < (3, 12) else set()
    tops = {name.split("/")[0] for name in names(packages["prod"])}
    modules = {name for name in tops if not name.endswith(".dist-info")}
    assert modules == {"app.py", "chalice", "chalicelib", "ulid", *older}


def test_the_zip_has_the_sources_as_they_are(packages: dict[str, Path]) -> None:
    files = [template.ROOT / "app.py", *(template.ROOT / "chalicelib").rglob("*.*")]
    sources = {
        path.relative_to(template.ROOT).as_posix(): path.read_bytes()
        for path in files
        if path.suffix != ".pyc"
    }
    with ZipFile(packages["prod"] / "deployment.zip") as zipped:
        ours = [name for name in zipped.namelist() if name.startswith(("app.py", "chalicelib/"))]
        assert {name: zipped.read(name) for name in ours} == sources


def test_the_zip_has_neither_bytecode_nor_machine_code(packages: dict[str, Path]) -> None:
    """So it runs on any processor, and on another Python than the one that packaged it."""
    endings = {Path(name).suffix for name in names(packages["prod"])}
    assert not {".pyc", ".so", ".pyd", ".dylib"} & endings


@pytest.mark.parametrize("stage", STAGES)
def test_the_template_has_no_findings(packages: dict[str, Path], stage: str) -> None:
    assert lint_file(packages[stage] / "sam.yaml") == []


def test_the_template_of_the_table_and_the_queues_alone_has_no_findings(tmp_path: Path) -> None:
    assert deploying.main(["resources", "--stage", "prod", "--out", str(tmp_path)]) == 0
    written = tmp_path / "resources.yaml"
    assert yaml.safe_load(written.read_text()) == template.extract_standalone(template.load())
    assert lint_file(written) == []


# ---- the functions

BATCHES_IN_PART = ["ReportBatchItemFailures"]
FILTER = {"eventName": ["REMOVE"], "dynamodb": {"Keys": {"SK": {"S": [keys.WINDOW]}}}}
TABLE_IN_USE = {"Fn::If": ["IsRestored", {"Ref": "RestoredTable"}, {"Ref": "Table"}]}


def test_put_views_gets_its_batches_from_the_views_queue(stack: Resources) -> None:
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping")
    assert mappings["PutViewsPutViewsSqsEventSource"] == {
        "FunctionName": {"Ref": "PutViews"},
        "EventSourceArn": {"Fn::GetAtt": ["ViewsQueue", "Arn"]},
        "BatchSize": 100,
        "MaximumBatchingWindowInSeconds": 1,
        "FunctionResponseTypes": BATCHES_IN_PART,
        "ScalingConfig": {"MaximumConcurrency": 50},
    }


@pytest.mark.parametrize(
    ("function", "queue", "batch", "at_once"),
    [("DistributeTimers", "DistributionQueue", 1, 10), ("FireTimers", "TimersQueue", 10, 50)],
)
def test_events_come_from_their_queues_as_soon_as_they_are_due(
    stack: Resources, function: str, queue: str, batch: int, at_once: int
) -> None:
    """No window to fill a batch in, and the neighbours of one that fails don't come again."""
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping")
    assert mappings[f"{function}{function}SqsEventSource"] == {
        "FunctionName": {"Ref": function},
        "EventSourceArn": {"Fn::GetAtt": [queue, "Arn"]},
        "BatchSize": batch,
        "MaximumBatchingWindowInSeconds": 0,
        "FunctionResponseTypes": BATCHES_IN_PART,
        "ScalingConfig": {"MaximumConcurrency": at_once},
    }


def test_the_sweep_runs_every_minute(stack: Resources) -> None:
    """EventBridge may call this function, by this rule and no other."""
    [(name, rule)] = of_type(stack, "AWS::Events::Rule").items()
    assert rule["ScheduleExpression"] == "rate(1 minute)"
    assert rule.get("State", "ENABLED") == "ENABLED"
    [target] = rule["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": ["SweepTimers", "Arn"]}
    [permission] = [
        permission
        for permission in of_type(stack, "AWS::Lambda::Permission").values()
        if permission["Principal"] == "events.amazonaws.com"
    ]
    assert permission["FunctionName"] == {"Ref": "SweepTimers"}
    assert permission["SourceArn"] == {"Fn::GetAtt": [name, "Arn"]}


def test_fold_views_gets_the_removal_of_every_marker_from_the_tables_stream(
    stack: Resources,
) -> None:
    """From the first record on, ten batches of a shard at a time, never giving one up."""
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping")
    assert len(mappings) == 5
    properties = copy.deepcopy(mappings["FoldViewsFoldViewsDynamodbEventSource"])
    [entry] = properties.pop("FilterCriteria")["Filters"]
    assert json.loads(entry["Pattern"]) == FILTER
    stream = {"Fn::GetAtt": ["Table", "StreamArn"]}
    assert properties == {
        "FunctionName": {"Ref": "FoldViews"},
        "EventSourceArn": {"Fn::If": ["IsRestored", {"Ref": "RestoredStream"}, stream]},
        "StartingPosition": "TRIM_HORIZON",
        "BatchSize": 1000,
        "MaximumBatchingWindowInSeconds": 5,
        "MaximumRetryAttempts": -1,
        "MaximumRecordAgeInSeconds": -1,
        "BisectBatchOnFunctionError": True,
        "FunctionResponseTypes": BATCHES_IN_PART,
        "ParallelizationFactor": 10,
    }


def test_the_stream_has_what_its_consumers_read(stack: Resources) -> None:
    """The items as they were before they were removed."""
    stream = stack["Table"]["Properties"]["StreamSpecification"]
    assert stream == {"StreamViewType": "OLD_IMAGE"}


def test_archive_entries_gets_every_entry_that_was_removed_as_surely_as_the_fold_its_views(
    stack: Resources,
) -> None:
    """In larger batches, one of a shard at a time; all else is the same but what is filtered."""
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping")
    fold = copy.deepcopy(mappings["FoldViewsFoldViewsDynamodbEventSource"])
    properties = copy.deepcopy(mappings["ArchiveEntriesArchiveEntriesDynamodbEventSource"])
    [entry] = properties.pop("FilterCriteria")["Filters"]
    journal = {"Keys": {"SK": {"S": [{"prefix": "TX#"}]}}}
    assert json.loads(entry["Pattern"]) == {"eventName": ["REMOVE"], "dynamodb": journal}
    del fold["FilterCriteria"]
    assert properties == fold | {
        "FunctionName": {"Ref": "ArchiveEntries"},
        "BatchSize": 10_000,
        "MaximumBatchingWindowInSeconds": 300,
        "ParallelizationFactor": 1,
    }


def test_no_more_than_two_read_the_stream(stack: Resources) -> None:
    """Source: the DynamoDB developer guide, "Reading and processing a stream"."""
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping").values()
    stream = {"Fn::GetAtt": ["Table", "StreamArn"]}
    source = {"Fn::If": ["IsRestored", {"Ref": "RestoredStream"}, stream]}
    assert sum(mapping["EventSourceArn"] == source for mapping in mappings) == 2


def test_the_archive_is_for_nobody_else_and_encrypted(stack: Resources) -> None:
    """And what lies in it for a month goes where keeping is cheaper."""
    [archive] = of_type(stack, "AWS::S3::Bucket").values()
    closed = archive["PublicAccessBlockConfiguration"]
    assert closed == dict.fromkeys(
        ("BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"), True
    )
    assert archive["OwnershipControls"] == {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}
    [rule] = archive["BucketEncryption"]["ServerSideEncryptionConfiguration"]
    assert rule == {"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}
    [moved] = archive["LifecycleConfiguration"]["Rules"]
    assert (moved["Status"], moved["Prefix"]) == ("Enabled", f"{archive_module.PREFIX}/")
    assert not [name for name in moved if name.startswith("Expiration")]


TARGETS = {
    "WEBHOOK_ALLOW": {"Ref": "WebhookAllow"},
    "WEBHOOK_SECRETS": {"Ref": "WebhookSecrets"},
    "EVENT_QUEUES": {"Ref": "EventQueues"},
}
"""What says where an event may go: asked when it is made, and when it is delivered."""
TABLE_NAME = {"TABLE_NAME": TABLE_IN_USE}
TIMERS_QUEUE_URL = {"TIMERS_QUEUE_URL": {"Ref": "TimersQueue"}}
API_SETTINGS = {**TABLE_NAME, "VIEWS_QUEUE_URL": {"Ref": "ViewsQueue"}, **TIMERS_QUEUE_URL}
SWEEP_SETTINGS = {**TABLE_NAME, "DISTRIBUTION_QUEUE_URL": {"Ref": "DistributionQueue"}}
RETRY_SECONDS = {"RETRY_SECONDS": {"Ref": "RetrySeconds"}}


@pytest.mark.parametrize(
    ("function", "role", "timeout", "settings"),
    [
        ("api_handler", "ApiHandlerRole", 10, API_SETTINGS | TARGETS),
        ("put_views", "PutViewsRole", 20, TABLE_NAME),
        ("fold_views", "FoldViewsRole", 60, TABLE_NAME),
        ("authorize", "AuthorizeRole", 5, {"API_TOKEN_DIGESTS": {"Ref": "ApiTokenDigests"}}),
        ("sweep_timers", "SweepTimersRole", 60, SWEEP_SETTINGS),
        ("distribute_timers", "DistributeTimersRole", 20, TIMERS_QUEUE_URL),
        (
            "fire_timers",
            "FireTimersRole",
            60,
            TABLE_NAME | TIMERS_QUEUE_URL | TARGETS | RETRY_SECONDS,
        ),
        ("archive_entries", "ArchiveEntriesRole", 60, {"ARCHIVE_BUCKET": {"Ref": "Archive"}}),
    ],
)
def test_a_function_is_made_as_it_is_meant(
    stack: Resources, function: str, role: str, timeout: int, settings: dict[str, Any]
) -> None:
    functions = of_type(stack, "AWS::Lambda::Function")
    assert set(functions) == set(FUNCTIONS.values())
    properties = dict(functions[FUNCTIONS[function]])
    for elsewhere in ("Handler", "Tags"):
        del properties[elsewhere]
    assert properties == {
        "FunctionName": {"Fn::Sub": f"${{AWS::StackName}}-{function}"},
        "Code": {"S3Bucket": "bucket", "S3Key": "deployment.zip"},
        "Runtime": "python3.13",
        "Architectures": ["arm64"],
        "MemorySize": 512,
        "Timeout": timeout,
        "Role": {"Fn::GetAtt": [role, "Arn"]},
        "Environment": {"Variables": settings},
        "LoggingConfig": {
            "LogFormat": "JSON",
            "ApplicationLogLevel": "INFO",
            "SystemLogLevel": "WARN",
        },
        "TracingConfig": {"Mode": "PassThrough"},
    }


def test_what_is_not_given_leaves_the_codes_own_defaults(
    packages: dict[str, Path], stack: Resources
) -> None:
    """The settings that come from a parameter are empty, which counts as not set."""
    given = read(packages["prod"])["Parameters"]
    from_parameters = {
        setting: given[value["Ref"]]["Default"]
        for function in of_type(stack, "AWS::Lambda::Function").values()
        for setting, value in function["Environment"]["Variables"].items()
        if value.get("Ref") in given
    }
    assert from_parameters == {"API_TOKEN_DIGESTS": "", "RETRY_SECONDS": ""} | dict.fromkeys(
        TARGETS, ""
    )
    assert Settings.from_environment(from_parameters) == Settings()


def test_secrets_are_not_shown_to_who_looks_at_the_stack(packages: dict[str, Path]) -> None:
    given = read(packages["prod"])["Parameters"]
    hidden = {name for name, parameter in given.items() if parameter.get("NoEcho")}
    assert hidden == {"ApiTokenDigests", "WebhookSecrets"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_has_a_role_of_its_own_with_its_policy_alone(
    stack: Resources, function: str
) -> None:
    roles = of_type(stack, "AWS::IAM::Role")
    [name, _] = stack[FUNCTIONS[function]]["Properties"]["Role"]["Fn::GetAtt"]
    assert len(roles) == len(FUNCTIONS)
    [policy] = roles[name]["Policies"]
    assert policy["PolicyDocument"] == json.loads(Folder().policy(function).read_text())
    [trust] = roles[name]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    assert set(roles[name]) == {"AssumeRolePolicyDocument", "Policies"}


def test_every_function_has_a_log_group_that_is_cleared_in_time(stack: Resources) -> None:
    groups = [*of_type(stack, "AWS::Logs::LogGroup").values()]
    assert len(groups) == len(FUNCTIONS)
    for function in FUNCTIONS.values():
        name = {"Fn::Sub": f"/aws/lambda/${{{function}}}"}
        assert {"LogGroupName": name, "RetentionInDays": 30} in groups


# ---- the API


@pytest.mark.parametrize("stage", STAGES)
def test_the_api_is_throttled_and_logs_no_visitor(stacks: dict[str, Resources], stage: str) -> None:
    """No access log, no execution log, no trace: each would have addresses in it."""
    [(_, properties)] = of_type(stacks[stage], "AWS::ApiGateway::Stage").items()
    del properties["DeploymentId"]
    assert properties == {
        "RestApiId": {"Ref": "RestAPI"},
        "StageName": stage,
        "TracingEnabled": False,
        "MethodSettings": [
            {
                "ResourcePath": "/*",
                "HttpMethod": "*",
                "ThrottlingRateLimit": {"Ref": "RequestsPerSecond"},
                "ThrottlingBurstLimit": {"Ref": "RequestsAtOnce"},
                "LoggingLevel": "OFF",
                "DataTraceEnabled": False,
            }
        ],
    }


def test_the_api_has_the_routes_of_the_app_and_may_call_two_functions_alone(
    stack: Resources,
) -> None:
    body = stack["RestAPI"]["Properties"]["Body"]
    routes = {path: {*map(str.upper, methods)} for path, methods in body["paths"].items()}
    assert routes == {path: {*methods} for path, methods in app.routes.items()}
    assert routes["/api/v1/views"] >= {"GET", "HEAD"}
    called = {
        method["x-amazon-apigateway-integration"]["uri"]["Fn::Sub"]
        for methods in body["paths"].values()
        for method in methods.values()
    }
    assert [uri.split("/functions/")[1] for uri in called] == ["${APIHandler.Arn}/invocations"]
    permissions = [
        permission
        for permission in of_type(stack, "AWS::Lambda::Permission").values()
        if permission["Principal"] == "apigateway.amazonaws.com"
    ]
    assert {*template.names_in([permission["FunctionName"] for permission in permissions])} == {
        "APIHandler",
        "Authorize",
    }
    for permission in permissions:
        assert set(template.names_in(permission["SourceArn"])) == {"RestAPI"}


FOR_ALL = {
    "/",
    "/api/v1/events/{event_id}/badge",
    "/api/v1/events/{event_id}/badge.svg",
    "/api/v1/wallets/{wallet_id}/badge",
    "/api/v1/wallets/{wallet_id}/badge.svg",
    "/healthz",
    "/openapi.json",
}
"""Routes that need no token, beside those of badges."""


def test_events_and_wallets_ask_for_a_token_and_no_badge_does(
    stack: Resources,
) -> None:
    body = stack["RestAPI"]["Properties"]["Body"]
    guarded = {
        path
        for path, methods in body["paths"].items()
        for method in methods.values()
        if method.get("security") == [{"authorize": []}]
    }
    free = {
        path
        for path, methods in body["paths"].items()
        for method in methods.values()
        if "security" not in method
    }
    assert guarded == {
        "/api/v1/events",
        "/api/v1/events/{event_id}",
        "/echoAtTime",
        "/timers",
        "/timers/{timer_id}",
        "/api/v1/wallets",
        "/api/v1/wallets/me",
        "/api/v1/wallets/{wallet_id}",
        "/api/v1/wallets/{wallet_id}/balance",
        "/api/v1/wallets/{wallet_id}/deposit",
        "/api/v1/wallets/{wallet_id}/transactions",
        "/api/v1/wallets/{wallet_id}/transfer/{target_id}",
    }
    assert guarded | free == set(body["paths"])
    assert not guarded & free
    assert {path for path in free if "views" not in path and "badges" not in path} == FOR_ALL
    authorizer = body["securityDefinitions"]["authorize"]
    assert (authorizer["in"], authorizer["name"]) == ("header", "Authorization")
    asked = authorizer["x-amazon-apigateway-authorizer"]
    assert (asked["type"], asked["authorizerResultTtlInSeconds"]) == ("token", 300)
    assert {*template.names_in(asked["authorizerUri"])} == {"Authorize"}


def test_what_the_api_answers_itself_reads_as_every_other_error(stack: Resources) -> None:
    given = stack["RestAPI"]["Properties"]["Body"]["x-amazon-apigateway-gateway-responses"]
    answers = {
        kind: (answer.get("statusCode"), *_error(answer["responseTemplates"]))
        for kind, answer in given.items()
    }
    not_found = ("404", "not_found", "there is no such route")
    unchecked = ("500", "internal", "the token can not be checked: try again")
    assert answers == {
        "MISSING_AUTHENTICATION_TOKEN": not_found,
        "INVALID_SIGNATURE": not_found,
        "EXPIRED_TOKEN": not_found,
        "RESOURCE_NOT_FOUND": not_found,
        "UNAUTHORIZED": ("401", "unauthorized", authorization.NO_TOKEN),
        "ACCESS_DENIED": ("403", "forbidden", "this token opens nothing here"),
        "AUTHORIZER_FAILURE": unchecked,
        "AUTHORIZER_CONFIGURATION_ERROR": unchecked,
        "THROTTLED": ("429", "too_many_requests", "too many requests: try again"),
        "REQUEST_TOO_LARGE": ("413", "too_large", "the request is too large"),
        "DEFAULT_4XX": (None, "bad_request", "what is wrong"),
        "DEFAULT_5XX": (None, "internal", "out of order: try again"),
    }
    waits = {kind: answer.get("responseParameters") for kind, answer in given.items()}
    assert waits.pop("THROTTLED") == {"gatewayresponse.header.Retry-After": "'1'"}
    assert waits.pop("UNAUTHORIZED") == {"gatewayresponse.header.WWW-Authenticate": "'Bearer'"}
    assert not any(waits.values())


def _error(templates: dict[str, str]) -> tuple[str, str]:
    """Code and message, with what API Gateway writes in place of its variable: a JSON text."""
    [(kind, text)] = templates.items()
    assert kind == "application/json"
    body = json.loads(text.replace("$context.error.messageString", '"what is wrong"'))
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message"}
    return body["error"]["code"], body["error"]["message"]


# ---- who is told of what

METRICS = {
    "AWS/SQS": (
        {
            "ApproximateAgeOfOldestMessage",
            "ApproximateNumberOfMessagesDelayed",
            "ApproximateNumberOfMessagesVisible",
        },
        ["QueueName"],
    ),
    "AWS/Lambda": (
        {
            "ConcurrentExecutions",
            "Duration",
            "Errors",
            "Invocations",
            "IteratorAge",
            "Throttles",
        },
        ["FunctionName"],
    ),
    "AWS/DynamoDB": (
        {
            "ConsumedReadCapacityUnits",
            "ConsumedWriteCapacityUnits",
            "ReadThrottleEvents",
            "TimeToLiveDeletedItemCount",
            "WriteThrottleEvents",
        },
        ["TableName"],
    ),
    "AWS/ApiGateway": ({"Count", "Latency", "4XXError", "5XXError"}, ["ApiName", "Stage"]),
}
"""Metrics that AWS emits, and their dimensions.

Sources: the SQS, Lambda, DynamoDB and API Gateway developer guides, each on CloudWatch metrics.
"""
KINDS = {
    "QueueName": "AWS::SQS::Queue",
    "FunctionName": "AWS::Lambda::Function",
    "function": "AWS::Lambda::Function",
    "TableName": "AWS::DynamoDB::Table",
    "Stage": "AWS::ApiGateway::Stage",
}
"""What a dimension names."""
CONSUMERS = {
    "store_views": ["PutViews"],
    "fold_badges": ["FoldViews"],
    "archive_entries": ["ArchiveEntries"],
    "sweep": ["SweepTimers"],
    "settle": ["FireTimers"],
    "_end": ["FireTimers"],
    "_try_again": ["FireTimers"],
    "parse_records": [
        "PutViews",
        "FoldViews",
        "DistributeTimers",
        "FireTimers",
        "ArchiveEntries",
    ],
}
"""The functions that count, with the Lambda functions they run in; others run in `APIHandler`."""

Metric: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""Namespace, name, and the dimensions: each with the one name that its value refers to."""


def counted() -> set[tuple[str, str]]:
    """What the handlers count, by function: the keywords of `telemetry.count(...)`."""
    found = set()
    for path in (template.ROOT / "chalicelib").rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef):
                runs_in = CONSUMERS.get(function.name, ["APIHandler"])
                found |= set(product(runs_in, _counted_in(function)))
    return found


def _counted_in(function: ast.FunctionDef) -> set[str]:
    return {
        keyword.arg or ""
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "telemetry.count"
        for keyword in call.keywords
    }


def alarms(stack: Resources) -> dict[str, dict[str, Any]]:
    return of_type(stack, "AWS::CloudWatch::Alarm")


def watched(stack: Resources) -> set[Metric]:
    """The metrics that alarms look at."""
    return {
        (
            alarm["Namespace"],
            alarm["MetricName"],
            tuple((part["Name"], _named(part["Value"])) for part in alarm["Dimensions"]),
        )
        for alarm in alarms(stack).values()
    }


def _named(value: Any) -> str:
    """The one resource that a dimension names; the table's may be a restored one."""
    if isinstance(value, str) and "${" not in value:
        return value
    found = set(template.names_in(value if isinstance(value, dict) else {"Fn::Sub": value}))
    [name] = found - {"RestoredTable"}
    return {"TableInUse": "Table"}.get(name, name)


def drawn(stack: Resources) -> set[Metric]:
    """The metrics that the dashboard shows."""
    return {
        (namespace, name, tuple(zip(dimensions[::2], map(_named, dimensions[1::2]), strict=True)))
        for widget in dashboard(stack)["widgets"]
        for namespace, name, *dimensions in _spelt_out(widget["properties"]["metrics"])
    }


def _spelt_out(metrics: Sequence[Sequence[Any]]) -> Iterator[list[str]]:
    """Without abbreviations: "." is what stands above, "..." all that stands above up to there.

    Source: the CloudWatch API reference, "Dashboard body structure and syntax".
    """
    above: list[str] = []
    for metric in metrics:
        words = [word for word in metric if isinstance(word, str)]
        if words[0] == "...":
            words = above[: len(above) - len(words) + 1] + words[1:]
        above = [above[place] if word == "." else word for place, word in enumerate(words)]
        yield above


def dashboard(stack: Resources) -> dict[str, Any]:
    """Its body; what is between `${` and `}` are names as good as any other to JSON."""
    [properties] = of_type(stack, "AWS::CloudWatch::Dashboard").values()
    body, given = properties["DashboardBody"]["Fn::Sub"]
    assert given == {"TableInUse": TABLE_IN_USE}
    shown: dict[str, Any] = json.loads(body)
    return shown


def test_the_handlers_own_metrics_are_shown_each_of_the_function_that_counts_it(
    stack: Resources,
) -> None:
    own = {
        (function, name)
        for namespace, name, dimensions in drawn(stack)
        if namespace == telemetry.NAMESPACE
        for _, function in dimensions
    }
    assert own == counted()


@pytest.mark.parametrize("look", [watched, drawn])
def test_only_metrics_that_somebody_emits_are_looked_at(stack: Resources, look: Any) -> None:
    """A misspelt one is an alarm that never fires, a line that is never drawn."""
    emitted: set[tuple[str, str]] = set()
    for namespace, name, dimensions in look(stack):
        if namespace == telemetry.NAMESPACE:
            [(dimension, function)] = dimensions
            assert (dimension, (function, name) in counted()) == ("function", True)
        else:
            known, named = METRICS[namespace]
            assert name in known
            assert [dimension for dimension, _ in dimensions] == named
        emitted.add((namespace, name))
    assert emitted


@pytest.mark.parametrize("look", [watched, drawn])
def test_what_is_looked_at_is_there(stack: Resources, look: Any) -> None:
    for _, _, dimensions in look(stack):
        for dimension, name in dimensions:
            if dimension == "ApiName":
                assert name == stack["RestAPI"]["Properties"]["Body"]["info"]["title"]
            else:
                assert stack[name]["Type"] == KINDS[dimension]


def test_the_dimension_of_our_own_metrics_is_the_one_that_they_are_written_with() -> None:
    record = telemetry.metrics.makeRecord(
        telemetry.metrics.name, 20, "", 0, "metrics", (), None, extra={"fields": {"views_put": 1}}
    )
    written = json.loads(telemetry.JsonFormatter().format(record))
    [directive] = written["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"]) == ("vu-mi", [["function"]])


def test_every_alarm_tells_somebody_what_it_means_and_sleeps_without_data(
    stack: Resources,
) -> None:
    """But for the one that watches whether something runs at all."""
    for name, alarm in alarms(stack).items():
        assert alarm["AlarmActions"] == [{"Ref": "AlarmTopic"}]
        assert alarm["AlarmDescription"].strip().endswith(".")
        missing = "breaching" if name == "SweepMissingAlarm" else "notBreaching"
        assert alarm["TreatMissingData"] == missing
    assert stack["AlarmSubscription"] == {
        "Type": "AWS::SNS::Subscription",
        "Condition": "HasAlarmEmail",
        "Properties": {
            "TopicArn": {"Ref": "AlarmTopic"},
            "Protocol": "email",
            "Endpoint": {"Ref": "AlarmEmail"},
        },
    }


def test_every_function_queue_and_table_is_watched(prod: Resources) -> None:
    seen = {(name, what) for _, name, dimensions in watched(prod) for _, what in dimensions}
    # A sweep that is throttled is one that does not run.
    assert ("Invocations", "SweepTimers") in seen
    for function in {*FUNCTIONS.values()} - {"SweepTimers"}:
        assert {("Errors", function), ("Throttles", function)} <= seen
    assert ("Errors", "SweepTimers") in seen
    assert ("events_failed", "FireTimers") in seen
    assert ("events_overdue", "SweepTimers") in seen
    assert ("ApproximateNumberOfMessagesVisible", "ViewsDeadLetters") in seen
    assert ("ApproximateNumberOfMessagesVisible", "TimersDeadLetters") in seen
    assert ("ApproximateAgeOfOldestMessage", "ViewsQueue") in seen
    for function in ("FoldViews", "ArchiveEntries"):
        assert {("IteratorAge", function), ("malformed", function)} <= seen
    assert ("folds_postponed", "FoldViews") in seen
    assert {("ReadThrottleEvents", "Table"), ("WriteThrottleEvents", "Table")} <= seen


def test_an_alarm_fires_at_the_first_of_what_should_never_be(prod: Resources) -> None:
    for name in ("EventsFailedAlarm", "EventsOverdueAlarm", "TimersDeadLettersAlarm"):
        alarm = alarms(prod)[name]
        assert (alarm["Threshold"], alarm["EvaluationPeriods"]) == (0, 1)
        assert alarm["ComparisonOperator"] == "GreaterThanThreshold"


def test_folds_that_fail_in_three_hours_of_twelve_are_told(prod: Resources) -> None:
    """A fold that never succeeds is postponed about twice an hour; a throttle ends sooner."""
    alarm = alarms(prod)["FoldsPostponedAlarm"]
    assert (alarm["Statistic"], alarm["Threshold"]) == ("Sum", 0)
    assert alarm["ComparisonOperator"] == "GreaterThanThreshold"
    assert (alarm["Period"], alarm["DatapointsToAlarm"]) == (3_600, 3)
    assert alarm["Period"] * alarm["EvaluationPeriods"] < RETENTION


def test_five_minutes_without_a_sweep_are_told(prod: Resources) -> None:
    """A sweep looks as far ahead: until then no event is late for it."""
    alarm = alarms(prod)["SweepMissingAlarm"]
    assert alarm["Period"] * alarm["EvaluationPeriods"] == sweep.AHEAD_SECONDS
    assert (alarm["Statistic"], alarm["Threshold"]) == ("Sum", 1)
    assert alarm["ComparisonOperator"] == "LessThanThreshold"


def test_the_operators_guide_says_of_every_parameter_what_it_is(packages: dict[str, Path]) -> None:
    guide = (template.ROOT / "docs" / "OPERATIONS.md").read_text()
    rows = [line for line in guide.splitlines() if line.startswith("| `")]
    told = {name for line in rows for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert set(read(packages["prod"])["Parameters"]) <= told


def test_the_operators_guide_says_of_every_alarm_what_to_do(prod: Resources) -> None:
    guide = (template.ROOT / "docs" / "OPERATIONS.md").read_text()
    assert set(alarms(prod)) == set(re.findall(r"`(\w+Alarm)`", guide))


def test_no_widget_covers_another(prod: Resources) -> None:
    """The dashboard is 24 units wide."""
    taken = [
        (x, y)
        for widget in dashboard(prod)["widgets"]
        for x in range(widget["x"], widget["x"] + widget["width"])
        for y in range(widget["y"], widget["y"] + widget["height"])
    ]
    assert len(set(taken)) == len(taken)
    assert max(x for x, _ in taken) < 24


# ---- what holds it together


@pytest.mark.parametrize("stage", STAGES)
def test_every_name_is_that_of_something_in_the_stack(
    packages: dict[str, Path], stacks: dict[str, Resources], stage: str
) -> None:
    given = read(packages[stage])
    own = {*given["Resources"], *given["Parameters"]}
    assert set(template.names_in([given["Resources"], given["Outputs"]])) <= own
    made = stacks[stage]
    assert set(template.names_in(made)) <= {*made, *given["Parameters"]}


def test_prods_data_outlives_its_stack_and_no_other_stages_does(
    stacks: dict[str, Resources],
) -> None:
    for stage, stack in stacks.items():
        kept = {name for name, part in stack.items() if part.get("DeletionPolicy") == "Retain"}
        protected = stack["Table"]["Properties"].get("DeletionProtectionEnabled", False)
        expected = (
            ({"Table", "ViewsDeadLetters", "Archive"}, True) if stage == "prod" else (set(), False)
        )
        assert (kept, protected) == expected


RETENTION = Settings().retention_seconds


def test_a_view_or_its_marker_outlives_every_delivery_of_its_message(stack: Resources) -> None:
    """Law 4. A dead letter's age counts from when the message was first sent."""
    for name in ("ViewsQueue", "ViewsDeadLetters"):
        kept = stack[name]["Properties"]["MessageRetentionPeriod"]
        assert kept + redrive.DELIVERY_SECONDS <= RETENTION


def test_a_message_comes_again_until_its_view_is_old_and_an_outage_of_a_day_is_over(
    stack: Resources,
) -> None:
    queue = stack["ViewsQueue"]["Properties"]
    receives = queue["RedrivePolicy"]["maxReceiveCount"]
    assert queue["VisibilityTimeout"] * receives >= 86_400 + windows.OLD * Settings().grace_seconds
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {
        "Fn::GetAtt": ["ViewsDeadLetters", "Arn"]
    }


def test_a_message_does_not_come_again_while_its_batch_is_filled_and_handled(
    stack: Resources,
) -> None:
    """AWS advises six times the function's timeout."""
    window = stack["PutViewsPutViewsSqsEventSource"]["Properties"]["MaximumBatchingWindowInSeconds"]
    timeout = stack["PutViews"]["Properties"]["Timeout"]
    visible = stack["ViewsQueue"]["Properties"]["VisibilityTimeout"]
    assert visible >= 6 * timeout
    assert visible > window + timeout


def test_no_run_of_put_views_is_longer_than_the_grace_allows(stack: Resources) -> None:
    """A young view is stored before its window is folded, and no run sees it both young and old.

    The rest of the grace, 280 s, is for clocks that differ.
    """
    grace, timeout = Settings().grace_seconds, stack["PutViews"]["Properties"]["Timeout"]
    assert windows.YOUNG * grace + timeout <= grace - 240
    assert timeout < (windows.OLD - windows.YOUNG) * grace


def test_an_event_comes_again_only_when_it_can_be_claimed_again(stack: Resources) -> None:
    """60 s to run and 60 s of a claim, both within 90 s."""
    visible = stack["TimersQueue"]["Properties"]["VisibilityTimeout"]
    assert visible == 90
    assert visible > max(stack["FireTimers"]["Properties"]["Timeout"], claims.LEASE_SECONDS)


def test_a_group_does_not_come_again_while_it_is_distributed(stack: Resources) -> None:
    """AWS advises several times the function's time-out."""
    visible = stack["DistributionQueue"]["Properties"]["VisibilityTimeout"]
    assert visible >= 3 * stack["DistributeTimers"]["Properties"]["Timeout"]


@pytest.mark.parametrize("queue", ["TimersQueue", "DistributionQueue"])
def test_what_fails_ten_times_leaves_the_queues_of_events(stack: Resources, queue: str) -> None:
    assert stack[queue]["Properties"]["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["TimersDeadLetters", "Arn"]},
        "maxReceiveCount": 10,
    }


def test_every_queue_is_encrypted(stack: Resources) -> None:
    queues = of_type(stack, "AWS::SQS::Queue")
    assert len(queues) == 5
    assert all(queue["SqsManagedSseEnabled"] for queue in queues.values())


def test_the_operator_is_told_the_names_of_the_queues(packages: dict[str, Path]) -> None:
    """For `chalice deploy`, and for who looks at dead letters."""
    told = read(packages["prod"])["Outputs"]
    assert {*SETTINGS.values(), "ViewsDeadLettersUrl", "TimersDeadLettersUrl"} <= set(told)
    for queue in ("TimersQueue", "DistributionQueue"):
        assert told[f"{queue}Arn"]["Value"] == {"Fn::GetAtt": [queue, "Arn"]}
        assert told[f"{queue}Url"]["Value"] == {"Ref": queue}


def test_a_dead_letter_is_kept_no_shorter_than_a_message(stack: Resources) -> None:
    """Its age counts from when it was first sent; 14 days is the most that SQS keeps one.

    Source: the SQS developer guide, "Using dead-letter queues in Amazon SQS".
    """
    kept = [
        stack[queue]["Properties"]["MessageRetentionPeriod"]
        for queue in of_type(stack, "AWS::SQS::Queue")
    ]
    assert kept == [14 * 86_400] * 5


# ---- what reaches the fold and the archive

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
MARKER = events.removal(1, *keys.marker("a", 300))
BY_ANOTHER_SERVICE = {"type": "Service", "principalId": "replication.dynamodb.amazonaws.com"}


def accepts(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """As much of Lambda's event filtering as is used here: values, prefixes, and maps of them.

    Source: the Lambda developer guide, "Control which events Lambda sends to your function".
    """
    return all(
        name in event
        and (
            accepts(rule, event[name])
            if isinstance(rule, dict)
            else any(_holds(choice, event[name]) for choice in rule)
        )
        for name, rule in pattern.items()
    )


def _holds(choice: Any, value: Any) -> bool:
    if isinstance(choice, dict):
        assert set(choice) == {"prefix"}, f"{choice} is not known here"
        return isinstance(value, str) and value.startswith(choice["prefix"])
    return bool(choice == value)


@pytest.mark.parametrize(
    ("record", "reaches"),
    [
        (MARKER, True),
        (events.removal(1, *keys.marker("ü/#VIEW", 300)), True),
        ({**MARKER, "userIdentity": BY_ANOTHER_SERVICE}, True),
        ({name: part for name, part in MARKER.items() if name != "userIdentity"}, True),
        ({**MARKER, "eventName": "INSERT"}, False),
        ({**MARKER, "eventName": "MODIFY"}, False),
        (events.removal(1, *keys.view("a", ULID)), False),
        (events.removal(1, *keys.summary("a")), False),
        (events.removal(1, *keys.seen(ULID)), False),
        (events.removal(1, *keys.day("a", "2026-01-01")), False),
        (events.removal(1, "WALLET#a", "TX#1"), False),
    ],
)
def test_the_filter_lets_removals_of_markers_through_whoever_removed_them_and_no_other_record(
    stack: Resources,
    record: dict[str, Any],
    reaches: bool,  # noqa: FBT001
) -> None:
    """And keeps back nothing that asks for a fold."""
    mapping = stack["FoldViewsFoldViewsDynamodbEventSource"]["Properties"]
    patterns = [json.loads(entry["Pattern"]) for entry in mapping["FilterCriteria"]["Filters"]]
    assert any(accepts(pattern, record) for pattern in patterns) == reaches
    assert (marker_removal(record) is not None) == reaches


WALLETS = ULID, ULID[::-1]
TRANSFER = Entry(ULID, Posting("n", 1, WALLETS[1], WALLETS[0]), 1_767_225_600_000)
DEPOSIT = Entry(ULID, Posting("n", 1, WALLETS[0]), 1_767_225_600_000)
ENTRY = entry_record(TRANSFER, WALLETS[0], 1)


@pytest.mark.parametrize(
    ("record", "reaches"),
    [
        (ENTRY, True),
        (entry_record(TRANSFER, WALLETS[1], 1), True),
        (entry_record(DEPOSIT, WALLETS[0], 1), True),
        ({**ENTRY, "userIdentity": BY_ANOTHER_SERVICE}, True),
        ({name: part for name, part in ENTRY.items() if name != "userIdentity"}, True),
        ({**ENTRY, "eventName": "INSERT"}, False),
        ({**ENTRY, "eventName": "MODIFY"}, False),
        (events.removal(1, "USER#a", f"VIEW#{ULID}"), False),
        (events.removal(1, "WALLET#a", "WALLET"), False),
        (events.removal(1, "TIMER#a", "TIMER"), False),
    ],
)
def test_the_filter_lets_removed_entries_through_and_keeps_back_none_that_would_be_archived(
    stack: Resources,
    record: dict[str, Any],
    reaches: bool,  # noqa: FBT001
) -> None:
    mapping = stack["ArchiveEntriesArchiveEntriesDynamodbEventSource"]["Properties"]
    patterns = [json.loads(entry["Pattern"]) for entry in mapping["FilterCriteria"]["Filters"]]
    assert any(accepts(pattern, record) for pattern in patterns) == reaches
    assert (entry_removal(record) is not None) == reaches
