"""A stage of `chalice deploy`, which uses resources and options that Chalice can't create.

The names of the resources go into `.chalice/config.json` and into the policies of the functions.
The options are those of functions and event source mappings in `.chalice/resources.yaml`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from deploy import template
from deploy.template import ALL_FEATURES, choose

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient

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
FUNCTIONS = {
    "api_handler": "APIHandler",
    "put_views": "PutViews",
    "fold_views": "FoldViews",
    "authorize": "Authorize",
    "sweep_events": "SweepEvents",
    "distribute_events": "DistributeEvents",
    "deliver_events": "DeliverEvents",
    "archive_entries": "ArchiveEntries",
}
"""The logical name in the template of each function, by its name in Chalice."""
LEFT_OUT = frozenset({"Queue", "Stream", "StartingPosition", "MetricsConfig"})
"""Properties of an event source that Chalice sets, or that only the one stack's alarms need."""
POLL_SECONDS = 10.0
MAX_ATTEMPTS = 121
"""Tries of a call: 20 minutes."""
TRANSIENT = frozenset(
    {
        "ResourceConflictException",
        "ResourceInUseException",
        "ServiceException",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
"""Errors of Lambda that pass by themselves (its API reference)."""


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
        for function in functions.values():
            function.pop(POLICY, None)
        if own := {name: kept for name, kept in functions.items() if kept}:
            settings["lambda_functions"] = own
        variables = settings.pop("environment_variables", {})
        if own := {name: variables[name] for name in variables if name not in SETTINGS}:
            settings["environment_variables"] = own
    _write_json(folder.config, config)


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


class IncompleteError(Exception):
    """A stage can't be completed. The message says what to do first."""


def complete(
    stage: str,
    client: LambdaClient,
    folder: Folder,
    pause: Callable[[float], None] = time.sleep,
) -> dict[str, list[str]]:
    """Set the options that Chalice leaves out; return those of mappings, by function.

    It is safe to repeat. Raises `IncompleteError`.
    """
    path = folder.deployed(stage)
    if not path.exists():
        raise IncompleteError(f"stage {stage} is not deployed; run: chalice deploy --stage {stage}")
    deployed = {made["name"]: made for made in json.loads(path.read_text())["resources"]}
    changes = [change for function in FUNCTIONS for change in _changes(function, deployed, client)]
    completed = {}
    for name, resource in deployed.items():
        if "event_uuid" in resource:
            function = name.split("-")[0]
            options, mapping = mapping_options(function), resource["event_uuid"]
            changes.append(partial(client.update_event_source_mapping, UUID=mapping, **options))
            completed[function] = sorted(options)
    for change in changes:
        _call(change, pause)
    return completed


def _changes(
    function: str, deployed: Mapping[str, Any], client: LambdaClient
) -> Iterator[Callable[[], object]]:
    """Yield the changes of the log format, the log group, and the right to send to its own queue.

    Chalice creates the log group of the API's function under a name that Lambda does not use.
    """
    arn, properties = deployed[function]["lambda_arn"], _read_properties(function)
    group = deployed[f"{function}-log-group"]["log_group_name"]
    logging: Any = {**properties["LoggingConfig"], "LogGroup": group}
    yield partial(client.update_function_configuration, FunctionName=arn, LoggingConfig=logging)
    if loop := properties.get("RecursiveLoop"):
        yield partial(client.put_function_recursion_config, FunctionName=arn, RecursiveLoop=loop)


def _call(operation: Callable[[], object], pause: Callable[[float], None]) -> None:
    """Make a call to Lambda. Repeat it after an error that passes, such as another change."""
    for _ in range(MAX_ATTEMPTS - 1):
        try:
            operation()
        except ClientError as error:
            if error.response["Error"]["Code"] not in TRANSIENT:
                raise
        else:
            return
        pause(POLL_SECONDS)
    operation()


def mapping_options(function: str) -> dict[str, Any]:
    """Return the options of a function's event source mapping, by Lambda's names."""
    [source] = _read_properties(function)["Events"].values()
    return {name: value for name, value in source["Properties"].items() if name not in LEFT_OUT}


def _read_properties(function: str) -> dict[str, Any]:
    properties: dict[str, Any] = template.load()["Resources"][FUNCTIONS[function]]["Properties"]
    return properties


def _write_json(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n")
