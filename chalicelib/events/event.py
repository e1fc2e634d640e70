"""An event: something that happens once, at a time. What it is, and how it lies in the table.

All times are milliseconds since 1970. The index `due` holds every event under its status and one of
eight shards, ordered by when something is to happen to it: an active one by its next attempt, one
that is done by when that was. So what is due is one query a shard, however many lie ahead, and what
was missed is found by the same query.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar
from zlib import crc32

from chalicelib.storage.items import Item, Key, Value, number, text
from chalicelib.storage.messages import MalformedError

Part = TypeVar("Part", str, int)

PARTITION = "TIMER#"
SORT = "TIMER"
ID = re.compile("[A-Za-z0-9_-]{1,64}")
"""What names an event."""
SHARDS = 8
"""A shard takes 1,000 write units a second, and an event costs it two while it is active."""
KEPT_SECONDS = 30 * 86_400
"""How long an event that is done can be looked at."""


class Status(StrEnum):
    """What has become of an event."""

    ACTIVE = "ACTIVE"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
    CANCELLED = "CANCELLED"


class Kind(StrEnum):
    """Where an event goes."""

    URL = "url"
    QUEUE = "queue"
    LOG = "log"


@dataclass(frozen=True, slots=True)
class Target:
    """Where an event goes: a URL, the name of a queue, or the log, which has no address."""

    kind: Kind
    address: str = ""

    def to_json(self) -> dict[str, Any]:
        return {str(self.kind): True if self.kind is Kind.LOG else self.address}


@dataclass(frozen=True, slots=True)
class Attempt:
    """A delivery that began, and how it ended; one that did not end has no `ended`.

    `code` is the HTTP status of the answer, 0 where there was none.
    """

    started: int
    ended: int = 0
    code: int = 0
    error: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """An event as it stands.

    `request` is the digest of what was asked for, by which a repeated request is known. `next_at`
    is the earliest time of the next attempt. `claim` names the worker that delivers now, who has
    until `lease` for it. `tries` counts the attempts, `round` those before the last redrive.
    """

    event_id: str
    at: int
    created: int
    target: Target
    payload: str
    request: str
    status: Status = Status.ACTIVE
    next_at: int = 0
    claim: str = ""
    lease: int = 0
    tries: int = 0
    round: int = 0
    attempts: tuple[Attempt, ...] = ()

    @classmethod
    def of(cls, item: Item) -> Event:
        """The event that an item is. Raises `ValueError` and `TypeError` for any other."""
        attempts: Any = item.get("attempts", [])
        return cls(
            event_id=text(item, "PK").removeprefix(PARTITION),
            at=number(item, "at"),
            created=number(item, "created"),
            target=Target(Kind(text(item, "kind")), text(item, "address")),
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
        """What the last attempt that failed failed for; empty where none did."""
        return next((one.error for one in reversed(self.attempts) if one.error), "")

    def new_item(self) -> Item:
        """An event as it is stored first: active, and never tried."""
        pk, sk = key(self.event_id)
        return {
            "PK": pk,
            "SK": sk,
            "at": self.at,
            "created": self.created,
            "kind": str(self.target.kind),
            "address": self.target.address,
            "payload": self.payload,
            "request": self.request,
            "status": str(Status.ACTIVE),
            "next_at": self.at,
            "batch": batch(Status.ACTIVE, self.event_id),
            "due": self.at,
        }


def key(event_id: str) -> Key:
    """Where an event lies."""
    return Key(PARTITION + event_id, SORT)


def batches(status: Status) -> list[str]:
    """The parts of the index that hold the events of a status."""
    return [f"{status}#{shard}" for shard in range(SHARDS)]


def batch(status: Status, event_id: str) -> str:
    """The part of the index that holds an event of a status."""
    return batches(status)[crc32(event_id.encode()) % SHARDS]


def attempts_value(attempts: tuple[Attempt, ...]) -> list[Value]:
    """Attempts as a table holds them."""
    return [
        {"started": one.started, "ended": one.ended, "code": one.code, "error": one.error}
        for one in attempts
    ]


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
    """Return a part of a message of this very type, not empty. Raises `TypeError`."""
    if type(value) is not kind or value == "":
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
