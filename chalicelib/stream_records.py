"""What the consumers of the table's stream read alike: who removed an item, when, and where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TTL_PRINCIPAL = "dynamodb.amazonaws.com"
SEQUENCE_DIGITS = 40
"""The longest sequence number (DynamoDB Streams API reference, `StreamRecord`)."""


def is_removal_by_ttl(record: Mapping[str, Any], partition: str, sort: str) -> bool:
    """Whether TTL removed an item whose keys begin so.

    Only TTL's own removals count: a person or a program that deletes an item is not its service.
    Source: the DynamoDB developer guide, "DynamoDB Streams and Time to Live". Raises `KeyError`,
    `AttributeError` or `TypeError` for what is no stream record.
    """
    if record["eventName"] != "REMOVE":
        return False
    identity = record.get("userIdentity") or {}
    by_ttl = identity.get("type") == "Service" and identity.get("principalId") == TTL_PRINCIPAL
    key = record["dynamodb"]["Keys"]
    return by_ttl and key["PK"]["S"].startswith(partition) and key["SK"]["S"].startswith(sort)


def padded(sequence: str) -> str:
    """A sequence number that compares as a text. Raises `ValueError` where it is none."""
    if not (sequence.isascii() and sequence.isdecimal() and len(sequence) <= SEQUENCE_DIGITS):
        raise ValueError(f"{sequence!r} is no sequence number")
    return sequence.zfill(SEQUENCE_DIGITS)


def removed_at(record: Mapping[str, Any]) -> float:
    """When an item was removed, in seconds since 1970; 0 where the record does not say."""
    return float(record["dynamodb"].get("ApproximateCreationDateTime", 0))
