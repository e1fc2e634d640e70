"""The names, policies and options of a stage of `chalice deploy`, and that Chalice reads them."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError, ParamValidationError
from botocore.validate import ParamValidator
from chalice.config import Config

from deploy import template
from deploy.stage import (
    FUNCTIONS,
    MAX_ATTEMPTS,
    POLL_SECONDS,
    QUEUES,
    SETTINGS,
    Folder,
    IncompleteError,
    complete,
    forget_names,
    mapping_options,
    write_names,
)
from deploy.template import ALL_FEATURES, choose

ARN = "arn:aws-cn:{}:cn-north-1:123456789012:{}"
TABLE = ARN.format("dynamodb", "table/views-Table-1A2B")
CHINA = {
    **{output: output.lower() for output in SETTINGS.values()},
    "TableStreamArn": f"{TABLE}/stream/2026-01-01T00:00:00.000",
    **{f"{queue}Arn": ARN.format("sqs", f"views-{queue}-3C4D") for queue in QUEUES},
}
"""The outputs of a stack in China, whose partition is aws-cn."""
VIRGINIA = {
    name: value.replace("aws-cn", "aws").replace("cn-north-1", "us-east-1")
    for name, value in CHINA.items()
}
OWN = {
    "environment_variables": {"GRACE_SECONDS": "600"},
    "lambda_functions": {"deliver_events": {"environment_variables": {"WEBHOOK_SECRETS": "whsec"}}},
    "lambda_memory_size": 1024,
}
"""The settings of an operator for a stage."""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Copy `.chalice` of the repository without local stages, with settings of an operator."""
    given, copied = Folder(), Folder(tmp_path)
    (tmp_path / "policies").mkdir()
    for function in FUNCTIONS:
        shutil.copy(given.policy(function), copied.policy(function))
    shutil.copy(given.config, copied.config)
    forget_names(copied)
    own = config(copied)
    own["stages"]["dev"] |= OWN
    copied.config.write_text(json.dumps(own))
    return copied


def config(folder: Folder) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(folder.config.read_text())
    return read


def everything(folder: Folder) -> dict[str, str]:
    return {str(path): path.read_text() for path in folder.path.rglob("*.json")}


@pytest.mark.parametrize(
    ("given", "partition", "region"),
    [(VIRGINIA, "aws", "us-east-1"), (CHINA, "aws-cn", "cn-north-1")],
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_policy_of_a_stage_equals_that_of_the_stack_with_the_names_of_its_resources(
    folder: Folder, function: str, given: dict[str, str], partition: str, region: str
) -> None:
    """IAM does not support references. The ARN has the partition, such as aws-cn in China."""
    write_names("dev", given, folder)
    written = folder.policy(function, "dev").read_text()
    for word in ('"Fn::', '"Ref"', "${"):
        assert word not in written
    before = choose(json.loads(folder.policy(function).read_text()), ALL_FEATURES)
    named = json.loads(written)
    resources = {part["Sid"]: part.pop("Resource") for part in named["Statement"]}
    for statement in before["Statement"]:
        del statement["Resource"]
    assert named == before
    stream = given["TableStreamArn"]
    table = stream.split("/stream/")[0]
    log = f"arn:{partition}:logs:{region}:123456789012:log-group:/aws/lambda/vu-mi-chalice-dev-"
    expected = {
        "StoreViews": table,
        "FoldBadges": table,
        "ReceiveViews": given["ViewsQueueArn"],
        "ReadTheStream": stream,
        "FindTheStream": f"{table}/stream/*",
        "ArchiveEntries": f"arn:{partition}:s3:::archivebucket/journal/*",
        "WriteItsLog": f"{log}{function}:*",
    }
    assert resources.items() >= {sid: expected[sid] for sid in expected.keys() & resources}.items()


@pytest.mark.parametrize("function", FUNCTIONS)
def test_chalice_reads_the_names_and_each_function_has_its_own_settings(
    folder: Folder, function: str
) -> None:
    for_all = config(folder)["lambda_functions"][function]
    write_names("dev", VIRGINIA, folder)
    read = Config(chalice_stage="dev", function_name=function, config_from_disk=config(folder))
    assert folder.path / read.iam_policy_file == folder.policy(function, "dev")
    variables = {setting: VIRGINIA[output] for setting, output in SETTINGS.items()}
    variables |= {"GRACE_SECONDS": "600"}
    variables |= {"WEBHOOK_SECRETS": "whsec"} if function == "deliver_events" else {}
    assert variables.items() <= read.environment_variables.items()
    assert ("WEBHOOK_SECRETS" in read.environment_variables) is (function == "deliver_events")
    assert read.lambda_timeout == for_all["lambda_timeout"]
    assert read.autogen_policy is False


def test_other_stages_and_all_else_stay_as_they_are(folder: Folder) -> None:
    write_names("prod", CHINA, folder)
    before, others = config(folder), everything(folder)
    write_names("dev", VIRGINIA, folder)
    after = config(folder)
    changed = after["stages"].pop("dev")
    assert changed["lambda_memory_size"] == 1024
    assert changed != before["stages"].pop("dev")
    assert after == before
    del others[str(folder.config)]
    assert others.items() <= everything(folder).items()


def test_forgetting_the_names_restores_the_file(folder: Folder) -> None:
    own = config(folder)
    for stage in ("dev", "prod"):
        write_names(stage, VIRGINIA, folder)
    forget_names(folder)
    assert config(folder) == own


def test_a_stack_without_a_name_that_is_needed_changes_no_policy_to_half_of_one(
    folder: Folder,
) -> None:
    policy = folder.policy("put_views")
    policy.write_text(policy.read_text().replace('"ViewsQueue"', '"OtherQueue"'))
    with pytest.raises(template.UnknownNameError, match=r"OtherQueue\.Arn"):
        write_names("dev", VIRGINIA, folder)
    assert not folder.policy("put_views", "dev").exists()


# ---- options


GROUP = "/aws/lambda/vu-mi-chalice-dev-"
CONSUMERS = ("put_views", "fold_views", "distribute_events", "deliver_events", "archive_entries")
MODEL: Any = botocore.session.get_session().get_service_model("lambda")


@dataclass
class FakeLambda:
    """A Lambda client that refuses to change what is busy for a number of tries.

    Raises what botocore raises for a request that Lambda has no such form of.
    """

    busy: dict[str, int] = field(default_factory=dict)
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)

    def update_function_configuration(self, **request: Any) -> None:
        self._update("UpdateFunctionConfiguration", "FunctionName", request)

    def put_function_recursion_config(self, **request: Any) -> None:
        self._update("PutFunctionRecursionConfig", "FunctionName", request)

    def update_event_source_mapping(self, **request: Any) -> None:
        self._update("UpdateEventSourceMapping", "UUID", request)

    def _update(self, operation: str, key: str, request: dict[str, Any]) -> None:
        name = request[key]
        if self.busy.get(name):
            self.busy[name] -= 1
            raise ClientError({"Error": {"Code": "ResourceConflictException"}}, operation)
        report = ParamValidator().validate(request, MODEL.operation_model(operation).input_shape)
        if report.has_errors():
            raise ParamValidationError(report=report.generate_report())
        self.settings.setdefault(name, {}).update(request)
        self.busy[name] = 2


