"""The names and policies of a stage, and that Chalice reads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from chalice.config import Config

from deploy import template
from deploy.completion import FUNCTIONS
from deploy.stage import QUEUES, SETTINGS, Folder, forget_names, write_names
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
