"""The readers of the table's stream: each record of a removal becomes a consumer's value.

It does not matter whether TTL or another process removed the item.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from chalicelib.aws.attribute_values import decode_item
from chalicelib.counting import keys
from chalicelib.lazy import lazy
from chalicelib.storage.errors import StorageRefusedError
from chalicelib.storage.items import Key
from chalicelib.storage.messages import MalformedError
from chalicelib.units import Seconds

if TYPE_CHECKING:
    from chalicelib.counting import consumers as views
    from chalicelib.counting.consumers import MarkerRemoval
    from chalicelib.wallets import archive, wallet
    from chalicelib.wallets.archive import EntryRemoval
else:
    archive, wallet = lazy("chalicelib.wallets.archive"), lazy("chalicelib.wallets.wallet")
    views = lazy("chalicelib.counting.consumers")

SEQUENCE_DIGITS = 40
"""The longest sequence number (DynamoDB Streams API reference, `StreamRecord`)."""

Record: TypeAlias = Mapping[str, Any]
Removal = TypeVar("Removal")


def marker_removal(record: Record) -> MarkerRemoval | None:
    """Return the removal of a window's marker, None for another change.

    Raises `MalformedError`.
    """
    return _parse(record, keys.WINDOW, keys.WINDOW, _marker_removal)


def _marker_removal(record: Record) -> MarkerRemoval:
    _sequence(record)
    return views.MarkerRemoval.of(_key(record), _removed_at(record))


def entry_removal(record: Record) -> EntryRemoval | None:
    """Return the removal of an entry of a journal, None for another change.

    Raises `MalformedError`.
    """
    return _parse(record, wallet.PARTITION, wallet.ENTRY, _entry_removal)


def _entry_removal(record: Record) -> EntryRemoval:
    item = decode_item(record["dynamodb"]["OldImage"])
    return archive.EntryRemoval.of(item, _sequence(record), _removed_at(record))


def _parse(
    record: Record, partition: str, sort: str, removal: Callable[[Record], Removal]
) -> Removal | None:
    """Return the removal of an item whose keys begin with these; None for another change."""
    try:
        if record["eventName"] != "REMOVE":
            return None
        key = _key(record)
        is_expected = key.pk.startswith(partition) and key.sk.startswith(sort)
        return removal(record) if is_expected else None
    except (AttributeError, KeyError, StorageRefusedError, TypeError, ValueError) as error:
        raise MalformedError(f"expected a stream record of this table: {error!r}") from error


def _key(record: Record) -> Key:
    key = record["dynamodb"]["Keys"]
    return Key(key["PK"]["S"], key["SK"]["S"])


def _removed_at(record: Record) -> Seconds:
    """Return when an item was removed; 0 if the record does not say."""
    return float(record["dynamodb"].get("ApproximateCreationDateTime", 0))


def _sequence(record: Record) -> int:
    sequence = record["dynamodb"]["SequenceNumber"]
    if not (sequence.isascii() and sequence.isdecimal() and len(sequence) <= SEQUENCE_DIGITS):
        raise ValueError(f"{sequence!r} is not a sequence number")
    return int(sequence)
