"""The restore: a stack goes on with its table as it was at a time.

DynamoDB restores into a new table with a new stream. The views and the watermarks in it are of one
moment, so every count in it is exact. The consumers are stopped meanwhile: views wait in the queue,
and the old stream belongs to the old table. The archive's consumer goes on: entries that were
removed before that time are in neither table, but only in the old stream.

TTL comes last, after the fold of all badges: restored views may be older than RETENTION_SECONDS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deploy import template
from deploy.completion import FUNCTIONS, PATIENCE_SECONDS

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_lambda import LambdaClient

GOES_ON = "archive_entries"
"""The consumer that is not stopped; the deployment of the restored stack ends its mapping."""
LOOK_SECONDS = 10.0
"""How often to look whether a table is restored, which can take hours."""


class NotRestoredError(Exception):
    """A restore can't go on; the message says why."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The table to go on with, as the template's parameters have it."""

    table: str
    stream: str

    def parameters(self) -> str:
        return f"RestoredTable={self.table} RestoredStream={self.stream}"


@dataclass(frozen=True, slots=True)
class Restore:
    """Stops the consumers of a stack but the archive's, restores its table, lets them run again."""

    tables: DynamoDBClient
    functions: LambdaClient
    stack: str
    pause: Callable[[float], None] = time.sleep

    def run(self, source: str, moment: datetime) -> Restored:
        """Restore a table as it was; the consumers are stopped then. Raises `NotRestoredError`."""
        self.enable_consumers(enabled=False)
        target = f"{self.stack}-{moment:%Y%m%dT%H%M%S}"
        self.tables.restore_table_to_point_in_time(
            SourceTableName=source, TargetTableName=target, RestoreDateTime=moment
        )
        self._wait_until_active(target)
        self._configure(target)
        stream = self.tables.describe_table(TableName=target)["Table"]["LatestStreamArn"]
        return Restored(target, stream)

    def resume(self, table: str) -> None:
        """Let the table expire its items and the consumers run."""
        described = self.tables.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        if described["TimeToLiveStatus"] == "DISABLED":
            self.tables.update_time_to_live(
                TableName=table, TimeToLiveSpecification=_properties()["TimeToLiveSpecification"]
            )
        self.enable_consumers(enabled=True)

    def enable_consumers(self, *, enabled: bool) -> None:
        """Let the event source mappings of the stack run, or all but the archive's rest.

        Waits until they do.
        """
        functions = [name for name in FUNCTIONS if enabled or name != GOES_ON]
        mappings = list(self._mappings(functions))
        for mapping in mappings:
            self.functions.update_event_source_mapping(UUID=mapping, Enabled=enabled)
        wanted = "Enabled" if enabled else "Disabled"
        for mapping in mappings:
            self._wait_for_mapping(mapping, wanted)

    def _mappings(self, functions: Iterable[str]) -> Iterator[str]:
        for function in functions:
            name = f"{self.stack}-{function}"
            listed = self.functions.list_event_source_mappings(FunctionName=name)
            for mapping in listed["EventSourceMappings"]:
                yield mapping["UUID"]

    def _wait_for_mapping(self, mapping: str, wanted: str) -> None:
        for _ in range(PATIENCE_SECONDS):
            if self.functions.get_event_source_mapping(UUID=mapping)["State"] == wanted:
                return
            self.pause(1.0)
        raise NotRestoredError(f"the event source mapping {mapping} does not become {wanted}")

    def _wait_until_active(self, table: str) -> None:
        while (state := self._state(table)) != "ACTIVE":
            if state not in {"CREATING", "UPDATING"}:
                raise NotRestoredError(f"the table {table} is {state}")
            self.pause(LOOK_SECONDS)

    def _state(self, table: str) -> str:
        return self.tables.describe_table(TableName=table)["Table"]["TableStatus"]

    def _configure(self, table: str) -> None:
        """Set what a restored table does not have: stream, backups, protection."""
        properties = _properties()
        stream: Any = {"StreamEnabled": True, **properties["StreamSpecification"]}
        self.tables.update_table(
            TableName=table,
            StreamSpecification=stream,
            DeletionProtectionEnabled=properties["DeletionProtectionEnabled"],
        )
        self._wait_until_active(table)
        self.tables.update_continuous_backups(
            TableName=table,
            PointInTimeRecoverySpecification=properties["PointInTimeRecoverySpecification"],
        )


def _properties() -> dict[str, Any]:
    """Return the properties of the table as the template has them."""
    properties: dict[str, Any] = template.load()["Resources"]["Table"]["Properties"]
    return properties
