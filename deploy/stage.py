"""A stage of `chalice deploy`, which uses resources that Chalice can't create.

Their names go into `.chalice/config.json` and into the policies of the functions.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deploy import template
from deploy.template import ALL_FEATURES, choose

SETTINGS = {
    "ARCHIVE_BUCKET": "ArchiveBucket",
    "DISTRIBUTION_QUEUE_ARN": "DistributionQueueArn",
    "DISTRIBUTION_QUEUE_URL": "DistributionQueueUrl",
    "TABLE_NAME": "TableName",
    "TABLE_STREAM_ARN": "TableStreamArn",
    "DELIVERY_QUEUE_ARN": "DeliveryQueueArn",
    "DELIVERY_QUEUE_URL": "DeliveryQueueUrl",
    "VIEWS_QUEUE_ARN": "ViewsQueueArn",
    "VIEWS_QUEUE_URL": "ViewsQueueUrl",
}
"""The stack output that each environment variable of the functions is set from."""

QUEUES = ("DistributionQueue", "DeliveryQueue", "ViewsQueue")
"""The queues that the policies refer to."""
POLICY = "iam_policy_file"
"""The setting of a function that names its policy (Chalice, "Configuration file")."""


@dataclass(frozen=True, slots=True)
class Folder:
    """The folder `.chalice`, which Chalice reads and writes."""

    path: Path = template.ROOT / ".chalice"

    @property
    def config(self) -> Path:
        return self.path / "config.json"

    def policy(self, function: str, stage: str = "") -> Path:
        return self.path / "policies" / stage / f"{function}.json"

    def deployed(self, stage: str) -> Path:
        return self.path / "deployed" / f"{stage}.json"


def write_names(stage: str, given: Mapping[str, str], folder: Folder) -> None:
    """Write the names of a stack's resources where `chalice deploy --stage` reads them."""
    config = json.loads(folder.config.read_text())
    functions = list(config["lambda_functions"])
    names = _resolve_names(f"{config['app_name']}-{stage}", given)
    for function in functions:
        policy = choose(json.loads(folder.policy(function).read_text()), ALL_FEATURES)
        _write_json(folder.policy(function, stage), template.resolve(policy, names))
    settings = config["stages"].setdefault(stage, {"api_gateway_stage": stage})
    settings.setdefault("environment_variables", {}).update(
        {setting: given[output] for setting, output in SETTINGS.items()}
    )
    own = settings.get("lambda_functions", {})
    settings["lambda_functions"] = {
        function: own.get(function, {}) | {POLICY: f"policies/{stage}/{function}.json"}
        for function in functions
    }
    _write_json(folder.config, config)


def forget_names(folder: Folder) -> None:
    """Remove the names that `write_names` wrote, because a package creates its own resources."""
    config = json.loads(folder.config.read_text())
    for settings in config["stages"].values():
        functions = settings.pop("lambda_functions", {})
        if own := {name: kept for name in functions if (kept := _without_policy(functions[name]))}:
            settings["lambda_functions"] = own
        variables = settings.pop("environment_variables", {})
        if own := {name: variables[name] for name in variables if name not in SETTINGS}:
            settings["environment_variables"] = own
    _write_json(folder.config, config)


def _without_policy(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a function that an operator wrote."""
    return {name: value for name, value in settings.items() if name != POLICY}


def _resolve_names(prefix: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the names that the policies refer to, taken from the ARN of the stream.

    Chalice names log groups APP-STAGE-FUNCTION, independently of the stack's name. The ARN has the
    form arn:PARTITION:dynamodb:REGION:ACCOUNT:table/NAME/stream/LABEL.
    """
    stream = given["TableStreamArn"]
    _, partition, _, region, account, _ = stream.split(":", 5)
    return {
        "Archive.Arn": f"arn:{partition}:s3:::{given['ArchiveBucket']}",
        "AWS::AccountId": account,
        "AWS::Partition": partition,
        "AWS::Region": region,
        "AWS::StackName": prefix,
        "Table.Arn": stream.split("/stream/")[0],
        "Table.StreamArn": stream,
        **{f"{queue}.Arn": given[f"{queue}Arn"] for queue in QUEUES},
    }


def _write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
