"""The ports of storage: a `Table`, a `Queue`, and an `Archive` of objects."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from chalicelib.storage.errors import StorageError, StorageRefusedError
from chalicelib.storage.items import Due, Item, Key
from chalicelib.storage.writes import Write
from chalicelib.units import Milliseconds, Seconds

MAX_DUE: Milliseconds = 10**15
"""The latest `due`: the year 33658."""
MAX_DELAY_SECONDS = 900
"""The longest delay of a message (SQS, `DelaySeconds`)."""
OBJECT_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")
MAX_OBJECT_NAME = 250
"""The longest name that every file system allows below the archive's folder; S3 allows 1,024."""


READ_UNIT_BYTES = 4_096
"""Bytes per read unit (DynamoDB developer guide, "Read consistency")."""


def items_per_read_unit(first: int, other: int) -> int:
    """Return how many items one read unit reads, of which the first one has another size."""
    return 1 + (READ_UNIT_BYTES - first) // other


class Table(Protocol):
    """A table of items, read consistently. Every method raises `StorageError`."""

    def get(self, key: Key) -> Item | None:
        """Return the item under a key, or None."""

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        """Return the items that exist under keys, in the order of the keys."""

    def query(  # noqa: PLR0913  the parts of a query
        self,
        partition: str,
        *,
        limit: int,
        first: str = "",
        last: str = "",
        attributes: Sequence[str] = (),
        descending: bool = False,
    ) -> list[Item]:
        """Return up to `limit` items of a partition in the order of their sort keys.

        `first` and `last` bound the sort keys, both included, empty for no bound.
        `attributes` names the attributes to read; none means all. `descending` reverses the
        order, so that the limit keeps the highest sort keys.
        """

    def page_items(self, first: int, other: int) -> int:
        """Return how many items to read, rather than count them, for the lowest price.

        `first` is the size of the first item, `other` that of each other one, in bytes.
        """

    def count(self, partition: str, *, limit: int, first: str = "", last: str = "") -> int:
        """Count the items of a partition with a sort key from `first` to `last`, up to `limit`.

        Both bounds are included, empty for no bound.
        """

    def query_due(
        self,
        batch: str,
        *,
        limit: int,
        first: Milliseconds = 0,
        last: Milliseconds = MAX_DUE,
        after: Due | None = None,
    ) -> list[Due]:
        """Return up to `limit` items whose attribute `batch` is this, in the order of their `due`.

        `first` and `last` bound `due`, both included; with `after`, only later positions are
        returned. Items without the text `batch` and the whole number `due` are in no batch. Only
        this method is not consistent: a recent write may be missing from its answer.
        """

    def write(self, *writes: Write) -> None:
        """Do one write, or up to 100 as one transaction: all or none.

        Raises `ConditionFailedError` if a condition does not hold.
        """

    def put_all(self, items: Sequence[Item]) -> None:
        """Store items, not as a transaction; if two have the same key, the later one is stored.

        Raises `NotStoredError` with the items that are not stored.
        """


class NotStoredError(StorageError):
    """Some of the items could not be stored; all others are."""

    def __init__(self, items: Sequence[Item], reason: str) -> None:
        super().__init__(f"{len(items)} items not stored: {reason}")
        self.items = list(items)


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send: delivered no sooner than `delay` (0 to 900 s) from now."""

    body: str
    delay: Seconds = 0.0


def check_delay(delay: Seconds) -> None:
    """Raise `StorageRefusedError` for a delay that a queue does not support."""
    if not 0 <= delay <= MAX_DELAY_SECONDS:
        raise StorageRefusedError(
            f"a message's delay is 0 to {MAX_DELAY_SECONDS} seconds, not {delay}"
        )


class Queue(Protocol):
    """A queue of texts, each delivered at least once, in any order."""

    def send(self, body: str, *, delay: Seconds = 0.0) -> None:
        """Enqueue a message, to be delivered no sooner than `delay` (0 to 900 s) from now.

        Raises `StorageError`; the message may be in the queue nevertheless.
        """

    def send_all(self, messages: Sequence[Message]) -> None:
        """Enqueue messages, not as a transaction.

        Raises `NotSentError` with the messages that may not be in the queue.
        """


class NotSentError(StorageError):
    """Some of the messages may not be in the queue; all others are."""

    def __init__(self, messages: Sequence[Message], reason: str) -> None:
        super().__init__(f"{len(messages)} messages not sent: {reason}")
        self.messages = list(messages)


class Archive(Protocol):
    """A store of objects, each under its name, that are never removed."""

    def put(self, name: str, body: bytes) -> None:
        """Store an object completely, in place of any with that name.

        `name` has parts of a-z, 0-9 and `._-`, separated by `/`, each beginning with a letter or
        digit. Raises `StorageError`; the object may be stored nevertheless.
        """


def check_object_name(name: str) -> None:
    """Raise `StorageRefusedError` for a text that can't be the name of an object."""
    if len(name) > MAX_OBJECT_NAME or OBJECT_NAME.fullmatch(name) is None:
        raise StorageRefusedError(f"{name[:MAX_OBJECT_NAME]!r} is no name of an object")
