"""The package: its bytes, and the resources that SAM makes from its template."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import re
import tarfile
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias
from zipfile import ZipFile

import pytest
from packaging.utils import canonicalize_name

from chalicelib import telemetry
from chalicelib.api import table_of
from chalicelib.aws import get_views
from chalicelib.aws.authorizer import CACHED_SECONDS
from chalicelib.aws.stream_records import entry_removal, marker_removal
from chalicelib.counting import keys, windows
from chalicelib.counting.count_at_once import AT_ONCE
from chalicelib.events import claims, sweep
from chalicelib.http.routing import Authentication, Route
from chalicelib.settings import Settings, SettingsError
from chalicelib.wallets import archive as archive_module
from chalicelib.wallets.wallet import Entry, Posting
from deploy import __main__ as deploying
from deploy import template
from deploy.completion import FUNCTIONS as OF_CHALICE
from deploy.conditions import ALL_FEATURES, Truths, choose, decide, evaluate
from deploy.stage import Folder
from simulation import aws_events as events
from simulation.aws_events import entry_record
from tests import checkers
from tests.end_to_end.copies import copy_sources, run_package
from vumi.operate.installations import dead_letters

STAGES = ["prod", "dev"]
FUNCTIONS = {**OF_CHALICE, "get_views": "GetViews"}
USER_ID = "6f1c2f0e-8d0a-4c57-9a3e-2f4c1f6f7d11"
MAX_BYTES = 1_000_000
"""Lambda unpacks the package at a cold start; boto3 alone would be about 15 MB."""

Resources: TypeAlias = dict[str, dict[str, Any]]


def read(folder: Path) -> dict[str, Any]:
    return copy.deepcopy(_load(folder / "sam.yaml"))


_load = cache(template.load)


def names(folder: Path) -> list[str]:
    with ZipFile(folder / "deployment.zip") as zipped:
        return zipped.namelist()


@pytest.fixture(scope="module")
def templates(packages: dict[str, Path]) -> dict[str, dict[str, Any]]:
    """Return the template of each stage as CloudFormation sees it, after SAM's translation.

    The package's place in S3 is the one that `aws cloudformation package` would write.
    """
    templates = {}
    for stage, folder in packages.items():
        given = read(folder)
        for resource in given["Resources"].values():
            if resource["Type"] == "AWS::Serverless::Function":
                assert resource["Properties"]["CodeUri"] == "./deployment.zip"
                resource["Properties"]["CodeUri"] = "s3://bucket/deployment.zip"
        templates[stage] = checkers.translate(given)
    return templates


@pytest.fixture(scope="module")
def stacks(templates: dict[str, dict[str, Any]]) -> dict[str, Resources]:
    """Return the resources of a stack of each stage with all features."""
    return {stage: with_features(given, ALL_FEATURES) for stage, given in templates.items()}


def with_features(given: dict[str, Any], truths: Truths) -> Resources:
    resources: Resources = decide(given, truths)["Resources"]
    return resources


@pytest.fixture(params=STAGES)
def stack(request: pytest.FixtureRequest, stacks: dict[str, Resources]) -> Resources:
    return stacks[request.param]


@pytest.fixture
def prod(stacks: dict[str, Resources]) -> Resources:
    return stacks["prod"]


def kinds_of(stack: Resources) -> list[str]:
    return [part["Type"] for part in stack.values()]


def of_type(stack: Resources, kind: str) -> dict[str, dict[str, Any]]:
    """Return the properties of the resources of a type."""
    return {name: part["Properties"] for name, part in stack.items() if part["Type"] == kind}


# ---- the package

FILES = {"sam.yaml", "deployment.zip", "deployment.cdx.json", "standalone.cdx.json"}


def test_a_package_from_another_machine_or_after_chalice_deploy_has_the_same_bytes(
    packages: dict[str, Path],
) -> None:
    """The package of dev is made elsewhere, so it has the names of no stack of there."""
    prod, dev = (packages[stage] for stage in STAGES)
    for name in FILES - {"sam.yaml"}:
        assert (dev / name).read_bytes() == (prod / name).read_bytes()
    given = read(prod)
    _name_stage(given, "dev")
    expected = template.dump(template.for_stage(given, "dev"))
    assert (dev / "sam.yaml").read_text() == expected


def _name_stage(given: dict[str, Any], stage: str) -> None:
    """Replace the stage in the tag that Chalice gives its functions."""
    for part in given["Resources"].values():
        tags = part.get("Properties", {}).get("Tags", {})
        if "aws-chalice" in tags:
            tags["aws-chalice"] = re.sub("stage=[a-z]+", f"stage={stage}", tags["aws-chalice"])


@pytest.mark.parametrize(
    ("replacement", "error"),
    [(f"--hash=sha256:{'0' * 64}", "DO NOT MATCH THE HASHES"), ("", "Hashes are required")],
    ids=["another hash", "no hash"],
)
def test_a_dependency_that_is_not_the_locked_one_is_not_packaged(
    tmp_path: Path, replacement: str, error: str
) -> None:
    copy_sources(tmp_path)
    lock = tmp_path / "requirements.txt"
    lock.write_text(re.sub(r"--hash=\S+", replacement, lock.read_text()).replace(" \\\n", " "))
    finished = run_package(tmp_path)
    assert finished.returncode == 1
    assert error in finished.stderr
    assert not (tmp_path / "made" / "deployment.zip").exists()


def test_a_dependency_without_a_wheel_is_not_built(tmp_path: Path) -> None:
    """A build would run code of packages that have no hash in the lock."""
    copy_sources(tmp_path)
    with tarfile.open(tmp_path / "sdist-1.0.tar.gz", "w:gz") as made:
        for name in ("PKG-INFO", "setup.py"):
            made.addfile(tarfile.TarInfo(f"sdist-1.0/{name}"), io.BytesIO())
    digest = hashlib.sha256((tmp_path / "sdist-1.0.tar.gz").read_bytes()).hexdigest()
    (tmp_path / "requirements.txt").write_text(f"sdist==1.0 --hash=sha256:{digest}\n")
    finished = run_package(tmp_path, {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)})
    assert finished.returncode == 1
    assert "Could not satisfy the requirement: sdist==1.0" in finished.stderr


def test_the_zip_is_small(packages: dict[str, Path]) -> None:
    size = (packages["prod"] / "deployment.zip").stat().st_size
    assert size < MAX_BYTES, f"deployment.zip has {size:,} of at most {MAX_BYTES:,} bytes"


def test_the_zip_has_the_app_the_runtime_of_chalice_and_the_requirements(
    packages: dict[str, Path],
) -> None:
    """python-ulid needs typing_extensions only before Python 3.12."""
    tops = {name.split("/")[0] for name in names(packages["prod"])}
    modules = {name for name in tops - {"__pycache__"} if not name.endswith(".dist-info")}
    assert modules == {"app.py", "chalice", "chalicelib", "ulid"}


def test_the_bill_of_the_package_has_what_is_in_the_zip_and_in_the_runtime(
    packages: dict[str, Path],
) -> None:
    """Chalice copies its own runtime into the zip, without its metadata."""
    bill = json.loads((packages["prod"] / "deployment.cdx.json").read_text())
    listed = {(part["name"], part.get("version")) for part in bill["components"]}
    zipped = metadata.distributions(path=[str(packages["prod"] / "deployment.zip")])
    packed = {(canonicalize_name(part.name), part.version) for part in zipped}
    runtime = {("boto3", None), ("botocore", None), ("python", "3.13")}
    assert listed == packed | runtime | {("chalice", metadata.version("chalice"))}
    digest = hashlib.sha256((packages["prod"] / "deployment.zip").read_bytes()).hexdigest()
    assert bill["metadata"]["component"]["hashes"] == [{"alg": "SHA-256", "content": digest}]


def test_the_zip_has_the_sources_as_they_are(packages: dict[str, Path]) -> None:
    files = [template.ROOT / "app.py", *(template.ROOT / "chalicelib").rglob("*.*")]
    sources = {
        path.relative_to(template.ROOT).as_posix(): path.read_bytes()
        for path in files
        if path.suffix != ".pyc"
    }
    with ZipFile(packages["prod"] / "deployment.zip") as zipped:
        ours = [name for name in zipped.namelist() if name.startswith(("app.py", "chalicelib/"))]
        given = {name: zipped.read(name) for name in ours if not name.endswith(".pyc")}
    assert given == sources


def test_the_templates_have_no_findings(packages: dict[str, Path], tmp_path: Path) -> None:
    """All of prod is checked at once with the resources that differ in dev, under other names."""
    prod, dev = (read(packages[stage]) for stage in STAGES)
    _name_stage(dev, "prod")
    given, of_dev = prod.pop("Resources"), dev.pop("Resources")
    assert (dev, of_dev.keys()) == (prod, given.keys())
    others = {name: part for name, part in of_dev.items() if part != given[name]}
    assert "Table" in others
    written = tmp_path / "sam.yaml"
    written.write_text(template.dump({**prod, "Resources": {**given, **_renamed(others)}}))
    assert checkers.lint(written) == []


def _renamed(resources: Resources) -> Resources:
    """Return resources under other names, also where they refer to each other."""
    text = json.dumps(resources)
    for name in resources:
        text = text.replace(f'"{name}"', f'"{name}OfDev"')
    renamed: Resources = json.loads(text)
    return renamed


def test_the_template_of_the_table_and_the_queues_alone_has_no_findings(tmp_path: Path) -> None:
    assert deploying.main(["resources", "--stage", "prod", "--out", str(tmp_path)]) == 0
    written = tmp_path / "resources.yaml"
    assert template.load(written) == template.extract_standalone(template.load())
    assert checkers.lint(written) == []


# ---- the functions

CONSUMERS = {
    "PutViews": "ViewsQueue",
    "DistributeTimers": "DistributionQueue",
    "FireTimers": "TimersQueue",
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
    assert (properties["Architectures"], properties["MemorySize"]) == (["arm64"], 512)
    assert properties["Timeout"] <= 60
    settings = properties["Environment"]["Variables"]
    assert ("WEBHOOK_SECRETS" in settings) == (function == "fire_timers")
    assert ("API_TOKEN_DIGESTS" in settings) == (function in {"api_handler", "authorize"})


def test_empty_parameters_leave_the_defaults_of_the_code(
    packages: dict[str, Path], stack: Resources
) -> None:
    """Settings that come from an empty parameter count as not set."""
    given = read(packages["prod"])["Parameters"]
    from_parameters = {
        setting: given[value["Ref"]]["Default"]
        for function in of_type(stack, "AWS::Lambda::Function").values()
        for setting, value in function["Environment"]["Variables"].items()
        if value.get("Ref") in given
    }
    assert {"RETRY_SECONDS", "EVENTS", "WALLETS", "IDS"} < from_parameters.keys()
    assert Settings.from_environment(from_parameters) == Settings()


def test_the_sweep_runs_every_minute(stack: Resources) -> None:
    """Only EventBridge may call this function, and only by this rule."""
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


def test_the_stream_has_the_removed_items(stack: Resources) -> None:
    """The records have the items as they were before their removal."""
    stream = stack["Table"]["Properties"]["StreamSpecification"]
    assert stream == {"StreamViewType": "OLD_IMAGE"}


def test_the_archive_is_private_and_encrypted(stack: Resources) -> None:
    """Objects older than a month move to a cheaper storage class."""
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


def test_lambda_does_not_stop_the_retries_that_a_function_sends_to_its_own_queue(
    stack: Resources,
) -> None:
    """Lambda counts runs that follow from each other, and stops them after about 16.

    Source: the Lambda developer guide, "Use Lambda recursive loop detection".
    """
    queues = {"TIMERS_QUEUE_URL", "DISTRIBUTION_QUEUE_URL", "VIEWS_QUEUE_URL"}
    functions = of_type(stack, "AWS::Lambda::Function")
    sends_to_itself = set()
    for mapping in of_type(stack, "AWS::Lambda::EventSourceMapping").values():
        name = mapping["FunctionName"]["Ref"]
        settings = functions[name]["Environment"]["Variables"]
        sent_to = set(template.names_in([settings.get(queue) for queue in queues]))
        if sent_to & set(template.names_in(mapping["EventSourceArn"])):
            sends_to_itself.add(name)
    assert sends_to_itself == {"FireTimers"}
    allowed = {name: part.get("RecursiveLoop") for name, part in functions.items()}
    assert {name: kind for name, kind in allowed.items() if kind} == {"FireTimers": "Allow"}


@pytest.mark.parametrize(
    ("value", "is_allowed"),
    [
        ("", True),
        ("a" * 64, True),
        (f"{'a' * 64}, {'b' * 64}", True),
        ("a" * 63, False),
        ("A" * 64, False),
        ("a" * 64 + "b" * 64, False),
        (f"{'a' * 64}={USER_ID}", False),
    ],
)
def test_malformed_digests_of_tokens_are_not_deployed(
    packages: dict[str, Path], value: str, *, is_allowed: bool
) -> None:
    pattern = read(packages["prod"])["Parameters"]["ApiTokenDigests"]["AllowedPattern"]
    assert (re.fullmatch(pattern, value) is not None) is is_allowed
    with nullcontext() if is_allowed else pytest.raises(SettingsError):
        Settings.from_environment({"API_TOKEN_DIGESTS": value})


def test_the_stack_does_not_show_secrets(packages: dict[str, Path]) -> None:
    given = read(packages["prod"])["Parameters"]
    hidden = {name for name, parameter in given.items() if parameter.get("NoEcho")}
    assert hidden == {"ApiTokenDigests", "WebhookSecrets"}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_each_function_has_its_own_role_with_only_its_policy(
    stack: Resources, function: str
) -> None:
    roles = of_type(stack, "AWS::IAM::Role")
    [name, _] = stack[FUNCTIONS[function]]["Properties"]["Role"]["Fn::GetAtt"]
    assert len(roles) == len(FUNCTIONS)
    [policy] = roles[name]["Policies"]
    written = json.loads(Folder().policy(function).read_text())
    assert policy["PolicyDocument"] == choose(written, ALL_FEATURES)
    [trust] = roles[name]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Principal"] == {"Service": "lambda.amazonaws.com"}
    assert set(roles[name]) == {"AssumeRolePolicyDocument", "Policies"}


def test_every_function_has_a_log_group_with_a_retention(stack: Resources) -> None:
    groups = [*of_type(stack, "AWS::Logs::LogGroup").values()]
    assert len(groups) == len(FUNCTIONS)
    for function in FUNCTIONS.values():
        name = {"Fn::Sub": f"/aws/lambda/${{{function}}}"}
        assert {"LogGroupName": name, "RetentionInDays": 30} in groups


# ---- the API

THROTTLE = {
    "ThrottlingRateLimit": {"Ref": "RequestsPerSecond"},
    "ThrottlingBurstLimit": {"Ref": "RequestsAtOnce"},
    "DetailedMetricsEnabled": False,
}


def test_the_api_is_throttled_and_logs_no_visitor(stack: Resources) -> None:
    """It has no access log, because that would contain addresses; an HTTP API has no other log."""
    [(_, properties)] = of_type(stack, "AWS::ApiGatewayV2::Stage").items()
    assert properties == {
        "ApiId": {"Ref": "HttpApi"},
        "StageName": "$default",
        "AutoDeploy": True,
        "DefaultRouteSettings": THROTTLE,
    }


def test_the_one_api_is_an_http_api_without_cors_of_its_own(stack: Resources) -> None:
    """The functions send the headers of CORS."""
    [api] = of_type(stack, "AWS::ApiGatewayV2::Api").values()
    assert api == {"Name": {"Ref": "AWS::StackName"}, "ProtocolType": "HTTP"}


def test_no_other_stage_or_deployment_answers_without_throttling(
    packages: dict[str, Path], stack: Resources
) -> None:
    """SAM adds a stage without throttling to each `AWS::Serverless::Api` without OpenApiVersion."""
    rest = ("AWS::ApiGateway::", "AWS::Serverless::Api", "AWS::Serverless::HttpApi")
    for folder in packages.values():
        assert not [kind for kind in kinds_of(read(folder)["Resources"]) if kind.startswith(rest)]
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
    is_guarded = route.authentication is not Authentication.NONE
    assert made["AuthorizationType"] == ("CUSTOM" if is_guarded else "NONE")
    assert made.get("AuthorizerId") == ({"Ref": "HttpApiAuthorizer"} if is_guarded else None)
    [stage] = of_type(stack, "AWS::ApiGatewayV2::Stage").values()
    own = stage.get("RouteSettings", {}).get(made["RouteKey"], {})
    assert {**stage["DefaultRouteSettings"], **own} == THROTTLE


@pytest.mark.parametrize("method", ["OPTIONS", "PURGE"])
@pytest.mark.parametrize(
    ("path", "function"),
    [
        ("/nowhere", "APIHandler"),
        ("/timers", "APIHandler"),
        ("/api/v1/wallets/x/deposit", "APIHandler"),
        ("/api/v1/views", "GetViews"),
    ],
)
def test_a_method_without_a_route_reaches_a_function_and_needs_no_token(
    stack: Resources, path: str, function: str, method: str
) -> None:
    made = selected(stack, method, path)
    assert (function_of(stack, made), made["AuthorizationType"]) == (function, "NONE")


def test_the_api_may_call_three_functions_alone(stack: Resources) -> None:
    permissions = [
        permission
        for permission in of_type(stack, "AWS::Lambda::Permission").values()
        if permission["Principal"] == "apigateway.amazonaws.com"
    ]
    assert sorted(
        template.names_in([permission["FunctionName"] for permission in permissions])
    ) == ["APIHandler", "Authorize", "GetViews"]
    for permission in permissions:
        assert set(template.names_in(permission["SourceArn"])) == {"HttpApi"}


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


def test_the_authorizer_is_asked_once_in_five_minutes_for_each_token(stack: Resources) -> None:
    [authorizer] = of_type(stack, "AWS::ApiGatewayV2::Authorizer").values()
    assert {*template.names_in(authorizer["AuthorizerUri"])} == {"Authorize"}
    assert authorizer["IdentitySource"] == ["$request.header.Authorization"]
    assert authorizer["AuthorizerResultTtlInSeconds"] == CACHED_SECONDS


# ---- alarms

EMITTED = {
    "AWS/SQS": {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"},
    "AWS/Lambda": {"Errors", "Invocations", "IteratorAge", "PolledEventCount"},
    "AWS/DynamoDB": {"ReadThrottleEvents", "TimeToLiveDeletedItemCount"},
    "AWS/ApiGateway": {"Count", "Latency", "5xx"},
}
"""Metrics that AWS emits, by their namespace, as far as alarms use them."""

SECONDS_OF_A_UNIT = {"ApproximateAgeOfOldestMessage": 1, "IteratorAge": 0.001, "Latency": 0.001}

Metric: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""Namespace, name, and the dimensions, each with the name that its value refers to."""


