"""What the consumers of the table's stream read alike: who removed an item, when, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SEQUENCE_DIGITS = 40
"""The longest sequence number (DynamoDB Streams API reference, `StreamRecord`)."""


def is_removal(record: Mapping[str, Any], partition: str, sort: str) -> bool:
    """Whether an item was removed whose keys begin so, whoever removed it.

    Raises `KeyError`, `AttributeError` or `TypeError` for what is no stream record.
    """
    if record["eventName"] != "REMOVE":
        return False
    key = record["dynamodb"]["Keys"]
    return key["PK"]["S"].startswith(partition) and key["SK"]["S"].startswith(sort)  # type: ignore[no-any-return]


def padded(sequence: str) -> str:
    """A sequence number that compares as a text. Raises `ValueError` where it is none."""
    if not (sequence.isascii() and sequence.isdecimal() and len(sequence) <= SEQUENCE_DIGITS):
        raise ValueError(f"{sequence!r} is no sequence number")
    return sequence.zfill(SEQUENCE_DIGITS)


def removed_at(record: Mapping[str, Any]) -> float:
    """When an item was removed, in seconds since 1970; 0 where the record does not say."""
    return float(record["dynamodb"].get("ApproximateCreationDateTime", 0))
