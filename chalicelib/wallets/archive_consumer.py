"""`archive_entries`: the stream consumer that archives the entries which were removed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from chalice.app import Blueprint, DynamoDBEvent

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.aws.event_sources import TABLE_STREAM
from chalicelib.storage.errors import StorageError

if TYPE_CHECKING:
    from chalicelib.storage.ports import Archive
    from chalicelib.wallets.archive import Batch, Removal

blueprint = Blueprint(__name__)


@blueprint.on_dynamodb_record(
    stream_arn=TABLE_STREAM,
    batch_size=10_000,
    maximum_batching_window_in_seconds=300,
    starting_position="TRIM_HORIZON",
    name="archive_entries",
)
def archive_entries(event: DynamoDBEvent) -> dict[str, Any]:
    """Archive a batch of removals; the partial batch response names where to deliver from again.

    What is archived by then comes again too: then it is the same object, or in one more.
    """
    from chalicelib.wallets import archive  # noqa: PLC0415  the API imports this module too

    telemetry.begin("archive_entries", event.context)
    use = resources.for_archive()
    removals, malformed = _removals(event.to_dict()["Records"])
    now = use.clock()
    if malformed:
        # Where that fails the whole batch comes again: what can't be read may have no number.
        kept = archive.Malformed(tuple(malformed))
        use.archive.put(kept.name, kept.body)
    failed = [batch for batch in archive.batches(removals) if not _is_archived(batch, use.archive)]
    left = [removal for batch in failed for removal in batch.removals]
    telemetry.count(
        entries_archived=len(removals) - len(left),
        malformed=len(malformed),
        archive_lag_seconds=_lag(removals, now),
    )
    return {"batchItemFailures": [{"itemIdentifier": min(left).sequence}] if left else []}


def _removals(
    records: Iterable[Mapping[str, Any]],
) -> tuple[list[Removal], list[Mapping[str, Any]]]:
    """The entries, and the records that are malformed.

    A malformed record is logged whole and archived as it is: delivered again, it would hold up its
    shard until the stream forgets it, and what is behind it too.
    """
    from chalicelib.wallets import archive  # noqa: PLC0415

    removals: list[Removal] = []
    malformed: list[Mapping[str, Any]] = []
    for record in records:
        try:
            removal = archive.parse(record)
        except archive.MalformedError:
            telemetry.event(logging.ERROR, "a malformed stream record", record=record)
            malformed.append(record)
            continue
        if removal is not None:
            removals.append(removal)
    return removals, malformed


def _is_archived(batch: Batch, archive: Archive) -> bool:
    try:
        archive.put(batch.name, batch.body)
    except StorageError as failure:
        telemetry.event(
            logging.WARNING, "entries are not archived yet", object=batch.name, reason=str(failure)
        )
        return False
    return True


def _lag(removals: Iterable[Removal], now: float) -> int:
    """How long the first removed entry of a batch waited to be archived, in seconds."""
    removed = [removal.removed_at or now for removal in removals]
    return max(0, round(now - min(removed, default=now)))