def alarms(stack: Resources) -> dict[str, dict[str, Any]]:
    return of_type(stack, "AWS::CloudWatch::Alarm")


def watched(stack: Resources) -> set[Metric]:
    """Return the metrics that alarms watch, alone or in an expression."""
    return {
        (
            metric["Namespace"],
            metric["MetricName"],
            tuple((part["Name"], _name_of(part["Value"])) for part in metric["Dimensions"]),
        )
        for alarm in alarms(stack).values()
        for metric in _metrics_of(alarm)
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
    for namespace, name, dimensions in watched(stack):
        assert name in {**EMITTED, telemetry.NAMESPACE: own}[namespace]
        assert {resource for _, resource in dimensions} <= stack.keys()


def test_every_alarm_has_an_action_and_ignores_missing_data(stack: Resources) -> None:
    """The exception is the alarm that watches whether the sweep runs at all."""
    for name, alarm in alarms(stack).items():
        assert alarm["AlarmActions"] == [{"Ref": "AlarmTopic"}]
        missing = "breaching" if name == "SweepMissingAlarm" else "notBreaching"
        assert alarm["TreatMissingData"] == missing
        assert "Unit" not in alarm, "CloudWatch finds no data of another unit than the metric's"


COVERED = {
    "APIHandler": ("5xx", "HttpApi"),
    "GetViews": ("5xx", "HttpApi"),
    "Authorize": ("5xx", "HttpApi"),
    "PutViews": ("ApproximateAgeOfOldestMessage", "ViewsQueue"),
    "FoldViews": ("IteratorAge", "FoldViews"),
    "SweepTimers": ("Errors", "SweepTimers"),
    "DistributeTimers": ("events_overdue", "SweepTimers"),
    "FireTimers": ("events_overdue", "SweepTimers"),
    "ArchiveEntries": ("IteratorAge", "ArchiveEntries"),
}
"""The metric of an alarm that shows errors, timeouts and throttles of each function."""


def test_every_function_queue_and_table_is_watched(prod: Resources) -> None:
    seen = {(name, what) for _, name, dimensions in watched(prod) for _, what in dimensions}
    assert set(COVERED) == set(FUNCTIONS.values())
    assert set(COVERED.values()) <= seen
    # A throttled or disabled function does not run.
    mapping = "ArchiveEntriesArchiveEntriesDynamodbEventSource"
    assert {("Invocations", "SweepTimers"), ("PolledEventCount", mapping)} <= seen
    assert ("events_failed", "FireTimers") in seen
    assert ("ApproximateNumberOfMessagesVisible", "ViewsDeadLetters") in seen
    assert ("ApproximateNumberOfMessagesVisible", "TimersDeadLetters") in seen
    assert ("malformed", "ArchiveEntries") in seen
    assert ("queue_refusals", "GetViews") in seen
    assert ("folds_postponed", "FoldViews") in seen
    # Throttled writes raise QueueAgeAlarm or FoldsPostponedAlarm.
    assert ("ReadThrottleEvents", "Table") in seen


@pytest.mark.parametrize("name", ["FoldsLateAlarm", "ArchiveMissingAlarm"])
def test_removals_that_no_consumer_sees_raise_an_alarm_in_time(prod: Resources, name: str) -> None:
    """The stream keeps them for 24 hours. Every metric is of one and the same period."""
    alarm = alarms(prod)[name]
    [_, *metrics] = alarm["Metrics"]
    [period] = {part["MetricStat"]["Period"] for part in metrics}
    assert alarm["EvaluationPeriods"] * period <= 6 * 3_600
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)


