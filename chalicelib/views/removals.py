"""Reading the stream: which records say that TTL removed a view, and where each stands in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from chalicelib.views import keys
from chalicelib.views.view import MalformedError, taken_at

TTL_PRINCIPAL = "dynamodb.amazonaws.com"
SEQUENCE_DIGITS = 40
"""The longest sequence number (DynamoDB Streams API reference, `StreamRecord`)."""


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

    Only TTL's own removals count: a person or a program that deletes an item is not its service.
    Source: the DynamoDB developer guide, "DynamoDB Streams and Time to Live". Raises
    `MalformedError`.
    """
    try:
        return _removal(record) if _is_ttl_removal_of_view(record) else None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise MalformedError(f"no stream record of this table: {error!r}") from error


def _is_ttl_removal_of_view(record: Mapping[str, Any]) -> bool:
    if record["eventName"] != "REMOVE":
        return False
    identity = record.get("userIdentity") or {}
    by_ttl = identity.get("type") == "Service" and identity.get("principalId") == TTL_PRINCIPAL
    key = record["dynamodb"]["Keys"]
    return (
        by_ttl
        and key["PK"]["S"].startswith(keys.PARTITION)
        and key["SK"]["S"].startswith(keys.VIEW)
    )


def _removal(record: Mapping[str, Any]) -> Removal:
    key, sequence = record["dynamodb"]["Keys"], record["dynamodb"]["SequenceNumber"]
    label = record["eventSourceARN"].split("/stream/")[1]
    return Removal(
        position=position(label, sequence),
        badge_id=key["PK"]["S"].removeprefix(keys.PARTITION),
        taken_at=taken_at(key["SK"]["S"].removeprefix(keys.VIEW)),
        sequence=sequence,
        removed_at=float(record["dynamodb"].get("ApproximateCreationDateTime", 0)),
    )


def position(label: str, sequence: str) -> str:
    """A place in a stream. Raises `ValueError` where the sequence number is none."""
    if not (sequence.isascii() and sequence.isdecimal() and len(sequence) <= SEQUENCE_DIGITS):
        raise ValueError(f"{sequence!r} is no sequence number")
    return f"{label}#{sequence.zfill(SEQUENCE_DIGITS)}"
