"""Reading the stream: which records say that TTL removed a view, and where each stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chalicelib.stream_records import is_by_ttl, is_removal, padded, removed_at
from chalicelib.views import keys
from chalicelib.views.view import MalformedError, taken_at


@dataclass(frozen=True, slots=True, order=True)
class Removal:
    """One view that TTL removed.

    `position` orders the removals of a badge: the stream's label, then the sequence number padded
    with zeros, so that positions compare as texts and a new stream sorts behind the old one.
    `removed_at` is in seconds since 1970, 0 where the record does not say.
    """

    position: str
    badge_id: str
    taken_at: datetime
    sequence: str
    removed_at: float = field(default=0.0, compare=False)


def parse(record: Mapping[str, Any]) -> Removal | None:
    """The removal that a stream record tells of; None for any other change of the table.

    Raises `MalformedError`.
    """
    try:
        is_view = is_removal(record, keys.PARTITION, keys.VIEW) and is_by_ttl(record)
        return _removal(record) if is_view else None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise MalformedError(f"no stream record of this table: {error!r}") from error


def _removal(record: Mapping[str, Any]) -> Removal:
    key, sequence = record["dynamodb"]["Keys"], record["dynamodb"]["SequenceNumber"]
    label = record["eventSourceARN"].split("/stream/")[1]
    return Removal(
        position=position(label, sequence),
        badge_id=key["PK"]["S"].removeprefix(keys.PARTITION),
        taken_at=taken_at(key["SK"]["S"].removeprefix(keys.VIEW)),
        sequence=sequence,
        removed_at=removed_at(record),
    )


def position(label: str, sequence: str) -> str:
    """A place in a stream. Raises `ValueError` where the sequence number is none."""
    return f"{label}#{padded(sequence)}"