def _watched_by(part: dict[str, Any]) -> tuple[str, str]:
    metric = part["MetricStat"]["Metric"]
    [dimension] = metric["Dimensions"]
    return metric["MetricName"], _name_of(dimension["Value"])


@pytest.mark.parametrize(
    ("name", "values", "is_raised"),
    [
        ("FoldsLateAlarm", {"stored": 1, "age": None}, True),
        ("FoldsLateAlarm", {"stored": 1, "age": 0}, False),
        ("FoldsLateAlarm", {"stored": 1, "age": 900_000}, False),
        ("FoldsLateAlarm", {"stored": 1, "age": 900_001}, True),
        ("FoldsLateAlarm", {"stored": None, "age": 900_001}, True),
        ("FoldsLateAlarm", {"stored": None, "age": 900_000}, False),
        ("FoldsLateAlarm", {"stored": None, "age": None}, False),
        ("ArchiveMissingAlarm", {"removed": 1, "polled": None}, True),
        ("ArchiveMissingAlarm", {"removed": 1, "polled": 0}, True),
        ("ArchiveMissingAlarm", {"removed": 1, "polled": 1}, False),
        ("ArchiveMissingAlarm", {"removed": 0, "polled": None}, False),
        ("ArchiveMissingAlarm", {"removed": None, "polled": None}, False),
    ],
)
def test_the_alarm_on_an_idle_consumer_is_raised_only_if_it_has_work(
    prod: Resources, name: str, values: dict[str, int | None], *, is_raised: bool
) -> None:
    """None is a metric without data, which TTL and Lambda emit when nothing happened."""
    expression = alarms(prod)[name]["Metrics"][0]["Expression"]
    assert _calculate(expression, values) == is_raised


