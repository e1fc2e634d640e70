"""What `chalice deploy` leaves undone: options that Chalice has no words for.

They come from `.chalice/resources.yaml`, as those of the one stack do.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deploy import template
from deploy.stage import Folder

if TYPE_CHECKING:
    from types_boto3_lambda import LambdaClient

FUNCTIONS = {
    "api_handler": "APIHandler",
    "put_views": "PutViews",
    "fold_views": "FoldViews",
    "authorize": "Authorize",
    "sweep_timers": "SweepTimers",
    "distribute_timers": "DistributeTimers",
    "fire_timers": "FireTimers",
    "archive_entries": "ArchiveEntries",
}
"""The functions by Chalice's name, and as the template has them."""
CHALICES = frozenset({"Queue", "Stream", "StartingPosition"})
"""Properties of an event source that stand once Chalice has made its mapping."""
READY = frozenset({"Successful", "Enabled", "Disabled"})
"""States in which Lambda lets a function or a mapping be changed."""
PATIENCE_SECONDS = 120


class IncompleteError(Exception):
    """A stage can't be completed; the message says what to do first."""


@dataclass(frozen=True, slots=True)
class Completion:
    """Gives what Chalice deployed its remaining options; safe to repeat."""

    client: LambdaClient
    folder: Folder
    pause: Callable[[float], None] = time.sleep

    def run(self, stage: str) -> dict[str, list[str]]:
        """Complete a stage; returns the options set, by function. Raises `IncompleteError`."""
        deployed = self._deployed(stage)
        mappings = {
            name.split("-")[0]: resource["event_uuid"]
            for name, resource in deployed.items()
            if "event_uuid" in resource
        }
        for function in FUNCTIONS:
            self._set_logging(function, deployed)
        for function, mapping in mappings.items():
            self._set_options(mapping, mapping_options(function))
        return {function: sorted(mapping_options(function)) for function in mappings}

    def _deployed(self, stage: str) -> dict[str, Any]:
        """What Chalice says it has deployed, by its names."""
        path = self.folder.deployed(stage)
        if not path.exists():
            raise IncompleteError(
                f"stage {stage} is not deployed; run: chalice deploy --stage {stage}"
            )
        return {made["name"]: made for made in json.loads(path.read_text())["resources"]}

    def _set_logging(self, function: str, deployed: Mapping[str, Any]) -> None:
        """Also the group: Chalice makes one for the API's function under another name than its."""
        arn = deployed[function]["lambda_arn"]
        group = deployed[f"{function}-log-group"]["log_group_name"]
        self._wait(
            function,
            lambda: self.client.get_function_configuration(FunctionName=arn)["LastUpdateStatus"],
        )
        logging: Any = {**_properties(function)["LoggingConfig"], "LogGroup": group}
        self.client.update_function_configuration(FunctionName=arn, LoggingConfig=logging)

    def _set_options(self, mapping: str, options: Mapping[str, Any]) -> None:
        self._wait(mapping, lambda: self.client.get_event_source_mapping(UUID=mapping)["State"])
        self.client.update_event_source_mapping(UUID=mapping, **options)

    def _wait(self, name: str, state: Callable[[], str]) -> None:
        """Lambda refuses to change what it is just creating or changing."""
        for _ in range(PATIENCE_SECONDS):
            if state() in READY:
                return
            self.pause(1.0)
        raise IncompleteError(f"{name} is {state()} for {PATIENCE_SECONDS} s; try again later")


def mapping_options(function: str) -> dict[str, Any]:
    """What the event source mapping of a function must have, by Lambda's names."""
    [source] = _properties(function)["Events"].values()
    options = source["Properties"].items()
    return {option: value for option, value in options if option not in CHALICES}


def _properties(function: str) -> dict[str, Any]:
    properties: dict[str, Any] = template.load()["Resources"][FUNCTIONS[function]]["Properties"]
    return properties
