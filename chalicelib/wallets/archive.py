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
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Protocol

from chalicelib import telemetry
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError
from chalicelib.storage.items import Item, key_of
from chalicelib.storage.messages import MalformedError
from chalicelib.storage.ports import Archive
from chalicelib.units import Seconds, WholeSeconds
from chalicelib.wallets.wallet import PARTITION, Entry

PREFIX = "journal"
"""The names of all objects begin with this."""
DIGEST_DIGITS = 32
"""Hex digits of the digest in a name: 128 bits."""
SEQUENCE_DIGITS = 40
"""Digits of the sequence number in a name, as many as the longest number of a stream has."""


@dataclass(frozen=True, slots=True, order=True)
class EntryRemoval:
    """The removal of one entry from the journal of a wallet.

    `sequence` is the sequence number of the removal. `removed_at` is 0 if unknown.
    """

    sequence: int
    wallet_id: str = field(compare=False)
    entry: Entry = field(compare=False)
    removed_at: Seconds = field(default=0.0, compare=False)

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


@dataclass(frozen=True)
class EntryBatch:
    """The entries of one day that are archived as one object, in the order of their removals."""

    day: date
    removals: tuple[EntryRemoval, ...]

    @property
    def name(self) -> str:
        """Return the name of the object: its first sequence number and a digest of its content."""
        first = f"{self.removals[0].sequence:0{SEQUENCE_DIGITS}}"
        return f"{PREFIX}/{self.day:%Y/%m/%d}/{first}-{_digest(self._text)}.jsonl.gz"

    @property
    def body(self) -> bytes:
        return _compress(self._text)

    @cached_property
    def _text(self) -> bytes:
        return _text(removal.line for removal in self.removals)


@dataclass(frozen=True)
class MalformedRecords:
    """The records of removals that can't be read, archived unchanged: each may be an entry."""

    records: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        return f"{PREFIX}/malformed/{_digest(self._text)}.jsonl.gz"

    @property
    def body(self) -> bytes:
        return _compress(self._text)

    @cached_property
    def _text(self) -> bytes:
        return _text(json.dumps(record, sort_keys=True) for record in self.records)


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:DIGEST_DIGITS]


def _compress(text: bytes) -> bytes:
    """Compress a text without a time in the header: the same lines make the same bytes."""
    return gzip.compress(text, mtime=0)


def batches(removals: Iterable[EntryRemoval]) -> list[EntryBatch]:
    """Return the objects to archive, one for each day."""
    days: defaultdict[date, list[EntryRemoval]] = defaultdict(list)
    for removal in sorted(removals):
        days[removal.time.date()].append(removal)
    return [EntryBatch(day, tuple(found)) for day, found in sorted(days.items())]


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
    failed = [
        removal
        for batch in batches(removals)
        if not _is_archived(batch, resources)
        for removal in batch.removals
    ]
    telemetry.count(
        entries_archived=len(removals) - len(failed),
        archive_lag_seconds=_lag_seconds(removals, now),
    )
    return failed


def archive_malformed(records: Sequence[Mapping[str, Any]], resources: ArchiveResources) -> None:
    """Archive records that can't be read. Raises `StorageError`."""
    if records:
        malformed = MalformedRecords(tuple(records))
        resources.archive.put(malformed.name, malformed.body)


def _is_archived(batch: EntryBatch, resources: ArchiveResources) -> bool:
    try:
        resources.archive.put(batch.name, batch.body)
    except StorageError as failure:
        telemetry.event(
            logging.WARNING, "entries_not_archived", object=batch.name, reason=str(failure)
        )
        return False
    return True


def _lag_seconds(removals: Iterable[EntryRemoval], now: Seconds) -> WholeSeconds:
    """Return how long the first removed entry of a batch waited to be archived."""
    removed = [removal.removed_at or now for removal in removals]
    return max(0, round(now - min(removed, default=now)))