def _calculate(expression: str, values: Mapping[str, float | None]) -> float:
    """Evaluate an expression of CloudWatch's metric math, as far as it is used here."""
    functions = {
        "IF": lambda condition, then, otherwise: then if condition else otherwise,
        "FILL": lambda value, filler: filler if value is None else value,
    }
    python = re.sub(r"\b(AND|OR)\b", lambda found: found[0].lower(), expression)
    calculated: float = eval(python, functions, dict(values))  # noqa: S307  our own template
    return calculated


@pytest.mark.parametrize(
    ("requests_per_second", "requests_in_a_minute", "is_raised"),
    [(500, 23_999, False), (500, 24_000, True), (500, 90_000, True), (1, 48, True), (1, 47, False)],
)
def test_most_of_the_throttle_in_two_of_five_minutes_raises_an_alarm_before_a_429(
    prod: Resources, requests_per_second: int, requests_in_a_minute: int, *, is_raised: bool
) -> None:
    alarm = alarms(prod)["RequestsNearLimitAlarm"]
    [expression, requests] = alarm["Metrics"]
    assert expression.get("ReturnData", True)
    assert not requests["ReturnData"]
    assert _watched_by(requests) == ("Count", "HttpApi")
    assert (requests["MetricStat"]["Stat"], requests["MetricStat"]["Period"]) == ("Sum", 60)
    assert (alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]) == (5, 2)
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    limit = {"RequestsPerSecond": str(requests_per_second)}
    text = template.resolve(expression["Expression"], limit)
    share = _calculate(text, {"requests": requests_in_a_minute})
    assert (share >= alarm["Threshold"]) is is_raised


