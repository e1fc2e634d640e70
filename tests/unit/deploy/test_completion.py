"""The options that are set on the functions and mappings of a stage of `chalice deploy`."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, ParamValidationError
from botocore.validate import ParamValidator

from deploy import template
from deploy.completion import FUNCTIONS, Completion, IncompleteError, functions_of, mapping_options
from deploy.patience import MAX_ATTEMPTS, POLL_SECONDS, Patience
from deploy.stage import Folder

ARN = "arn:aws:lambda:us-east-1:123456789012:function:"
FUNCTION_ARNS = {
    "api_handler": f"{ARN}vu-mi-chalice-dev",
    "put_views": f"{ARN}vu-mi-chalice-dev-put_views",
    "fold_views": f"{ARN}vu-mi-chalice-dev-fold_views",
    "authorize": f"{ARN}vu-mi-chalice-dev-authorize",
    "sweep_timers": f"{ARN}vu-mi-chalice-dev-sweep_timers",
    "distribute_timers": f"{ARN}vu-mi-chalice-dev-distribute_timers",
    "fire_timers": f"{ARN}vu-mi-chalice-dev-fire_timers",
    "archive_entries": f"{ARN}vu-mi-chalice-dev-archive_entries",
}
KINDS = {
    "put_views": "sqs",
    "fold_views": "dynamodb",
    "distribute_timers": "sqs",
    "fire_timers": "sqs",
    "archive_entries": "dynamodb",
}
UUIDS = {name: f"{number:036}" for number, name in enumerate(KINDS, 1)}
LOGGING = {"LogFormat": "JSON", "ApplicationLogLevel": "INFO", "SystemLogLevel": "WARN"}
OPTIONS = {name: mapping_options(name) for name in KINDS}
"""The options in the template that Chalice does not support or may set differently."""

MODEL: Any = botocore.session.get_session().get_service_model("lambda")


@dataclass
class FakeLambda:
    """A Lambda client that refuses to change what is busy for a number of tries.

    Raises what botocore raises for a request that Lambda has no such form of.
    """

    busy: dict[str, int] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def update_function_configuration(self, FunctionName: str, **options: Any) -> None:  # noqa: N803
        self._update("UpdateFunctionConfiguration", "FunctionName", FunctionName, options)

    def put_function_recursion_config(self, FunctionName: str, **options: Any) -> None:  # noqa: N803
        self._update("PutFunctionRecursionConfig", "FunctionName", FunctionName, options)

    def update_event_source_mapping(self, UUID: str, **options: Any) -> None:  # noqa: N803
        self._update("UpdateEventSourceMapping", "UUID", UUID, options)

    def _update(self, operation: str, key: str, name: str, options: dict[str, Any]) -> None:
        if self.busy.get(name):
            self.busy[name] -= 1
            raise ClientError({"Error": {"Code": "ResourceConflictException"}}, operation)
        shape = MODEL.operation_model(operation).input_shape
        report = ParamValidator().validate({key: name, **options}, shape)
        if report.has_errors():
            raise ParamValidationError(report=report.generate_report())
        self.settings.setdefault(name, {}).update(options)
        self.busy[name] = 2


@dataclass
class Pauses:
    """Records pauses instead of sleeping."""

    lengths: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.lengths.append(seconds)


def deployed() -> list[dict[str, str]]:
    """Return Chalice 1.34's record of a stage, with the names that are read."""
    functions = [
        part
        for name, arn in FUNCTION_ARNS.items()
        for part in (
            {
                "name": f"{name}-log-group",
                "resource_type": "log_group",
                "log_group_name": f"/aws/lambda/vu-mi-chalice-dev-{name}",
            },
            {"name": f"{name}_role", "resource_type": "iam_role", "role_arn": "arn:aws:iam::1:r"},
            {"name": name, "resource_type": "lambda_function", "lambda_arn": arn},
        )
    ]
    mappings = [
        {
            "name": f"{name}-{kind}-event-source",
            "resource_type": f"{kind}_event",
            "event_uuid": UUIDS[name],
            "lambda_arn": FUNCTION_ARNS[name],
        }
        for name, kind in KINDS.items()
    ]
    rule = {
        "name": "sweep_timers-event",
        "resource_type": "cloudwatch_event",
        "rule_name": "vu-mi-chalice-dev-sweep_timers-event",
    }
    api = {"name": "rest_api", "resource_type": "rest_api", "rest_api_url": "https://a/dev/"}
    return [*functions, *mappings, rule, api]


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    folder = Folder(tmp_path)
    path = folder.deployed("dev")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"resources": deployed(), "schema_version": "2.0"}))
    return folder


