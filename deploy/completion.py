"""Options of functions and event source mappings that `chalice deploy` does not support.

They come from `.chalice/resources.yaml`, like those of the single stack.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from deploy import template
from deploy.stage import Folder

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient

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
SET_BY_CHALICE = frozenset({"Queue", "Stream", "StartingPosition"})
"""Properties of an event source that Chalice sets when it creates the mapping."""
FOR_ALARMS = frozenset({"MetricsConfig"})
"""Properties of an event source that only the alarms of the one stack need."""
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


class IncompleteError(Exception):
    """A stage can't be completed. The message says what to do first."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The step that sets the options Chalice leaves out. It is safe to repeat.

    Lambda refuses a change while it applies another one, so each change is tried again.
    """

    client: LambdaClient
    folder: Folder
    pause: Callable[[float], None] = time.sleep

    def run(self, stage: str) -> dict[str, list[str]]:
        """Complete a stage; return the options set, by function. Raises `IncompleteError`."""
        deployed = self._read_deployed(stage)
        mappings = {
            name.split("-")[0]: resource["event_uuid"]
            for name, resource in deployed.items()
            if "event_uuid" in resource
        }
        for function in FUNCTIONS:
            self._set_options(function, deployed)
        for function, mapping in mappings.items():
            update = partial(self.client.update_event_source_mapping, UUID=mapping)
            self._call(partial(update, **mapping_options(function)))
        return {function: sorted(mapping_options(function)) for function in mappings}

    def _call(self, operation: Callable[[], object]) -> None:
        """Make a call to Lambda. Repeat it after an error that passes by itself."""
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                operation()
            except ClientError as error:
                if error.response["Error"]["Code"] not in TRANSIENT:
                    raise
            else:
                return
            self.pause(POLL_SECONDS)
        operation()

    def _read_deployed(self, stage: str) -> dict[str, Any]:
        """Read the resources that Chalice has deployed, by name."""
        path = self.folder.deployed(stage)
        if not path.exists():
            raise IncompleteError(
                f"stage {stage} is not deployed; run: chalice deploy --stage {stage}"
            )
        return {made["name"]: made for made in json.loads(path.read_text())["resources"]}

    def _set_options(self, function: str, deployed: Mapping[str, Any]) -> None:
        """Set the log format, the log group, and whether a function may send to its own queue.

        Chalice creates the log group of the API's function under a name that Lambda does not use.
        """
        arn, properties = deployed[function]["lambda_arn"], _read_properties(function)
        group = deployed[f"{function}-log-group"]["log_group_name"]
        logging: Any = {**properties["LoggingConfig"], "LogGroup": group}
        update = partial(self.client.update_function_configuration, FunctionName=arn)
        self._call(partial(update, LoggingConfig=logging))
        if loop := properties.get("RecursiveLoop"):
            allow = partial(self.client.put_function_recursion_config, FunctionName=arn)
            self._call(partial(allow, RecursiveLoop=loop))


def mapping_options(function: str) -> dict[str, Any]:
    """Return the options of a function's event source mapping, by Lambda's names."""
    [source] = _read_properties(function)["Events"].values()
    left_out = SET_BY_CHALICE | FOR_ALARMS
    return {name: value for name, value in source["Properties"].items() if name not in left_out}


def _read_properties(function: str) -> dict[str, Any]:
    properties: dict[str, Any] = template.load()["Resources"][FUNCTIONS[function]]["Properties"]
    return properties