@pytest.mark.parametrize(
    ("drop_in", "values", "is_raised"),
    [
        ("", {"refused": 1}, True),
        ("", {"refused": None}, False),
        ("komarev", {"refused": 1, "of_drop_in": None}, True),
        ("komarev", {"refused": None, "of_drop_in": 1}, True),
        ("komarev", {"refused": None, "of_drop_in": None}, False),
    ],
)
def test_one_view_that_the_queue_refused_raises_an_alarm_also_of_another_counters_url(
    templates: dict[str, dict[str, Any]],
    drop_in: str,
    values: dict[str, int | None],
    *,
    is_raised: bool,
) -> None:
    """`api_handler` answers the URLs of other counters, `get_views` all others of badges."""
    stack = made_with(templates["prod"], DropIn=drop_in)["Resources"]
    alarm = alarms(stack)["QueueRefusalsAlarm"]
    [expression, *metrics] = alarm["Metrics"]
    functions = {"refused": "GetViews", "of_drop_in": "APIHandler"}
    assert {part["Id"]: _watched_by(part) for part in metrics} == {
        name: ("queue_refusals", functions[name]) for name in values
    }
    assert {part["MetricStat"]["Stat"] for part in metrics} == {"Sum"}
    assert not any(part["ReturnData"] for part in metrics)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("GreaterThanThreshold", 0)
    assert (_calculate(expression["Expression"], values) > alarm["Threshold"]) is is_raised


