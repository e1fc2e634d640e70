"""What the rest of the code needs from storage: a `Table`, a `Queue`, an `Archive` of objects.

Every engine answers alike: the same values, the same errors (`tests/conformance`).
Conditions are boto3's `Attr` expressions; DynamoDB renders them, SQLite evaluates them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from chalicelib.aws.cold_start import uncollected

if TYPE_CHECKING:
    from boto3.dynamodb.conditions import Attr, ConditionBase

Value: TypeAlias = "str | int | list[Value] | dict[str, Value]"
Item: TypeAlias = dict[str, Value]

MAX_TRANSACTION_WRITES = 100
"""Writes in one transaction (DynamoDB, `TransactWriteItems`)."""
MAX_PARTITION_KEY_BYTES = 2048
MAX_SORT_KEY_BYTES = 1024
MAX_DIGITS = 38
"""Digits of a number (DynamoDB developer guide, "Data types")."""
MAX_DELAY_SECONDS = 900
"""The longest delay of a message (SQS, `DelaySeconds`)."""
MAX_DUE = 10**15
"""The latest `due`, in milliseconds since 1970: the year 33658."""
OBJECT_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")
MAX_OBJECT_NAME = 250
"""What every file system takes of a path below the archive's folder; S3 would take 1,024."""


class Key(NamedTuple):
    """The primary key of an item: partition key `PK` and sort key `SK`."""

    pk: str
    sk: str


class Due(NamedTuple):
    """Where an item stands in a batch of the index `due`: its `due`, and its primary key."""

    due: int
    key: Key


def key_of(item: Mapping[str, Value]) -> Key:
    """The primary key within an item. Raises `Refused` where it has none."""
    pk, sk = item.get("PK"), item.get("SK")
    if not isinstance(pk, str) or not isinstance(sk, str):
        raise Refused(f"an item needs the texts PK and SK, this one has {pk!r} and {sk!r}")
    return Key(pk, sk)


def check_item(item: Mapping[str, Value]) -> None:
    """Raise `Refused` for an item that no table can hold."""
    _check_key(key_of(item))
    check_value(item)


def _check_key(key: Key) -> None:
    _check_length("PK", key.pk, MAX_PARTITION_KEY_BYTES)
    _check_length("SK", key.sk, MAX_SORT_KEY_BYTES)


def _check_length(name: str, value: str, most: int) -> None:
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise Refused(f"{name} must be text that UTF-8 can hold, not {value!r}") from None
    if not 1 <= size <= most:
        raise Refused(f"{name} must be 1 to {most} bytes of UTF-8, this one has {size}")


def check_value(value: object) -> None:
    """Raise `Refused` for what a table can't hold: only str, int, and lists and maps of them."""
    match value:
        case bool() | None | float():
            raise Refused(f"a table holds str, int, lists and maps, not {value!r}")
        case int() if abs(value) >= 10**MAX_DIGITS:
            raise Refused(f"a table holds numbers of at most {MAX_DIGITS} digits, not {value}")
        case str() | int():
            return
        case list():
            for part in value:
                check_value(part)
        case dict():
            for name, part in value.items():
                check_value(part)
                if not isinstance(name, str):
                    raise Refused(f"a map's keys are texts, not {name!r}")
        case _:
            raise Refused(f"a table holds str, int, lists and maps, not {value!r}")


def attribute(name: str) -> Attr:
    """boto3's `Attr`, to make a condition of.

    Imported on use: the GET makes no condition, and at cold start need not pay for all of boto3.
    """
    return _attr()(name)


@cache
def _attr() -> type[Attr]:
    with uncollected():
        from boto3.dynamodb.conditions import Attr  # noqa: PLC0415

    return Attr


def unchanged(name: str, value: Value) -> ConditionBase:
    """An attribute is still what it was read as; missing, where that was 0 or empty."""
    return attribute(name).eq(value) if value else attribute(name).not_exists()


def number(item: Mapping[str, Value], name: str) -> int:
    """The whole number `name` of an item, 0 where it has none."""
    value = item.get(name, 0)
    if not isinstance(value, int):
        raise TypeError(f"{name} is {value!r}, expected a whole number")
    return value


def text(item: Mapping[str, Value], name: str) -> str:
    """The text `name` of an item, empty where it has none."""
    value = item.get(name, "")
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, expected a text")
    return value


@dataclass(frozen=True, slots=True)
class Put:
    """Store an item, in place of any with the same key."""

    item: Item
    condition: ConditionBase | None = None

    @property
    def key(self) -> Key:
        return key_of(self.item)


