"""The times to which a table on AWS can be restored: DynamoDB makes its backups continuously."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from vumi.errors import ReportedError

if TYPE_CHECKING:
    from types_boto3_dynamodb import DynamoDBClient

DEFAULT_NAME = "vu-mi-"
"""The beginning of the name that the Makefile gives to the stack of a stage."""


class NoBackupsError(ReportedError):
    """A table has no backups. The message says how to switch them on."""


@dataclass(frozen=True, slots=True)
class RestorableTimes:
    """The first and the last time to which a table can be restored."""

    table: str
    first: datetime
    last: datetime

    @classmethod
    def find(cls, client: DynamoDBClient, table: str) -> RestorableTimes:
        """Return the times of a table. Raises `NoBackupsError`."""
        answer = client.describe_continuous_backups(TableName=table)
        found = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
        if found.get("PointInTimeRecoveryStatus") != "ENABLED":
            raise NoBackupsError(
                f"the table {table} has no point-in-time recovery, so it can't be restored; switch"
                f" it on for the next time: aws dynamodb update-continuous-backups --table-name"
                f" {table} --point-in-time-recovery-specification PointInTimeRecoveryEnabled=true"
            )
        return cls(table, found["EarliestRestorableDateTime"], found["LatestRestorableDateTime"])


def restore_command(stack: str, time: str) -> str:
    """Return the command that restores a stack, in a checkout of vu-mi."""
    default = stack.startswith(DEFAULT_NAME)
    stage = stack.removeprefix(DEFAULT_NAME) if default else f"prod STACK={stack}"
    return f"make restore STAGE={stage} BUCKET=my-bucket AT={time}"