def test_an_alarm_on_a_metric_of_the_table_ends_without_data(prod: Resources) -> None:
    """Alarms on metrics in AWS/DynamoDB ignore missing data, whatever `TreatMissingData` says.

    Source: the CloudWatch user guide, "Configuring how CloudWatch alarms treat missing data".
    """
    of_table = {
        (name, part["Id"])
        for name, alarm in alarms(prod).items()
        for part in alarm.get("Metrics", [{"Id": "alone", "MetricStat": {"Metric": alarm}}])
        if part.get("MetricStat", {}).get("Metric", {}).get("Namespace") == "AWS/DynamoDB"
    }
    assert {name for name, _ in of_table} == {"ArchiveMissingAlarm", "TableReadsThrottledAlarm"}
    for name, metric in of_table:
        expression = alarms(prod)[name]["Metrics"][0]["Expression"]
        uses = re.findall(rf"(FILL\()?\b{metric}\b(, 0\))?", expression)
        assert uses == [("FILL(", ", 0)")]
        assert alarms(prod)[name]["DatapointsToAlarm"] < alarms(prod)[name]["EvaluationPeriods"]


@pytest.mark.parametrize(
    ("name", "seconds"),
    [
        ("ArchiveIteratorAgeAlarm", 900),
        ("QueueAgeAlarm", 120),
        ("BadgesLateAlarm", 2.5),
    ],
)
def test_an_alarm_on_a_time_has_the_unit_of_its_metric(
    prod: Resources, name: str, seconds: float
) -> None:
    alarm = alarms(prod)[name]
    assert alarm["Threshold"] * SECONDS_OF_A_UNIT[alarm["MetricName"]] == seconds


