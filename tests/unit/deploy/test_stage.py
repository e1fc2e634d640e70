"""The names and policies of a stage, and that Chalice reads them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from chalice.config import Config

from deploy import template
from deploy.conditions import ALL_FEATURES, choose
from deploy.stage import Folder, forget_names, write_names

FUNCTIONS = (
    "api_handler",
    "put_views",
    "fold_views",
    "authorize",
    "sweep_timers",
    "distribute_timers",
    "fire_timers",
    "archive_entries",
)
SECRETS = {"WEBHOOK_SECRETS": "whsec_secret"}
SQS = "https://sqs.cn-north-1.amazonaws.com.cn/123456789012/views-"
SQS_ARN = "arn:aws-cn:sqs:cn-north-1:123456789012:views-"
CHINA = {
    "TableName": "views-Table-1A2B",
    "TableStreamArn": "arn:aws-cn:dynamodb:cn-north-1:123456789012:table/views-Table-1A2B/stream/"
    "2026-01-01T00:00:00.000",
    "ArchiveBucket": "views-archive-1e2f",
    "ViewsQueueArn": f"{SQS_ARN}ViewsQueue-3C4D",
    "ViewsQueueUrl": f"{SQS}ViewsQueue-3C4D",
    "ViewsDeadLettersUrl": f"{SQS}Dead-5E6F",
    "TimersQueueArn": f"{SQS_ARN}TimersQueue-7A8B",
    "TimersQueueUrl": f"{SQS}TimersQueue-7A8B",
    "DistributionQueueArn": f"{SQS_ARN}DistributionQueue-9C0D",
    "DistributionQueueUrl": f"{SQS}DistributionQueue-9C0D",
}
"""The outputs of a stack in China, whose partition is aws-cn."""
VIRGINIA = {
    name: value.replace("amazonaws.com.cn", "amazonaws.com")
    .replace("arn:aws-cn", "arn:aws")
    .replace("cn-north-1", "us-east-1")
    for name, value in CHINA.items()
}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """Copy `.chalice` of the repository without local stages."""
    given, copied = Folder(), Folder(tmp_path)
    (tmp_path / "policies").mkdir()
    for function in FUNCTIONS:
        shutil.copy(given.policy(function), copied.policy(function))
    shutil.copy(given.config, copied.config)
    forget_names(copied)
    return copied


def config(folder: Folder) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(folder.config.read_text())
    return read


def resources(folder: Folder, function: str, stage: str = "dev") -> dict[str, object]:
    """Return the resources of a policy by the ids of its statements."""
    policy = json.loads(folder.policy(function, stage).read_text())
    return {statement["Sid"]: statement["Resource"] for statement in policy["Statement"]}


def everything(folder: Folder) -> dict[str, str]:
    return {str(path): path.read_text() for path in folder.path.rglob("*.json")}


def test_the_settings_of_a_stage_are_the_names_of_its_stack(folder: Folder) -> None:
    write_names("dev", VIRGINIA, folder)
    assert config(folder)["stages"]["dev"] == {
        "api_gateway_stage": "dev",
        "environment_variables": {
            "ARCHIVE_BUCKET": "views-archive-1e2f",
            "DISTRIBUTION_QUEUE_ARN": VIRGINIA["DistributionQueueArn"],
            "DISTRIBUTION_QUEUE_URL": VIRGINIA["DistributionQueueUrl"],
            "TABLE_NAME": "views-Table-1A2B",
            "TABLE_STREAM_ARN": VIRGINIA["TableStreamArn"],
            "TIMERS_QUEUE_ARN": VIRGINIA["TimersQueueArn"],
            "TIMERS_QUEUE_URL": VIRGINIA["TimersQueueUrl"],
            "VIEWS_QUEUE_ARN": "arn:aws:sqs:us-east-1:123456789012:views-ViewsQueue-3C4D",
            "VIEWS_QUEUE_URL": VIRGINIA["ViewsQueueUrl"],
        },
        "lambda_functions": {
            function: {"iam_policy_file": f"policies/dev/{function}.json"} for function in FUNCTIONS
        },
    }


@pytest.mark.parametrize(
    ("given", "partition", "region"),
    [(VIRGINIA, "aws", "us-east-1"), (CHINA, "aws-cn", "cn-north-1")],
)
def test_a_policy_names_the_table_the_stream_the_queues_and_the_functions_own_log(
    folder: Folder, given: dict[str, str], partition: str, region: str
) -> None:
    """The ARN has the partition, such as aws-cn in China."""
    write_names("dev", given, folder)
    table = f"arn:{partition}:dynamodb:{region}:123456789012:table/views-Table-1A2B"
    queue = f"arn:{partition}:sqs:{region}:123456789012:views-ViewsQueue-3C4D"
    timers = f"arn:{partition}:sqs:{region}:123456789012:views-TimersQueue-7A8B"
    log = f"arn:{partition}:logs:{region}:123456789012:log-group:/aws/lambda/vu-mi-chalice-dev-"
    assert resources(folder, "put_views") == {
        "StoreViews": table,
        "CountViewsAtOnce": table,
        "FoldOverdueBadges": table,
        "ReceiveViews": queue,
        "EnqueueEventsOfMilestones": timers,
        "WriteItsLog": f"{log}put_views:*",
    }
    assert resources(folder, "fold_views") == {
        "FoldBadges": table,
        "ReadTheStream": f"{table}/stream/2026-01-01T00:00:00.000",
        "EnqueueEventsOfMilestones": timers,
        "FindTheStream": f"{table}/stream/*",
        "WriteItsLog": f"{log}fold_views:*",
    }
    archived = f"arn:{partition}:s3:::views-archive-1e2f/journal/*"
    assert resources(folder, "archive_entries")["ArchiveEntries"] == archived


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_policy_of_a_stage_equals_that_of_the_stack_without_references(
    folder: Folder, function: str
) -> None:
    """IAM does not support `Fn::GetAtt`."""
    write_names("dev", VIRGINIA, folder)
    written = folder.policy(function, "dev").read_text()
    for word in ('"Fn::', '"Ref"', "${"):
        assert word not in written
    given = choose(json.loads(folder.policy(function).read_text()), ALL_FEATURES)
    named = json.loads(written)
    for statement in (*given["Statement"], *named["Statement"]):
        del statement["Resource"]
    assert named == given


def test_other_stages_and_all_else_stay_as_they_are(folder: Folder) -> None:
    write_names("prod", CHINA, folder)
    before, policies = config(folder), everything(folder)
    write_names("dev", VIRGINIA, folder)
    after = config(folder)
    assert after["stages"].pop("dev") != before["stages"].pop("dev")
    assert after == before
    del policies[str(folder.config)]
    assert policies.items() <= everything(folder).items()


def test_other_settings_of_an_operator_for_a_stage_stay(folder: Folder) -> None:
    own = config(folder)
    own["stages"]["dev"] |= {
        "environment_variables": {"GRACE_SECONDS": "600", "TABLE_NAME": "old"},
        "lambda_functions": {"fire_timers": {"environment_variables": SECRETS}},
        "lambda_memory_size": 1024,
    }
    folder.config.write_text(json.dumps(own))
    write_names("dev", VIRGINIA, folder)
    stage = config(folder)["stages"]["dev"]
    assert stage["lambda_memory_size"] == 1024
    assert stage["environment_variables"]["GRACE_SECONDS"] == "600"
    assert stage["environment_variables"]["TABLE_NAME"] == "views-Table-1A2B"
    assert stage["lambda_functions"]["fire_timers"] == {
        "environment_variables": SECRETS,
        "iam_policy_file": "policies/dev/fire_timers.json",
    }


def test_forgetting_the_names_restores_the_file(folder: Folder) -> None:
    own = config(folder)
    own["stages"]["dev"] |= {
        "environment_variables": {"GRACE_SECONDS": "600"},
        "lambda_functions": {"fire_timers": {"environment_variables": SECRETS}},
    }
    folder.config.write_text(json.dumps(own))
    for stage in ("dev", "prod"):
        write_names(stage, VIRGINIA, folder)
    forget_names(folder)
    assert config(folder) == own


@pytest.mark.parametrize("function", FUNCTIONS)
def test_chalice_reads_the_names_and_the_settings_of_a_function(
    folder: Folder, function: str
) -> None:
    """The settings of a function in a stage override those in all stages."""
    for_all = config(folder)["lambda_functions"][function]
    write_names("dev", VIRGINIA, folder)
    read = Config(chalice_stage="dev", function_name=function, config_from_disk=config(folder))
    assert folder.path / read.iam_policy_file == folder.policy(function, "dev")
    assert read.environment_variables["TABLE_NAME"] == "views-Table-1A2B"
    assert all(type(value) is str for value in read.environment_variables.values())
    assert read.lambda_timeout == for_all["lambda_timeout"]
    assert read.autogen_policy is False


def test_a_stack_without_a_name_that_is_needed_changes_no_policy_to_half_of_one(
    folder: Folder,
) -> None:
    policy = folder.policy("put_views")
    policy.write_text(policy.read_text().replace('"ViewsQueue"', '"OtherQueue"'))
    with pytest.raises(template.UnknownNameError, match=r"OtherQueue\.Arn"):
        write_names("dev", VIRGINIA, folder)
    assert not folder.policy("put_views", "dev").exists()


def test_a_setting_of_one_function_is_not_in_the_environment_of_another(folder: Folder) -> None:
    own = config(folder)
    functions = {"fire_timers": {"environment_variables": SECRETS}}
    own["stages"]["dev"]["lambda_functions"] = functions
    folder.config.write_text(json.dumps(own))
    write_names("dev", VIRGINIA, folder)
    for function in FUNCTIONS:
        read = Config(chalice_stage="dev", function_name=function, config_from_disk=config(folder))
        has_secrets = SECRETS.items() <= read.environment_variables.items()
        assert has_secrets is (function == "fire_timers")
        assert read.environment_variables["TABLE_NAME"] == "views-Table-1A2B"
