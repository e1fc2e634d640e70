"""The archive of the journals: removed entries as compressed lines of JSON, by day.

An object has the entries of one day (UTC) in one batch. Its name depends on its content: a repeated
batch makes the same object, a batch that is cut in another way makes another one, and no object
ever replaces a different one. So every entry is archived at least once. Readers recognise repeats
by `id` and `wallet` together, because both wallets of a transfer have the same `id`. A record that
can't be read is archived unchanged, under `journal/malformed/`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Protocol

from chalicelib import telemetry
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item, key_of
from chalicelib.storage.messages import MalformedError, lag_seconds
from chalicelib.storage.ports import Archive
from chalicelib.units import Seconds
from chalicelib.wallets.wallet import PARTITION, Entry

PREFIX = "journal"
"""The names of all objects begin with this."""
DIGEST_DIGITS = 32
"""Hex digits of the digest in a name: 128 bits."""
SEQUENCE_DIGITS = 40
"""Digits of the sequence number in a name, as many as the longest number of a stream has."""


@dataclass(frozen=True, slots=True)
class EntryRemoval:
    """The removal of one entry from the journal of a wallet.

    `sequence` is the sequence number of the removal. `removed_at` is 0 if unknown.
    """

    sequence: int
    wallet_id: str
    entry: Entry
    removed_at: Seconds = 0.0

    @classmethod
    def of(cls, item: Item, sequence: int, removed_at: Seconds) -> EntryRemoval:
        """Return the removal of an item. Raises `MalformedError` if it is not an entry."""
        try:
            removal = cls(
                sequence, key_of(item).pk.removeprefix(PARTITION), Entry.of(item), removed_at
            )
            removal._check()
        except (OSError, OverflowError, StorageError, TypeError, ValueError) as error:
            raise MalformedError(f"expected an entry of a journal: {error!r}") from error
        return removal

    def _check(self) -> None:
        entry = self.entry
        if not (entry.entry_id and entry.posting.target and entry.posting.amount and entry.at):
            raise ValueError("an id, a wallet, an amount or a time is missing")
        _ = self.time  # a time outside the calendar must fail here, not later with a whole batch

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.entry.at / 1000, UTC)

    @property
    def line(self) -> str:
        """Return the entry as JSON. The amount is a text, because many readers round numbers."""
        posting = self.entry.posting
        fields = {
            "id": self.entry.entry_id,
            "wallet": self.wallet_id,
            "kind": str(posting.kind),
            "amount": str(posting.amount),
            "from": posting.source,
            "to": posting.target,
            "nonce": posting.nonce,
            "at": self.time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        return json.dumps(fields, separators=(",", ":"))


def make_object(batch: Sequence[EntryRemoval]) -> tuple[str, bytes]:
    """Return the name and the content of the object of a day's entries, in their order."""
    first = batch[0]
    place = f"{first.time:%Y/%m/%d}/{first.sequence:0{SEQUENCE_DIGITS}}-"
    return _compress(place, (removal.line for removal in batch))


def _compress(place: str, lines: Iterable[str]) -> tuple[str, bytes]:
    """Compress lines without a time in the header: the same lines make the same object."""
    text = "".join(f"{line}\n" for line in lines).encode()
    digest = hashlib.sha256(text).hexdigest()[:DIGEST_DIGITS]
    return f"{PREFIX}/{place}{digest}.jsonl.gz", gzip.compress(text, mtime=0)


def batches(removals: Iterable[EntryRemoval]) -> list[list[EntryRemoval]]:
    """Return the removals of each day (UTC), in their order: each batch becomes one object."""
    days: defaultdict[date, list[EntryRemoval]] = defaultdict(list)
    for removal in sorted(removals, key=lambda one: one.sequence):
        days[removal.time.date()].append(removal)
    return [days[day] for day in sorted(days)]


class ArchiveResources(Resources, Protocol):
    """The resources of the consumer that archives entries."""

    @property
    def archive(self) -> Archive: ...


def archive_entries(
    removals: Sequence[EntryRemoval], resources: ArchiveResources
) -> list[EntryRemoval]:
    """Archive removed entries; return the removals to deliver again.

    An entry that is archived again is in the same object, or in one more.
    """
    now = resources.clock()
    failed: list[EntryRemoval] = []
    for batch in batches(removals):
        name, content = make_object(batch)
        try:
            resources.archive.put(name, content)
        except StorageError as error:
            telemetry.event(logging.WARNING, "entries_not_archived", object=name, reason=str(error))
            failed += batch
    telemetry.count(
        entries_archived=len(removals) - len(failed),
        archive_lag_seconds=lag_seconds((one.removed_at for one in removals), now),
    )
    return failed


def archive_malformed(records: Sequence[Mapping[str, Any]], resources: ArchiveResources) -> None:
    """Archive records that can't be read: each may be an entry. Raises `StorageError`."""
    if records:
        lines = (json.dumps(record, sort_keys=True) for record in records)
        resources.archive.put(*_compress("malformed/", lines))
