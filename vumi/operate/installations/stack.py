"""A stack on AWS, which a command reaches by the operator's own credentials."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

from chalicelib.aws.attribute_values import decode_item
from chalicelib.aws.clients import aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.s3 import S3Archive
from chalicelib.aws.sqs import SqsQueue
from chalicelib.concurrency import map_parallel
from chalicelib.counting import keys
from chalicelib.counting.folding import Folder
from chalicelib.counting.windows import Windows
from chalicelib.settings import Settings
from chalicelib.storage.items import Item
from chalicelib.storage.ports import Archive, Table
from chalicelib.units import Seconds
from chalicelib.wallets.archive import PREFIX
from vumi.errors import ReportedError
from vumi.journals import MALFORMED, ArchivedObject, first_name
from vumi.operate.admin import overview
from vumi.operate.admin.installation import LetterOutcome
from vumi.operate.admin.overview import BadgeOverview
from vumi.operate.admin.source import StoredObject
from vumi.operate.check.items import StoredItem
from vumi.operate.exchange.table_source import TableSource
from vumi.operate.installations.dead_letters import Redrive
from vumi.operate.installations.restorable import RestorableTimes

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_dynamodb import DynamoDBClient

CLOCK_MARGIN_SECONDS = 3_600
"""The operator's clock may be this far ahead, so a fold leaves younger views to `fold_views`."""
RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 12})
"""A scan waits for a throttled table, because no visitor waits for it."""


class StackError(ReportedError):
    """AWS has refused a request, or does not answer. The message is that of AWS."""


class SwitchedOffError(ReportedError):
    """A command needs a feature that the stack does not have."""


class StackInstallation:
    """The `admin.installation.Installation` of a stack."""

    map_parallel = staticmethod(map_parallel)
    sleep: Callable[[Seconds], None] = staticmethod(time.sleep)

    def __init__(
        self, stack: str, found: Mapping[str, str], settings: Settings, clock: Callable[[], Seconds]
    ) -> None:
        self.stack = stack
        self.name = f"the stack {stack}"
        self.outputs = found
        self.settings = settings
        self.clock = self.view_clock = clock

    @cached_property
    def table(self) -> DynamoTable:
        return DynamoTable(aws_client("dynamodb"), self.outputs["TableName"])

    @cached_property
    def archive(self) -> Archive:
        return S3Archive(aws_client("s3"), self._output("ArchiveBucket", "wallets", "Wallets"))

    @cached_property
    def views_queue(self) -> SqsQueue:
        return SqsQueue(aws_client("sqs"), self.outputs["ViewsQueueUrl"])

    @cached_property
    def delivery_queue(self) -> SqsQueue:
        return SqsQueue(aws_client("sqs"), self._output("TimersQueueUrl", "events", "Events"))

    def keep_view_time(self, at: Seconds) -> None:
        """Do nothing: the clocks of functions are those of AWS."""

    @property
    def folder(self) -> Folder:
        return folder(self.table, Windows.of(self.settings), self.clock)

    def event_queue(self, name: str) -> SqsQueue | None:
        url = self.settings.event_queues.get(name)
        return SqsQueue(aws_client("sqs"), url) if url else None

    @contextmanager
    def open_source(self) -> Iterator[TableSource]:
        yield TableSource(self, self._objects(), self.sleep)

    def _objects(self) -> Iterator[StoredObject]:
        """Yield the objects of the archive, if the stack has one."""
        bucket, client = self.outputs.get("ArchiveBucket", ""), aws_client("s3", RETRIES)
        for name in _names_in(client, bucket):
            yield StoredObject(name, _open_object(client, bucket, name).read())

    def items(self) -> Iterator[Item]:
        table = self.outputs["TableName"]
        return (decode_item(item) for item in _scan(self._client, table, ConsistentRead=True))

    def badges(self, now: Seconds) -> Iterator[BadgeOverview]:
        return overview.of_items(self.items(), now)

    def stored_items(self) -> Iterator[StoredItem]:
        """Yield all items but views, in pages, while others may write."""
        return stored_items(self._client, self.outputs["TableName"])

    @property
    def has_archive(self) -> bool:
        return "ArchiveBucket" in self.outputs

    def archived(self, since: date | None = None) -> Iterator[ArchivedObject]:
        return in_bucket(aws_client("s3", None), self.outputs.get("ArchiveBucket", ""), since)

    def removed_entries(self, wallet_id: str) -> Iterator[Item]:  # noqa: ARG002  the stream has them
        return iter(())

    def restorable_times(self) -> RestorableTimes:
        """Return the times to which the table can be restored. Raises `NoBackupsError`."""
        return RestorableTimes.find(self._client, self.outputs["TableName"])

    def viewed_ids(self) -> Iterator[str]:
        return viewed_ids(self._client, self.outputs["TableName"])

    def redrive_views(self) -> Counter[LetterOutcome]:
        return Redrive(
            aws_client("sqs", None),
            self.outputs["ViewsDeadLettersUrl"],
            self.views_queue,
            self.clock,
            self.settings.retention_seconds,
        ).run()

    @cached_property
    def _client(self) -> Any:
        return aws_client("dynamodb", RETRIES)

    def _output(self, name: str, feature: str, parameter: str) -> str:
        if name not in self.outputs:
            raise SwitchedOffError(
                f"the stack {self.stack} has no {feature}; deploy it with {parameter}=on first"
            )
        return self.outputs[name]