@dataclass(frozen=True, slots=True)
class Update:
    """Change attributes of an item, creating it where there is none.

    `values` replace, `defaults` stand only where the attribute is missing, `add` counts on from
    the number there, or from 0. An update with `add` and no condition that changes with it
    is not idempotent: sent again after an answer was lost, it counts twice.
    """

    key: Key
    values: Mapping[str, Value] = field(default_factory=dict)
    defaults: Mapping[str, Value] = field(default_factory=dict)
    add: Mapping[str, int] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    condition: ConditionBase | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an item; no error where there is none."""

    key: Key
    condition: ConditionBase | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """Change nothing; let the transaction fail where the condition does not hold."""

    key: Key
    condition: ConditionBase


Write: TypeAlias = Put | Update | Delete | Check


def check_transaction(writes: Sequence[Write]) -> None:
    """Raise `Refused` unless these are 1 to 100 writes that a table can do, no item twice."""
    if not 1 <= len(writes) <= MAX_TRANSACTION_WRITES:
        raise Refused(f"1 to {MAX_TRANSACTION_WRITES} writes at once, not {len(writes)}")
    if len({write.key for write in writes}) < len(writes):
        raise Refused("a transaction writes no item twice")
    for write in writes:
        _check_key(write.key)
        match write:
            case Put():
                check_value(write.item)
            case Update():
                check_value({**write.values, **write.defaults, **write.add})
                if not (write.values or write.defaults or write.add or write.remove):
                    raise Refused("an update changes something")


def check_delay(delay: float) -> None:
    """Raise `Refused` for a delay that a queue does not know."""
    if not 0 <= delay <= MAX_DELAY_SECONDS:
        raise Refused(f"a message's delay is 0 to {MAX_DELAY_SECONDS} seconds, not {delay}")


def check_object_name(name: str) -> None:
    """Raise `Refused` for what names no object: parts of a-z, 0-9 and `._-`, with `/` between."""
    if len(name) > MAX_OBJECT_NAME or OBJECT_NAME.fullmatch(name) is None:
        raise Refused(f"{name[:MAX_OBJECT_NAME]!r} is no name of an object")


class StorageError(Exception):
    """The storage did not do as asked; what it was asked may or may not have been done."""


class Unavailable(StorageError):
    """The storage can't answer now: throttled, in conflict or out of reach. Ask again later."""


class Refused(StorageError):
    """The storage will never do this: the request is wrong, or a right or a resource is missing."""


class NotStored(StorageError):
    """Some of the items could not be stored; all others are."""

    def __init__(self, items: Sequence[Item], reason: str) -> None:
        super().__init__(f"{len(items)} items not stored: {reason}")
        self.items = list(items)


class NotSent(StorageError):
    """Some of the messages may not be in the queue; all others are."""

    def __init__(self, messages: Sequence[Message], reason: str) -> None:
        super().__init__(f"{len(messages)} messages not sent: {reason}")
        self.messages = list(messages)


class ConditionFailed(Exception):
    """A condition did not hold, so nothing was written: an answer of the business, not a fault.

    `items` has, for the position of each failed write, its item as it stands (None: there is none).
    """

    def __init__(self, items: Mapping[int, Item | None]) -> None:
        super().__init__(f"the condition of write {', '.join(map(str, items))} does not hold")
        self.items = dict(items)


class Table(Protocol):
    """A table of items, read consistently. Every method raises `Unavailable` or `Refused`."""

    def get(self, key: Key) -> Item | None:
        """The item under a key, or None."""

    def get_all(self, keys: Sequence[Key]) -> list[Item]:
        """The items that there are under keys, in the order of the keys."""

    def query(  # noqa: PLR0913  what a query has
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
        `attributes` names what to read of each item; none means all. `descending` reverses the
        order, so that the limit keeps the highest sort keys.
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
        first: int = 0,
        last: int = MAX_DUE,
        after: Due | None = None,
    ) -> list[Due]:
        """Up to `limit` items whose attribute `batch` is this, in the order of their `due`.

        `first` and `last` bound `due`, both included; `after` goes on behind an answered one. Items
        need the text `batch` and the whole number `due` to be here. This alone is not consistent:
        what was just written may be missing or stand where it was.
        """

    def write(self, *writes: Write) -> None:
        """Do one write, or up to 100 as one transaction: all or none.

        Raises `ConditionFailed` where a condition does not hold.
        """

    def put_all(self, items: Sequence[Item]) -> None:
        """Store items, not as a transaction; of two with one key the later stays.

        Raises `NotStored` with those that are not stored.
        """


@dataclass(frozen=True, slots=True)
class Message:
    """A message to send: delivered no sooner than `delay` seconds (0 to 900) from now."""

    body: str
    delay: float = 0.0


class Queue(Protocol):
    """A queue of texts, each delivered at least once, in any order."""

    def send(self, body: str, *, delay: float = 0.0) -> None:
        """Enqueue a message, to be delivered no sooner than `delay` seconds (0 to 900) from now.

        Raises `Unavailable` or `Refused`; the message may have been taken all the same.
        """

    def send_all(self, messages: Sequence[Message]) -> None:
        """Enqueue messages, not as a transaction.

        Raises `NotSent` with those that may not have been taken.
        """


class Archive(Protocol):
    """Where objects are kept for good, each under its name."""

    def put(self, name: str, body: bytes) -> None:
        """Keep an object, whole, in place of any of that name.

        `name` is parts of a-z, 0-9 and `._-`, with `/` between, none beginning with a sign. Raises
        `Unavailable` or `Refused`; the object may be there all the same.
        """
