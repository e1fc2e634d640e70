"""A stack on AWS, which a command reaches by the operator's own credentials."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cached_property, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoRegionError

from chalicelib.aws.attribute_values import decode_item
from chalicelib.aws.clients import S3Archive, aws_client
from chalicelib.aws.dynamodb import DynamoTable
from chalicelib.aws.sqs import SqsQueue
from chalicelib.concurrency import map_parallel
from chalicelib.counting import keys
from chalicelib.counting.view import Counting, View, Windows
from chalicelib.settings import Settings
from chalicelib.storage.items import Item
from chalicelib.storage.messages import MalformedError
from chalicelib.storage.ports import Archive, Message, Queue
from chalicelib.units import Seconds
from chalicelib.wallets.archive import PREFIX
from vumi.errors import ReportedError
from vumi.journals import MALFORMED, ArchivedObject, first_name
from vumi.operate.admin import overview
from vumi.operate.admin.installation import LetterOutcome, Source
from vumi.operate.admin.overview import BadgeOverview
from vumi.operate.check.items import StoredItem
from vumi.operate.exchange.table_source import read_groups

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_sqs import SQSClient
    from types_boto3_sqs.type_defs import MessageTypeDef

CLOCK_MARGIN_SECONDS = 3_600
"""The operator's clock may be this far ahead, so a fold leaves younger views to `fold_views`."""
RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 12})
"""A scan waits for a throttled table, because no visitor waits for it."""
DELIVERY_SECONDS = 86_400
"""A letter that is sent again is delivered within this time."""
INVISIBLE_SECONDS = 600
"""A letter that stays is not received again for this time, so that the run ends."""
LISTEN_SECONDS = 5
BATCH_MESSAGES = 10
"""Messages in one request (SQS API reference)."""


class StackInstallation:
    """The `admin.installation.Installation` of a stack."""

    map_parallel = staticmethod(map_parallel)
    sleep: Callable[[Seconds], None] = staticmethod(time.sleep)

    def __init__(
        self, stack: str, found: dict[str, str], settings: Settings, clock: Callable[[], Seconds]
    ) -> None:
        self.stack = stack
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
        return SqsQueue(aws_client("sqs"), self._output("DeliveryQueueUrl", "events", "Events"))

    def keep_view_time(self, at: Seconds) -> None:
        """Do nothing: the clocks of functions are those of AWS."""

    @property
    def counting(self) -> Counting:
        """Return what folds need, with a clock that is behind by the margin for the operator's."""
        windows = Windows.of(self.settings)
        return Counting(self.table, windows, lambda: self.clock() - CLOCK_MARGIN_SECONDS)

    def event_queue(self, name: str) -> SqsQueue | None:
        url = self.settings.event_queues.get(name)
        return SqsQueue(aws_client("sqs"), url) if url else None

    @contextmanager
    def open_source(self) -> Iterator[Source]:
        objects = ((name, read().read()) for name, read in self._archived_objects())
        yield Source("AWS", read_groups(self, self.sleep), objects)

    def _archived_objects(self, **options: str) -> Iterator[tuple[str, Callable[[], Any]]]:
        """Yield the names of the archive's objects, in their order, each with its reader."""
        client, bucket = aws_client("s3", RETRIES), self.outputs.get("ArchiveBucket")
        if bucket:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, **options)
            for stored in (stored for page in pages for stored in page.get("Contents", [])):
                yield stored["Key"], partial(_open_object, client, bucket, stored["Key"])

    def items(self) -> Iterator[Item]:
        return map(decode_item, self._scan(ConsistentRead=True))

    def badges(self, now: Seconds) -> Iterator[BadgeOverview]:
        return overview.of_items(self.items(), now)

    def stored_items(self) -> Iterator[StoredItem]:
        """Yield all items but views, which belong to no other item, while others may write."""
        options = {
            "FilterExpression": "NOT begins_with(SK, :view)",
            "ExpressionAttributeValues": {":view": {"S": keys.VIEW}},
        }
        for item in self._scan(ConsistentRead=True, **options):
            key = " ".join(item[name].get("S", "") for name in ("PK", "SK"))
            yield key, partial(decode_item, item)

    def archived(self, since: date | None = None) -> Iterator[ArchivedObject]:
        of_day = {"Prefix": f"{PREFIX}/", "StartAfter": first_name(since)}
        for name, read in self._archived_objects(**of_day):
            if not name.startswith(MALFORMED):
                yield ArchivedObject(name, read)

    def viewed_ids(self) -> Iterator[str]:
        viewed = self._scan(
            FilterExpression="begins_with(SK, :view)",
            ExpressionAttributeValues={":view": {"S": keys.VIEW}},
            ProjectionExpression="PK",
        )
        # A Scan reads a partition's items one after the other, so one id is kept in memory.
        partitions = (item["PK"]["S"] for item in viewed)
        return (partition.removeprefix(keys.PARTITION) for partition, _ in groupby(partitions))

    def redrive_views(self) -> Counter[LetterOutcome]:
        return Redrive(
            aws_client("sqs", None),
            self.outputs["ViewsDeadLettersUrl"],
            self.views_queue,
            self.clock,
            self.settings.retention_seconds,
        ).run()

    def _scan(self, **options: Any) -> Iterator[Any]:
        paginator = aws_client("dynamodb", RETRIES).get_paginator("scan")
        pages = paginator.paginate(TableName=self.outputs["TableName"], **options)
        return (item for page in pages for item in page["Items"])

    def _output(self, name: str, feature: str, parameter: str) -> str:
        if name not in self.outputs:
            raise ReportedError(
                f"the stack {self.stack} has no {feature}; deploy it with {parameter}=on first"
            )
        return self.outputs[name]


