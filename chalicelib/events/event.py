"""An event and its item in the table.

The index `due` has every event under its status and one of eight shards. It orders active events by
their next attempt, and others by the time they were done. So one query per shard finds all events
that are due or overdue, however many are due later.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeVar
from zlib import crc32

from chalicelib.storage.conditions import attr
from chalicelib.storage.items import Item, Key, Value, number, text
from chalicelib.storage.messages import MalformedError
from chalicelib.units import Milliseconds, Seconds

Part = TypeVar("Part", str, int)

PARTITION = "TIMER#"
SORT = "TIMER"
ID = re.compile("[A-Za-z0-9_-]{1,64}")
"""The id of an event."""
SHARDS = 8
"""A shard takes 1,000 write units per second, and an active event costs two."""
LEASE_SECONDS = 60
KEPT_SECONDS = 30 * 86_400
"""The time that an event is kept after it is done."""


class Status(StrEnum):
    """The status of an event."""

    ACTIVE = "ACTIVE"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


IS_ACTIVE = attr("status") == str(Status.ACTIVE)


class TargetKind(StrEnum):
    """The kind of an event's target."""

    URL = "url"
    QUEUE = "queue"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Target:
    """The target of an event: a URL, the name of a queue, or the log, which has no address."""

    kind: TargetKind
    address: str = ""

    def to_json(self) -> dict[str, Any]:
        return {str(self.kind): True if self.kind is TargetKind.LOG else self.address}


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt to deliver an event; `ended` is 0 if it did not end.

    `code` is the HTTP status of the answer, or 0 without an answer.
    """

    started: Milliseconds
    ended: Milliseconds = 0
    code: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    """The result of an attempt to deliver an event.

    `code` is an HTTP status, or 0 without one. `error` is empty if the event was delivered. After
    a final result the event is not tried again. `retry_after` is the wait that the receiver asks
    for.
    """

    code: int = 0
    error: str = ""
    is_final: bool = False
    retry_after: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """An event, as it is stored.

    `request` is the digest of the request, which identifies a repeated request. `next_at` is the
    earliest time of the next attempt. `claim` names the worker that delivers now, until `lease`.
    `tries` counts the attempts, and `round` those before the last redrive.
    """

    event_id: str
    at: Milliseconds
    created: Milliseconds
    target: Target
    payload: str
    request: str
    status: Status = Status.ACTIVE
    next_at: Milliseconds = 0
    claim: str = ""
    lease: Milliseconds = 0
    tries: int = 0
    round: int = 0
    attempts: tuple[Attempt, ...] = ()

    @classmethod
    def of(cls, item: Item) -> Event:
        """Return the event of an item. Raises `ValueError` and `TypeError` if it has none."""
        attempts: Any = item.get("attempts", [])
        return cls(
            event_id=text(item, "PK").removeprefix(PARTITION),
            at=number(item, "at"),
            created=number(item, "created"),
            target=Target(TargetKind(text(item, "kind")), text(item, "address")),
            payload=text(item, "payload"),
            request=text(item, "request"),
            status=Status(text(item, "status")),
            next_at=number(item, "next_at"),
            claim=text(item, "claim"),
            lease=number(item, "lease"),
            tries=number(item, "tries"),
            round=number(item, "round"),
            attempts=tuple(Attempt(**attempt) for attempt in attempts),
        )

    @property
    def last_error(self) -> str:
        """Return the error of the last failed attempt, or an empty text if none failed."""
        return next((one.error for one in reversed(self.attempts) if one.error), "")

    def end(self, status: Status, now: Milliseconds) -> dict[str, Value]:
        """Return the attributes of the event after it was done, until TTL removes it."""
        return {
            "status": str(status),
            "batch": batch(status, self.event_id),
            "due": now,
            "ttl": now // 1000 + KEPT_SECONDS,
        }

    def new_item(self) -> Item:
        """Return the item of a new event: active, and never tried."""
        return key(self.event_id).item(
            at=self.at,
            created=self.created,
            kind=str(self.target.kind),
            address=self.target.address,
            payload=self.payload,
            request=self.request,
            status=str(Status.ACTIVE),
            next_at=self.at,
            batch=batch(Status.ACTIVE, self.event_id),
            due=self.at,
        )


class Claims(Protocol):
    """The claims on events, as this process knows them: who may deliver an event, and how long.

    Whether a stored claim still holds depends on the engine: processes that share only the table
    agree on a time, and one process alone knows what it delivers.

    A worker holds its claim before it writes it to the table, and releases it after it wrote the
    outcome. So a claim in the table is held for as long as its worker may deliver.
    """

    def hold(self, claim: str) -> None:
        """Note a claim of this process before it is written to the table."""

    def release(self, claim: str) -> None:
        """Forget a claim after its worker stopped delivering."""

    def held_until(self, event: Event, now: Milliseconds) -> Milliseconds:
        """Return the time until which no other worker may deliver an event; 0 if any may."""


class Leases:
    """`Claims` for processes that share only the table: a claim ends with its lease."""

    def hold(self, claim: str) -> None:
        """Do nothing: the lease is stored with the claim."""

    def release(self, claim: str) -> None:
        """Do nothing: the write of the outcome removes the lease."""

    def held_until(self, event: Event, now: Milliseconds) -> Milliseconds:  # noqa: ARG002  the lease has its own time
        return event.lease


def key(event_id: str) -> Key:
    """Return the key of an event."""
    return Key(PARTITION + event_id, SORT)


def batches(status: Status) -> list[str]:
    """Return the parts of the index that have the events of a status."""
    return [f"{status}#{shard}" for shard in range(SHARDS)]


def batch(status: Status, event_id: str) -> str:
    """Return the part of the index that has an event of a status."""
    return batches(status)[crc32(event_id.encode()) % SHARDS]


def attempts_value(attempts: tuple[Attempt, ...]) -> list[Value]:
    """Return attempts as they are stored."""
    return [asdict(one) for one in attempts]


def message(event_id: str) -> str:
    """Return the body of the message that asks to deliver an event."""
    return json.dumps({"event": event_id})


def event_id_in(body: object) -> str:
    """Return the id of the event that a message is about. Raises `MalformedError`."""
    try:
        return checked(json.loads(body)["event"], str)  # type: ignore[arg-type]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise MalformedError(f'expected {{"event": id}}: {error!r}') from error


def checked(value: Any, kind: type[Part]) -> Part:
    """Return a part of a message if it has this type and is not empty. Raises `TypeError`."""
    if type(value) is not kind or value == "":
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
