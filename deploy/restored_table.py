"""The table that a restore makes: its restore, its adoption by a later run, its properties."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from deploy.patience import POLL_SECONDS, Patience
from vumi.operate.installations.restorable import NoBackupsError, RestorableTimes

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_dynamodb.type_defs import TableDescriptionTypeDef

NEW_TABLE = frozenset({"ResourceNotFoundException", "TableNotFoundException"})
NO_BACKUPS_YET = frozenset({"ContinuousBackupsUnavailableException"})
SAME_TIME = timedelta(seconds=1)
"""DynamoDB restores to a whole second."""


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
class RestoredTables:
    """The tables of an account, as a restore makes them; `properties` are those in the template."""

    client: DynamoDBClient
    properties: Mapping[str, Any]
    patience: Patience

    def check_backups(self, source: str, restore_time: datetime) -> None:
        """Check that a table has backups up to a time. Raises `NotRestoredError` if not.

        DynamoDB itself refuses a time before the first backup.
        """
        try:
            times = self.patience.call(lambda: RestorableTimes.find(self.client, source))
        except NoBackupsError as error:
            raise NotRestoredError(str(error)) from None
        if restore_time > times.last:
            raise NotRestoredError(
                f"the table {source} can't be restored to {restore_time}: its backups reach from"
                f" {times.first} to {times.last}; choose a time in between, or wait for some"
                " minutes"
            )

    def restore(self, source: str, target: str, restore_time: datetime) -> None:
        """Restore a table, or adopt a target that an earlier run restored to the same time.

        Raises `NotRestoredError` if a table of this name has another origin.
        """
        is_new = self._find(target) is None and self._begin(source, target, restore_time)
        table = self._wait_until_active(target)
        if not is_new:
            self._check_origin(table, source, restore_time)

    def _begin(self, source: str, target: str, restore_time: datetime) -> bool:
        """Begin a restore; return False if the table is there, after an answer that was lost."""
        try:
            self.patience.call(
                lambda: self.client.restore_table_to_point_in_time(
                    SourceTableName=source, TargetTableName=target, RestoreDateTime=restore_time
                )
            )
        except ClientError as error:
            if error.response["Error"]["Code"] == "TableAlreadyExistsException":
                return False
            raise
        return True

    def _check_origin(
        self, table: TableDescriptionTypeDef, source: str, restore_time: datetime
    ) -> None:
        """Raise `NotRestoredError` unless a table is the source, restored to this time."""
        arn = self._describe(source)["TableArn"]
        origin: Any = table.get("RestoreSummary", {})
        restored_to = origin.get("RestoreDateTime")
        is_same = restored_to and abs(restored_to - restore_time) < SAME_TIME
        if origin.get("SourceTableArn") != arn or not is_same:
            raise NotRestoredError(
                f"there is a table {table['TableName']}, but it is not {source} restored to"
                f" {restore_time}; delete that table, or choose another time"
            )

    def configure(self, table: str) -> Restored:
        """Give a restored table the properties of the template that it lacks, except its TTL.

        It is safe to repeat. Raises `NotRestoredError` if the table does not become active.
        """
        described = self._wait_until_active(table)
        if changes := self._missing_properties(described):
            self.patience.call(lambda: self.client.update_table(TableName=table, **changes))
            described = self._wait_until_active(table)
        backups = self.properties["PointInTimeRecoverySpecification"]
        self.patience.call(
            lambda: self.client.update_continuous_backups(
                TableName=table, PointInTimeRecoverySpecification=backups
            ),
            also=NEW_TABLE | NO_BACKUPS_YET,
        )
        return Restored(table, described["LatestStreamArn"])

    def _missing_properties(self, described: TableDescriptionTypeDef) -> dict[str, Any]:
        """Return the stream and the protection, unless the table has them."""
        missing: dict[str, Any] = {}
        if not described.get("StreamSpecification", {}).get("StreamEnabled"):
            stream = self.properties["StreamSpecification"]
            missing["StreamSpecification"] = {"StreamEnabled": True, **stream}
        is_protected = self.properties.get("DeletionProtectionEnabled", False)
        if described.get("DeletionProtectionEnabled", False) != is_protected:
            missing["DeletionProtectionEnabled"] = is_protected
        return missing

    def copy_tags(self, source: str, target: str) -> None:
        """Copy the tags that an operator gave, because a restore leaves them out."""
        source_arn, target_arn = (self._describe(name)["TableArn"] for name in (source, target))
        pages = self.client.get_paginator("list_tags_of_resource").paginate(ResourceArn=source_arn)
        tags = [tag for page in pages for tag in page["Tags"] if not tag["Key"].startswith("aws:")]
        if tags:
            self.patience.call(
                lambda: self.client.tag_resource(ResourceArn=target_arn, Tags=tags), also=NEW_TABLE
            )

    def switch_ttl_on(self, table: str) -> None:
        """Switch the TTL of a table on. DynamoDB refuses to switch it on twice."""
        described = self.client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        if described["TimeToLiveStatus"] == "DISABLED":
            self.patience.call(
                lambda: self.client.update_time_to_live(
                    TableName=table,
                    TimeToLiveSpecification=self.properties["TimeToLiveSpecification"],
                )
            )

    def _wait_until_active(self, table: str) -> TableDescriptionTypeDef:
        """Wait for a table. It may take some minutes until DynamoDB finds a new one."""
        while (described := self._describe(table))["TableStatus"] != "ACTIVE":
            if (status := described["TableStatus"]) not in {"CREATING", "UPDATING"}:
                raise NotRestoredError(
                    f"the restored table {table} is {status}, not ACTIVE; delete it and try again"
                )
            self.patience.pause(POLL_SECONDS)
        return described

    def _find(self, table: str) -> TableDescriptionTypeDef | None:
        try:
            return self.patience.call(lambda: self.client.describe_table(TableName=table))["Table"]
        except ClientError as error:
            if error.response["Error"]["Code"] in NEW_TABLE:
                return None
            raise

    def _describe(self, table: str) -> TableDescriptionTypeDef:
        return self.patience.call(
            lambda: self.client.describe_table(TableName=table), also=NEW_TABLE
        )["Table"]