@dataclass(frozen=True, slots=True)
class Redrive:
    """The redrive of one dead-letter queue of views; `clock` and `retention` are in seconds.

    A view that was counted before is not counted again: its item, or its marker if it was counted
    at once, is in the table for RETENTION_SECONDS, which is longer than SQS keeps a message. But a
    letter that was redriven before may be older, because sending it again starts its age at 0. A
    letter stays if its view may have left the table before the letter is delivered.
    """

    client: SQSClient
    dead_letters_url: str
    queue: Queue
    clock: Callable[[], float]
    retention: int

    def run(self) -> Counter[LetterOutcome]:
        """Redrive every dead letter; return the number of letters by outcome.

        Raises `StorageError`. If the run is interrupted, run it again: a letter that was sent and
        not deleted is sent twice, and its view counts once.
        """
        outcomes: Counter[LetterOutcome] = Counter()
        stayed: set[str] = set()
        while letters := self._receive():
            by_id = {letter["MessageId"]: self._judge(letter) for letter in letters}
            sent = [one for one in letters if by_id[one["MessageId"]] is LetterOutcome.SENT]
            self.queue.send_all([Message(letter["Body"]) for letter in sent])
            for letter in sent:
                self.client.delete_message(
                    QueueUrl=self.dead_letters_url, ReceiptHandle=letter["ReceiptHandle"]
                )
            outcomes.update(outcome for key, outcome in by_id.items() if key not in stayed)
            stayed |= {key for key, outcome in by_id.items() if outcome is not LetterOutcome.SENT}
        return outcomes

    def _receive(self) -> list[MessageTypeDef]:
        return self.client.receive_message(
            QueueUrl=self.dead_letters_url,
            MaxNumberOfMessages=BATCH_MESSAGES,
            VisibilityTimeout=INVISIBLE_SECONDS,
            WaitTimeSeconds=LISTEN_SECONDS,
        ).get("Messages", [])

    def _judge(self, letter: MessageTypeDef) -> LetterOutcome:
        try:
            taken_at = View.from_message(letter.get("Body")).milliseconds / 1000
        except MalformedError:
            return LetterOutcome.MALFORMED
        too_old = self.clock() + DELIVERY_SECONDS > taken_at + self.retention
        return LetterOutcome.TOO_OLD if too_old else LetterOutcome.SENT


def _open_object(client: Any, bucket: str, name: str) -> Any:
    return client.get_object(Bucket=bucket, Key=name)["Body"]


def outputs(client: CloudFormationClient, stack: str) -> dict[str, str]:
    """Return the outputs of a stack, by name."""
    described = client.describe_stacks(StackName=stack)["Stacks"][0]
    return {output["OutputKey"]: output["OutputValue"] for output in described["Outputs"]}


@contextmanager
def open_installation(
    stack: str, environment: Mapping[str, str], clock: Callable[[], Seconds]
) -> Iterator[StackInstallation]:
    """Find the resources of a stack. Raises `ReportedError` and `SettingsError`."""
    settings = Settings.from_environment(environment)
    try:
        found = outputs(aws_client("cloudformation", None), stack)
        yield StackInstallation(stack, found, settings, clock)
    except NoRegionError as error:
        raise ReportedError("no region is configured; set AWS_DEFAULT_REGION") from error
    except (BotoCoreError, ClientError) as error:
        raise ReportedError(str(error)) from error