def uuid_of(function: str) -> str:
    """Return a UUID of 36 letters, as Lambda requires."""
    return f"{function:x>36}"


@pytest.fixture
def deployed(tmp_path: Path) -> Folder:
    """Return a folder with Chalice 1.34's record of a stage, with the names that are read."""
    parts = [
        part
        for name in FUNCTIONS
        for part in (
            {"name": f"{name}-log-group", "log_group_name": GROUP + name},
            {"name": name, "lambda_arn": name},
        )
    ]
    parts += [
        {"name": f"{name}-sqs-event-source", "event_uuid": uuid_of(name)} for name in CONSUMERS
    ]
    folder = Folder(tmp_path)
    folder.deployed("dev").parent.mkdir(parents=True)
    folder.deployed("dev").write_text(json.dumps({"resources": parts}))
    return folder


def run(client: Any, deployed: Folder, pauses: list[float] | None = None) -> None:
    complete("dev", client, deployed, ([] if pauses is None else pauses).append)


def test_functions_and_mappings_get_the_options_that_chalice_does_not_support(
    deployed: Folder,
) -> None:
    """To complete a stage again changes nothing."""
    client = FakeLambda()
    run(client, deployed)
    for function in FUNCTIONS:
        settings = client.settings[function]
        assert settings["LoggingConfig"]["LogFormat"] == "JSON"
        assert settings["LoggingConfig"]["LogGroup"] == GROUP + function
        assert settings.get("RecursiveLoop") == ("Allow" if function == "deliver_events" else None)
    for function in CONSUMERS:
        options = mapping_options(function)
        assert client.settings[uuid_of(function)] == {"UUID": uuid_of(function), **options}
        assert options["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
        [source] = template.load()["Resources"][FUNCTIONS[function]]["Properties"][
            "Events"
        ].values()
        left_out = {"Queue", "Stream", "StartingPosition", "MetricsConfig"}
        assert source["Properties"].keys() - left_out == options.keys()
    before = json.dumps(client.settings)
    run(client, deployed)
    assert json.dumps(client.settings) == before


def test_a_change_that_lambda_refuses_meanwhile_is_tried_again(deployed: Folder) -> None:
    """A function refuses three times, then a mapping five times, and one after its own change."""
    client, pauses = FakeLambda(busy={"put_views": 3, uuid_of("fold_views"): 5}), list[float]()
    run(client, deployed, pauses)
    assert pauses == [POLL_SECONDS] * (3 + 2 + 5)
    assert set(client.settings) == {*FUNCTIONS, *map(uuid_of, CONSUMERS)}


@pytest.mark.parametrize("stuck", ["api_handler", uuid_of("put_views")])
def test_a_change_that_lambda_always_refuses_is_an_error(deployed: Folder, stuck: str) -> None:
    client = FakeLambda(busy={stuck: 1_000_000})
    with pytest.raises(ClientError, match="ResourceConflictException"):
        run(client, deployed)
    assert 1_000_000 - client.busy[stuck] == MAX_ATTEMPTS
    assert stuck not in client.settings


def test_a_stage_that_is_not_deployed_is_refused_with_the_command_to_run(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="dev is not deployed; run: chalice deploy --stage"):
        run(FakeLambda(), Folder(tmp_path))