def folder(table: Table, windows: Windows, clock: Callable[[], Seconds]) -> Folder:
    """Return a folder whose clock is behind by the margin for the operator's clock."""
    return Folder(table, windows, lambda: clock() - CLOCK_MARGIN_SECONDS)


def viewed_ids(client: DynamoDBClient, table: str) -> Iterator[str]:
    """Scan a table for the ids that views are stored under; an id may come twice.

    A Scan reads a partition's items one after the other, so one id is kept in memory.
    """
    viewed = _scan(
        client,
        table,
        FilterExpression="begins_with(SK, :view)",
        ExpressionAttributeValues={":view": {"S": keys.VIEW}},
        ProjectionExpression="PK",
    )
    partitions = (item["PK"]["S"] for item in viewed)
    return (partition.removeprefix(keys.PARTITION) for partition, _ in groupby(partitions))


def stored_items(client: DynamoDBClient, table: str) -> Iterator[StoredItem]:
    """Scan a table for all items but views, which belong to no other item."""
    options = {
        "FilterExpression": "NOT begins_with(SK, :view)",
        "ExpressionAttributeValues": {":view": {"S": keys.VIEW}},
    }
    for item in _scan(client, table, ConsistentRead=True, **options):
        yield " ".join(item[name].get("S", "") for name in ("PK", "SK")), partial(decode_item, item)


def in_bucket(client: Any, bucket: str, since: date | None = None) -> Iterator[ArchivedObject]:
    """Yield the objects of an archive in a bucket, from a day on, in the order of their names.

    The name of the bucket is empty if the stack has no wallets, and so no archive.
    """
    for name in _names_in(client, bucket, Prefix=f"{PREFIX}/", StartAfter=first_name(since)):
        if not name.startswith(MALFORMED):
            yield ArchivedObject(name, partial(_open_object, client, bucket, name))


def _names_in(client: Any, bucket: str, **options: str) -> Iterator[str]:
    """Yield the names of the objects in a bucket, in their order; none without a bucket."""
    if bucket:
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, **options)
        yield from (stored["Key"] for page in pages for stored in page.get("Contents", []))


def _open_object(client: Any, bucket: str, name: str) -> Any:
    return client.get_object(Bucket=bucket, Key=name)["Body"]


def _scan(client: DynamoDBClient, table: str, **options: Any) -> Iterator[Any]:
    pages = client.get_paginator("scan").paginate(TableName=table, **options)
    return (item for page in pages for item in page["Items"])


def outputs(client: CloudFormationClient, stack: str) -> dict[str, str]:
    """Return the outputs of a stack, by name."""
    described = client.describe_stacks(StackName=stack)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}


@contextmanager
def open_installation(
    stack: str, environment: Mapping[str, str], clock: Callable[[], Seconds]
) -> Iterator[StackInstallation]:
    """Find the resources of a stack. Raises `StackError` and `SettingsError`."""
    settings = Settings.from_environment(environment)
    try:
        found = outputs(aws_client("cloudformation", None), stack)
        yield StackInstallation(stack, found, settings, clock)
    except NoRegionError as error:
        raise StackError("no region is configured; set AWS_DEFAULT_REGION") from error
    except (BotoCoreError, ClientError) as error:
        raise StackError(str(error)) from error
