"""The archive of the journals: entries that were removed, as compressed lines of JSON by the day.

An object holds the entries of one day (UTC) that came in one batch. Its name tells what is in it: a
batch that comes again has the same object, one that was cut anew has another, and none ever takes
the place of a different one. So an entry is there at least once. A reader tells repeats by the
entry's `id` with its `wallet`: the two wallets of a transfer each have it. A record that can't be
read is kept as it came, under `journal/malformed/`: whatever was removed, it is there.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from chalicelib.aws.attribute_values import decode_item
from chalicelib.aws.stream_records import is_removal, padded, removed_at
from chalicelib.storage.errors import Refused
from chalicelib.wallets.wallet import ENTRY, PARTITION, Entry

PREFIX = "journal"
"""What the names of all objects begin with."""
DIGEST_DIGITS = 32
"""Hex digits of the digest in a name: 128 bits."""


class MalformedError(ValueError):
    """A stream record that nothing here wrote; the message says what is wrong."""


@dataclass(frozen=True, slots=True, order=True)
class Removal:
    """One entry that was removed from the journal of a wallet, and where that stands in its shard.

    `position` is the sequence number padded with zeros. `removed_at` is in seconds since 1970, 0
    where the record does not say.
    """

    position: str
    sequence: str = field(compare=False)
    wallet_id: str = field(compare=False)
    entry: Entry = field(compare=False)
    removed_at: float = field(default=0.0, compare=False)

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.entry.at / 1000, UTC)

    @property
    def line(self) -> str:
        """The entry as a JSON object; the amount is a text, as many readers round large numbers."""
        posting = self.entry.posting
        told = {
            "id": self.entry.entry_id,
            "wallet": self.wallet_id,
            "kind": str(posting.kind),
            "amount": str(posting.amount),
            "from": posting.source,
            "to": posting.target,
            "nonce": posting.nonce,
            "at": self.at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        return json.dumps(told, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Batch:
    """The entries of one day that are archived as one object, in the order of their removals."""

    day: date
    removals: tuple[Removal, ...]

    @property
    def name(self) -> str:
        """By the first position and what the lines say, however they are compressed."""
        first, digest = self.removals[0].position, _digest(self._text)
        return f"{PREFIX}/{self.day:%Y/%m/%d}/{first}-{digest}.jsonl.gz"

    @property
    def body(self) -> bytes:
        return _compressed(self._text)

    @property
    def _text(self) -> bytes:
        return _text(removal.line for removal in self.removals)


@dataclass(frozen=True, slots=True)
class Malformed:
    """Stream records that can't be read, archived as they came: each may be an entry."""

    records: tuple[Mapping[str, Any], ...]

    @property
    def name(self) -> str:
        return f"{PREFIX}/malformed/{_digest(self._text)}.jsonl.gz"

    @property
    def body(self) -> bytes:
        return _compressed(self._text)

    @property
    def _text(self) -> bytes:
        return _text(json.dumps(record, sort_keys=True) for record in self.records)


def _text(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:DIGEST_DIGITS]


def _compressed(text: bytes) -> bytes:
    """A time in its header would make other bytes of the same lines."""
    return gzip.compress(text, mtime=0)


def parse(record: Mapping[str, Any]) -> Removal | None:
    """The entry that a stream record tells of; None for any other change of the table.

    Raises `MalformedError`.
    """
    try:
        is_entry = is_removal(record, PARTITION, ENTRY)
        return _removal(record) if is_entry else None
    except (
        AttributeError,
        KeyError,
        OSError,
        OverflowError,
        Refused,
        TypeError,
        ValueError,
    ) as error:
        raise MalformedError(f"no removed entry of a journal: {error!r}") from error


def _removal(record: Mapping[str, Any]) -> Removal:
    changed = record["dynamodb"]
    entry = Entry.of(decode_item(changed["OldImage"]))
    if not (entry.entry_id and entry.posting.target and entry.posting.amount and entry.at):
        raise ValueError("an id, a wallet, an amount or a time is missing")
    removal = Removal(
        position=padded(changed["SequenceNumber"]),
        sequence=changed["SequenceNumber"],
        wallet_id=changed["Keys"]["PK"]["S"].removeprefix(PARTITION),
        entry=entry,
        removed_at=removed_at(record),
    )
    # Here a time that no calendar has is one malformed record; later it would be a whole batch.
    _ = removal.at
    return removal


def batches(removals: Iterable[Removal]) -> list[Batch]:
    """What to archive, an object a day."""
    days: defaultdict[date, list[Removal]] = defaultdict(list)
    for removal in sorted(removals):
        days[removal.at.date()].append(removal)
    return [Batch(day, tuple(found)) for day, found in sorted(days.items())]