# ---- relations between resources


@pytest.mark.parametrize("stage", STAGES)
def test_every_referenced_name_is_in_the_stack(
    packages: dict[str, Path], stacks: dict[str, Resources], stage: str
) -> None:
    """SAM makes the event source mappings, whose names an alarm refers to."""
    given, made = read(packages[stage]), stacks[stage]
    mappings = of_type(made, "AWS::Lambda::EventSourceMapping")
    own = {*given["Resources"], *given["Parameters"], *mappings}
    assert set(template.names_in([given["Resources"], given["Outputs"]])) <= own
    assert set(template.names_in(made)) <= {*made, *given["Parameters"]}


def test_only_the_data_of_prod_outlives_its_stack(
    stacks: dict[str, Resources],
) -> None:
    for stage, stack in stacks.items():
        kept = {name: part["DeletionPolicy"] for name, part in stack.items() if _is_kept(part)}
        protected = stack["Table"]["Properties"].get("DeletionProtectionEnabled", False)
        others = dict.fromkeys(("ViewsDeadLetters", "Archive", "ArchivePolicy"), EXCEPT_ON_CREATE)
        expected = ({"Table": "Retain", **others}, True) if stage == "prod" else ({}, False)
        assert (kept, protected) == expected


EXCEPT_ON_CREATE = "RetainExceptOnCreate"


def _is_kept(part: dict[str, Any]) -> bool:
    return "DeletionPolicy" in part


RETENTION = Settings().retention_seconds


def test_a_view_or_its_marker_outlives_every_delivery_of_its_message(stack: Resources) -> None:
    """This is law 4. A dead letter's age counts from the first sending of its message."""
    for name in ("ViewsQueue", "ViewsDeadLetters"):
        kept = stack[name]["Properties"]["MessageRetentionPeriod"]
        assert kept + dead_letters.DELIVERY_SECONDS <= RETENTION


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


@pytest.mark.parametrize("function", ["PutViews", "DistributeTimers", "FireTimers"])
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
    visible = stack["TimersQueue"]["Properties"]["VisibilityTimeout"]
    assert visible > claims.LEASE_SECONDS


@pytest.mark.parametrize("queue", ["TimersQueue", "DistributionQueue"])
def test_a_message_of_an_event_that_fails_ten_times_becomes_a_dead_letter(
    stack: Resources, queue: str
) -> None:
    """The sweep sends the event again before its message is a dead letter, and until it is done."""
    properties = stack[queue]["Properties"]
    assert properties["RedrivePolicy"] == {
        "deadLetterTargetArn": {"Fn::GetAtt": ["TimersDeadLetters", "Arn"]},
        "maxReceiveCount": 10,
    }
    assert properties["VisibilityTimeout"] * 10 > sweep.RESCUE_SECONDS


# ---- the records for the fold and the archive

ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
MARKER = events.removal(1, *keys.marker("a", 300))
BY_ANOTHER_SERVICE = {"type": "Service", "principalId": "replication.dynamodb.amazonaws.com"}