def complete(client: FakeLambda, folder: Folder, pause: Pauses | None = None) -> dict[str, Any]:
    given: Any = client
    done: dict[str, Any] = Completion(given, folder, Patience(pause or Pauses())).run("dev")
    return done


def test_functions_and_mappings_get_the_options_that_chalice_does_not_support(
    folder: Folder,
) -> None:
    client = FakeLambda()
    complete(client, folder)
    logging: dict[str, dict[str, Any]] = {
        FUNCTION_ARNS[function]: {
            "LoggingConfig": {**LOGGING, "LogGroup": f"/aws/lambda/vu-mi-chalice-dev-{function}"}
        }
        for function in FUNCTION_ARNS
    }
    logging[FUNCTION_ARNS["fire_timers"]]["RecursiveLoop"] = "Allow"
    assert client.settings == logging | {UUIDS[name]: OPTIONS[name] for name in UUIDS}


@pytest.mark.parametrize("function", KINDS)
def test_the_options_are_those_of_the_event_source_without_those_set_by_chalice(
    function: str,
) -> None:
    """Only an alarm of the one stack reads the metrics of a mapping."""
    events = template.load()["Resources"][FUNCTIONS[function]]["Properties"]["Events"]
    [source] = events.values()
    given, options = set(source["Properties"]), OPTIONS[function]
    assert given - set(options) <= {"Queue", "Stream", "StartingPosition", "MetricsConfig"}


def test_a_change_that_lambda_refuses_meanwhile_is_tried_again(folder: Folder) -> None:
    """A function refuses three times, then a mapping five times, and one after its own change."""
    client = FakeLambda(busy={FUNCTION_ARNS["put_views"]: 3, UUIDS["fold_views"]: 5})
    pauses = Pauses()
    complete(client, folder, pauses)
    assert pauses.lengths == [POLL_SECONDS] * (3 + 2 + 5)
    assert set(client.settings) == {*FUNCTION_ARNS.values(), *UUIDS.values()}


@pytest.mark.parametrize("stuck", [FUNCTION_ARNS["api_handler"], UUIDS["put_views"]])
def test_a_change_that_lambda_always_refuses_is_an_error(folder: Folder, stuck: str) -> None:
    client, pauses = FakeLambda(busy={stuck: 1_000_000}), Pauses()
    with pytest.raises(ClientError, match="ResourceConflictException"):
        complete(client, folder, pauses)
    assert 1_000_000 - client.busy[stuck] == MAX_ATTEMPTS
    assert stuck not in client.settings


def test_a_stage_that_is_not_deployed_is_refused_with_the_command_to_run(tmp_path: Path) -> None:
    client = FakeLambda()
    with pytest.raises(IncompleteError) as refused:
        complete(client, Folder(tmp_path))
    assert str(refused.value) == "stage dev is not deployed; run: chalice deploy --stage dev"
    assert client.settings == {}


EVENTS = {"TimersQueueUrl": "https://queue"}
WALLETS = {"ArchiveBucket": "journals"}
OF_BADGES = ["api_handler", "put_views", "fold_views"]
OF_EVENTS = ["sweep_timers", "distribute_timers", "fire_timers"]


@pytest.mark.parametrize(
    ("outputs", "others"),
    [
        ({}, []),
        (EVENTS, ["authorize", *OF_EVENTS]),
        (WALLETS, ["authorize", "archive_entries"]),
        (EVENTS | WALLETS, ["authorize", *OF_EVENTS, "archive_entries"]),
    ],
)
def test_a_stack_has_the_functions_of_its_features(
    outputs: dict[str, str], others: list[str]
) -> None:
    assert functions_of(outputs) == OF_BADGES + others


def test_completing_again_changes_nothing(folder: Folder) -> None:
    client = FakeLambda()
    first = complete(client, folder)
    settings = json.dumps(client.settings, sort_keys=True)
    assert complete(client, folder) == first
    assert json.dumps(client.settings, sort_keys=True) == settings
