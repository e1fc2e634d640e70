"""The restore of a stack's table to an earlier time.

DynamoDB restores into a new table with a new stream. Its views and watermarks are from the same
moment, so every count is exact. The consumers stop during the restore: views wait in the queue, and
the old stream belongs to the old table. The archive's consumer keeps running, because entries
removed before that time are only in the old stream.

TTL is turned on after the fold of all badges, because restored views may be older than
RETENTION_SECONDS.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from deploy import template
from deploy.completion import FUNCTIONS, MAX_WAIT_SECONDS

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_lambda import LambdaClient

KEEPS_RUNNING = "archive_entries"
"""The consumer that keeps running until the restored stack is deployed."""
POLL_SECONDS = 10.0
"""Seconds between two checks of a restore, which can take hours."""


class NotRestoredError(Exception):
    """A restore failed. The message says why."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The restored table and its stream."""

    table: str
    stream: str

    def parameters(self) -> str:
        """Return the parameters of the template that select this table."""
        return f"RestoredTable={self.table} RestoredStream={self.stream}"


@dataclass(frozen=True, slots=True)
class Restore:
    """The restore of one stack, which stops all consumers but the archive's meanwhile."""

    tables: DynamoDBClient
    functions: LambdaClient
    stack: str
    pause: Callable[[float], None] = time.sleep

    def run(self, source: str, restore_time: datetime) -> Restored:
        """Stop the consumers and restore a table to a time. Raises `NotRestoredError`."""
        self.enable_consumers(enabled=False)
        target = f"{self.stack}-{restore_time:%Y%m%dT%H%M%S}"
        self.tables.restore_table_to_point_in_time(
            SourceTableName=source, TargetTableName=target, RestoreDateTime=restore_time
        )
        self._wait_until_active(target)
        self._configure(target)
        stream = self.tables.describe_table(TableName=target)["Table"]["LatestStreamArn"]
        return Restored(target, stream)

    def resume(self, table: str) -> None:
        """Turn the TTL of the table on and start the consumers."""
        described = self.tables.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        if described["TimeToLiveStatus"] == "DISABLED":
            self.tables.update_time_to_live(
                TableName=table,
                TimeToLiveSpecification=_read_properties()["TimeToLiveSpecification"],
            )
        self.enable_consumers(enabled=True)

    def enable_consumers(self, *, enabled: bool) -> None:
        """Enable all event source mappings of the stack, or disable all but the archive's.

        Returns when Lambda has applied the change.
        """
        functions = [name for name in FUNCTIONS if enabled or name != KEEPS_RUNNING]
        mappings = list(self._list_mappings(functions))
        for mapping in mappings:
            self.functions.update_event_source_mapping(UUID=mapping, Enabled=enabled)
        wanted = "Enabled" if enabled else "Disabled"
        for mapping in mappings:
            self._wait_for_mapping(mapping, wanted)

    def _list_mappings(self, functions: Iterable[str]) -> Iterator[str]:
        for function in functions:
            name = f"{self.stack}-{function}"
            listed = self.functions.list_event_source_mappings(FunctionName=name)
            for mapping in listed["EventSourceMappings"]:
                yield mapping["UUID"]

    def _wait_for_mapping(self, mapping: str, wanted: str) -> None:
        for _ in range(MAX_WAIT_SECONDS):
            if self.functions.get_event_source_mapping(UUID=mapping)["State"] == wanted:
                return
            self.pause(1.0)
        raise NotRestoredError(
            f"the event source mapping {mapping} is not {wanted} after {MAX_WAIT_SECONDS} s;"
            " try again"
        )

    def _wait_until_active(self, table: str) -> None:
        while (state := self._read_state(table)) != "ACTIVE":
            if state not in {"CREATING", "UPDATING"}:
                raise NotRestoredError(
                    f"the restored table {table} is {state}, not ACTIVE; delete it and try again"
                )
            self.pause(POLL_SECONDS)

    def _read_state(self, table: str) -> str:
        return self.tables.describe_table(TableName=table)["Table"]["TableStatus"]

    def _configure(self, table: str) -> None:
        """Set the properties that a restored table lacks: stream, backups, protection."""
        properties = _read_properties()
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


def _read_properties() -> dict[str, Any]:
    """Return the properties of the table in the template."""
    properties: dict[str, Any] = template.load()["Resources"]["Table"]["Properties"]
    return properties