def accepts(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool:
    """Evaluate a filter of Lambda events, as far as it is used here: values, prefixes and maps.

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


WALLETS = ULID, ULID[::-1]
TRANSFER = Entry(ULID, Posting("n", 1, WALLETS[1], WALLETS[0]), 1_767_225_600_000)
DEPOSIT = Entry(ULID, Posting("n", 1, WALLETS[0]), 1_767_225_600_000)
ENTRY = entry_record(TRANSFER, WALLETS[0], 1)
OF_BADGES = (
    keys.view("a", ULID),
    keys.summary("a"),
    keys.seen(ULID),
    keys.day("a", "2026-01-01"),
)
OTHERS = {
    "FoldViews": (*OF_BADGES, ("WALLET#a", "TX#1")),
    "ArchiveEntries": (*OF_BADGES, ("WALLET#a", "WALLET"), ("TIMER#a", "TIMER")),
}


@pytest.mark.parametrize(
    ("consumer", "removal_of", "own"),
    [
        (
            "FoldViews",
            marker_removal,
            [MARKER, events.removal(1, *keys.marker("ü/#VIEW", 300))],
        ),
        (
            "ArchiveEntries",
            entry_removal,
            [ENTRY, entry_record(TRANSFER, WALLETS[1], 1), entry_record(DEPOSIT, WALLETS[0], 1)],
        ),
    ],
)
def test_a_filter_passes_every_removal_that_its_consumer_reads_and_no_other_record(
    stack: Resources, consumer: str, removal_of: Callable[[Any], object], own: list[dict[str, Any]]
) -> None:
    """A service of AWS, or nobody, may be named as the one who removed the item."""
    mapping = stack[f"{consumer}{consumer}DynamodbEventSource"]["Properties"]
    patterns = [json.loads(entry["Pattern"]) for entry in mapping["FilterCriteria"]["Filters"]]
    first = own[0]
    unnamed = {name: part for name, part in first.items() if name != "userIdentity"}
    for record in (*own, {**first, "userIdentity": BY_ANOTHER_SERVICE}, unnamed):
        assert any(accepts(pattern, record) for pattern in patterns)
        assert removal_of(record) is not None
    others = [events.removal(1, *key) for key in OTHERS[consumer]]
    changes = [{**first, "eventName": name} for name in ("INSERT", "MODIFY")]
    for record in (*others, *changes):
        assert not any(accepts(pattern, record) for pattern in patterns)
        assert removal_of(record) is None


# ---- stacks without a feature, or with a domain

OFF = {"Events": "off", "Wallets": "off"}
DOMAIN = {
    "DomainName": "badges.example.com",
    "CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/1a2b-3c4d",
}
AT_A_ZONE = {**DOMAIN, "HostedZoneId": "Z1D633PJN98FT9"}


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
    for kind in ("AWS::IAM::Role", "AWS::Logs::LogGroup"):
        assert len(of_type(stack, kind)) == len(functions)
    assert set(of_type(stack, "AWS::SQS::Queue")) == {"ViewsQueue", "ViewsDeadLetters"}
    mappings = of_type(stack, "AWS::Lambda::EventSourceMapping").values()
    assert {mapping["FunctionName"]["Ref"] for mapping in mappings} == {"PutViews", "FoldViews"}
    permissions = of_type(stack, "AWS::Lambda::Permission").values()
    assert {one["FunctionName"]["Ref"] for one in permissions} == {"APIHandler", "GetViews"}
    assert not [kind for kind in kinds_of(stack) if re.search("Events::|S3::|Authorizer", kind)]
    assert not [key for key in routes(stack) if re.search("event|wallet|timer|echo", key.lower())]
    assert badges_alone["Outputs"].keys().isdisjoint({"TimersQueueUrl", "ArchiveBucket"})
    for function in ("APIHandler", "PutViews", "FoldViews"):
        settings = stack[function]["Properties"]["Environment"]["Variables"]
        assert settings["EVENTS"] == {"Ref": "Events"}
        assert "TIMERS_QUEUE_URL" not in settings


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
    referenced = set(template.names_in([stack, made["Outputs"]]))
    assert referenced <= {*stack, *given["Parameters"]}
    for _, _, dimensions in watched(stack):
        assert {name for _, name in dimensions} <= set(stack)
    assert ("Authorize" in stack) == ("HttpApiAuthorizer" in stack) == (len(off) == 1)
    assert ("SweepTimers" in stack) == ("Events" not in off)
    settings = stack["APIHandler"]["Properties"]["Environment"]["Variables"]
    assert ("TIMERS_QUEUE_URL" in settings) == ("Events" not in off)
    assert ("ArchiveEntries" in stack) == ("Wallets" not in off)
