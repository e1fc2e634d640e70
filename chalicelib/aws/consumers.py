"""The Lambda functions that consume queues, the table's stream and the schedule.

Each reads values from SQS messages or stream records, calls the consumer in the core, and returns
the messages or records to deliver again. Sources: the Lambda developer guide, "Handling errors for
an SQS event source" and "Configuring partial batch response with DynamoDB and Lambda".

In the stream, it does not matter whether TTL or another process removed an item.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from chalice.app import Blueprint, CloudWatchEvent, DynamoDBEvent, SQSEvent

from chalicelib import telemetry
from chalicelib.aws.resources import connect, current
from chalicelib.counting import keys
from chalicelib.lazy import lazy
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Key

if TYPE_CHECKING:
    from chalicelib.api import ProcessResources
    from chalicelib.aws import attribute_values
    from chalicelib.counting import consumers as views
    from chalicelib.counting import view
    from chalicelib.counting.consumers import MarkerRemoval
    from chalicelib.events import delivery, event, sweep
    from chalicelib.storage import messages
    from chalicelib.wallets import archive, wallet
    from chalicelib.wallets.archive import EntryRemoval
else:
    attribute_values = lazy("chalicelib.aws.attribute_values")
    delivery, event = lazy("chalicelib.events.delivery"), lazy("chalicelib.events.event")
    sweep, messages = lazy("chalicelib.events.sweep"), lazy("chalicelib.storage.messages")
    views, view = lazy("chalicelib.counting.consumers"), lazy("chalicelib.counting.view")
    archive, wallet = lazy("chalicelib.wallets.archive"), lazy("chalicelib.wallets.wallet")

Record: TypeAlias = Mapping[str, Any]
Value = TypeVar("Value", bound=Hashable)
PartialBatchResponse: TypeAlias = dict[str, list[dict[str, str]]]

SAMPLE = "arn:aws:{}:us-east-1:000000000000:{}".format
VIEWS_QUEUE = os.environ.get("VIEWS_QUEUE_ARN", SAMPLE("sqs", "vu-mi-views"))
TABLE_STREAM = os.environ.get("TABLE_STREAM_ARN", SAMPLE("dynamodb", "table/vu-mi/stream/label"))
DELIVERY_QUEUE = os.environ.get("DELIVERY_QUEUE_ARN", SAMPLE("sqs", "vu-mi-deliveries"))
DISTRIBUTION_QUEUE = os.environ.get("DISTRIBUTION_QUEUE_ARN", SAMPLE("sqs", "vu-mi-distribution"))
"""The ARNs that Chalice's decorators need. `chalice deploy` reads them from `.chalice/config.json`,
and the template of `chalice package` replaces them with its own resources."""

OF_VIEWS = (
    "chalicelib.aws.attribute_values",
    "chalicelib.events.webhook_schedule",
    "chalicelib.storage.messages",
    "chalicelib.counting.consumers",
    "chalicelib.counting.folding",
    "chalicelib.counting.storing",
    "chalicelib.counting.view",
)
"""The modules of `put_views` and `fold_views`, whose starts are the most frequent."""
REMOVED_AT = "ApproximateCreationDateTime"
SEQUENCE_DIGITS = 40
"""The longest sequence number (DynamoDB Streams API reference, `StreamRecord`)."""

blueprint = Blueprint(__name__)
connect(*OF_VIEWS)


@blueprint.on_sqs_message(
    queue_arn=VIEWS_QUEUE,
    batch_size=98,
    maximum_batching_window_in_seconds=1,
    maximum_concurrency=50,
    name="put_views",
)
def put_views(batch: SQSEvent) -> PartialBatchResponse:
    """Store the views that requests enqueued."""
    return _handle("put_views", batch, view.View.from_message, views.store_views)


@blueprint.on_dynamodb_record(
    stream_arn=TABLE_STREAM,
    batch_size=1000,
    maximum_batching_window_in_seconds=5,
    starting_position="TRIM_HORIZON",
    name="fold_views",
)
def fold_views(batch: DynamoDBEvent) -> PartialBatchResponse:
    """Fold the badges whose windows' markers TTL removed.

    A malformed record is logged and skipped. Delivered again, it would delay its shard, and so
    other badges' views, until it expires from the stream.
    """
    removals, _ = _read_removals("fold_views", batch, marker_removal)
    return _handle_removals(removals, views.fold_badges)


@blueprint.schedule("rate(1 minute)", name="sweep_events")
def sweep_events(tick: CloudWatchEvent) -> dict[str, int]:
    """Send the events that are due soon to the distribution; return their number."""
    telemetry.begin("sweep_events", tick.context)
    sent, overdue = sweep.sweep_now(current())
    return {"sent": sent, "overdue": overdue}


@blueprint.on_sqs_message(
    queue_arn=DISTRIBUTION_QUEUE, batch_size=1, maximum_concurrency=10, name="distribute_events"
)
def distribute_events(batch: SQSEvent) -> PartialBatchResponse:
    """Enqueue swept events, each for its time."""
    return _handle("distribute_events", batch, sweep.group_in, sweep.distribute_now)


@blueprint.on_sqs_message(
    queue_arn=DELIVERY_QUEUE, batch_size=10, maximum_concurrency=50, name="deliver_events"
)
def deliver_events(batch: SQSEvent) -> PartialBatchResponse:
    """Deliver the events that are due."""
    return _handle("deliver_events", batch, event.event_id_in, delivery.deliver)


@blueprint.on_dynamodb_record(
    stream_arn=TABLE_STREAM,
    batch_size=10_000,
    maximum_batching_window_in_seconds=300,
    starting_position="TRIM_HORIZON",
    name="archive_entries",
)
def archive_entries(batch: DynamoDBEvent) -> PartialBatchResponse:
    """Archive the entries of journals that TTL removed.

    If a malformed record can't be archived, the whole batch is delivered again: the record may
    have no sequence number.
    """
    removals, malformed = _read_removals("archive_entries", batch, entry_removal)
    archive.archive_malformed(malformed, current())
    return _handle_removals(removals, archive.archive_entries)


def _handle(
    name: str,
    batch: SQSEvent,
    parse: Callable[[object], Value],
    consume: Callable[[list[Value], ProcessResources], Collection[Value]],
) -> PartialBatchResponse:
    """Handle the messages of a queue by a consumer, which returns those to deliver again."""
    telemetry.begin(name, batch.context)
    bodies = {record["messageId"]: record.get("body") for record in batch.to_dict()["Records"]}
    resources = current()
    failed = messages.handle_messages(bodies, parse, lambda values: consume(values, resources))
    return _deliver_again(failed)


def _read_removals(
    name: str, batch: DynamoDBEvent, parse: Callable[[Record], Value | None]
) -> tuple[list[tuple[Record, Value]], list[Record]]:
    """Return the removals in a batch with their records, and the malformed records."""
    telemetry.begin(name, batch.context)
    return messages.parse_records(batch.to_dict()["Records"], parse, messages.log_malformed_record)


def _handle_removals(
    removals: list[tuple[Record, Value]],
    consume: Callable[[list[Value], ProcessResources], Collection[Value]],
) -> PartialBatchResponse:
    """Handle removals; Lambda delivers all from the lowest reported sequence number on again."""
    failed = set(consume([removal for _, removal in removals], current()))
    again = (record["dynamodb"]["SequenceNumber"] for record, one in removals if one in failed)
    return _deliver_again(sorted(again, key=int)[:1])


def _deliver_again(identifiers: Iterable[str]) -> PartialBatchResponse:
    return {"batchItemFailures": [{"itemIdentifier": one} for one in identifiers]}


def marker_removal(record: Record) -> MarkerRemoval | None:
    """Return the removal of a window's marker, None for another change.

    Raises `MalformedError`.
    """

    def read(key: Key, change: Record) -> MarkerRemoval:
        return views.MarkerRemoval.of(key, float(change.get(REMOVED_AT, 0)))

    return _parse(record, keys.WINDOW, keys.WINDOW, read)


def entry_removal(record: Record) -> EntryRemoval | None:
    """Return the removal of an entry of a journal, None for another change.

    Raises `MalformedError`.
    """

    def read(_: Key, change: Record) -> EntryRemoval:
        item = attribute_values.decode_item(change["OldImage"])
        sequence, removed_at = int(change["SequenceNumber"]), float(change.get(REMOVED_AT, 0))
        return archive.EntryRemoval.of(item, sequence, removed_at)

    return _parse(record, wallet.PARTITION, wallet.ENTRY, read)


def _parse(
    record: Record, partition: str, sort: str, read: Callable[[Key, Record], Value]
) -> Value | None:
    """Return the removal of an item whose keys begin with these; None for another change."""
    try:
        if record["eventName"] != "REMOVE":
            return None
        change = record["dynamodb"]
        key = Key(change["Keys"]["PK"]["S"], change["Keys"]["SK"]["S"])
        if not (key.pk.startswith(partition) and key.sk.startswith(sort)):
            return None
        _check_sequence_number(change["SequenceNumber"])
        return read(key, change)
    except (AttributeError, KeyError, StorageRefusedError, TypeError, ValueError) as error:
        raise messages.MalformedError(
            f"expected a stream record of this table: {error!r}"
        ) from error


def _check_sequence_number(number: str) -> None:
    if not (number.isascii() and number.isdecimal() and len(number) <= SEQUENCE_DIGITS):
        raise ValueError(f"{number!r} is not a sequence number")
