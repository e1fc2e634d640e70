"""What the three doors ask for, read from their bodies: an event, and what is wrong with it.

A request is known again by its digest, so that asking twice makes one event.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ulid import ULID

from chalicelib.timers.event import Event, Kind, Target

MAX_AHEAD_SECONDS = 366 * 86_400
MAX_PAYLOAD_BYTES = 65_536
MAX_TEXT_CHARACTERS = 10_000
ID = re.compile("[A-Za-z0-9_-]{1,64}")
EVENT = {"at", "delay", "target", "payload", "id"}
TIMER = {"hours", "minutes", "seconds", "url"}
PARTS = {"hours": 3_600, "minutes": 60, "seconds": 1}
NUMBER = re.compile(r"[0-9]{1,11}(\.[0-9]{1,9})?")
LATEST = 10**11
"""Seconds since 1970 that a time may be at most, before it is held against the year ahead."""


class BadRequestError(ValueError):
    """A request is wrong; the message says what to give."""


class TooLargeError(BadRequestError):
    """A request has more than fits into an event."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An event that somebody wants; `digest` tells the request from every other."""

    event_id: str
    at: int
    target: Target
    payload: str
    digest: str

    def event(self, now: int) -> Event:
        """The event, accepted at a time."""
        return Event(
            self.event_id, self.at, now, self.target, self.payload, self.digest, next_at=self.at
        )


def read_event(body: bytes, queues: Collection[str], now: int) -> Wanted:
    """`POST /api/v1/events`. Raises `BadRequestError` and `TooLargeError`."""
    fields = _fields(body, EVENT)
    payload = "" if "payload" not in fields else _json(fields["payload"])
    if len(payload.encode()) > MAX_PAYLOAD_BYTES:
        raise TooLargeError(f"payload: give at most {MAX_PAYLOAD_BYTES} bytes of JSON")
    return Wanted(
        event_id=_id(fields["id"]) if "id" in fields else str(ULID()),
        at=_when(fields, now),
        target=_target(fields.get("target"), queues),
        payload=payload,
        digest=_digest(_json(fields)),
    )


def read_timer(body: bytes, now: int) -> Wanted:
    """`POST /timers`. Raises `BadRequestError`."""
    fields = _fields(body, TIMER)
    seconds = 0
    for name, length in PARTS.items():
        part = fields.get(name)
        if not isinstance(part, int) or isinstance(part, bool) or part < 0:
            raise BadRequestError(f"{name}: give a whole number from 0")
        seconds += part * length
    if seconds > MAX_AHEAD_SECONDS:
        raise BadRequestError(f"hours, minutes, seconds: give at most {MAX_AHEAD_SECONDS} seconds")
    url = fields.get("url")
    if not isinstance(url, str):
        raise BadRequestError("url: give the URL that gets a POST")
    event_id = str(ULID())
    return Wanted(event_id, now + seconds * 1000, Target(Kind.URL, url), "", _digest(event_id))


def read_echo(body: bytes, ts: str | None, now: int) -> Wanted:
    """`POST /echoAtTime`. Raises `BadRequestError` and `TooLargeError`.

    Its id is the SHA-1 of time and text: milliseconds in decimal, a new line, the text.
    """
    try:
        said = body.decode()
    except UnicodeDecodeError:
        raise BadRequestError("the body must be text in UTF-8") from None
    if not said:
        raise BadRequestError("the body is empty: give the text to print")
    if len(said) > MAX_TEXT_CHARACTERS:
        raise TooLargeError(f"the body has {len(said)} characters: give {MAX_TEXT_CHARACTERS}")
    at = now if ts is None else _seconds(ts, "ts")
    _check_ahead(at, now, "ts")
    name = f"{at}\n{said}".encode(errors="surrogatepass")
    event_id = hashlib.sha1(name, usedforsecurity=False).hexdigest()
    return Wanted(event_id, at, Target(Kind.LOG), _json(said), _digest(event_id))


def _fields(body: bytes, known: set[str]) -> Mapping[str, Any]:
    """The body: a JSON object of known fields."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise BadRequestError("the body must be a JSON object") from None
    if not isinstance(fields, dict):
        raise BadRequestError("the body must be a JSON object")
    if unknown := sorted(fields.keys() - known):
        raise BadRequestError(f"no field {unknown[0][:30]!r}: there are {', '.join(sorted(known))}")
    return fields


def _json(value: Any) -> str:
    """One text for one value. A text that UTF-8 can't hold stays escaped."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise BadRequestError("the body has a number that JSON does not know") from None


def _digest(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()


def _id(given: object) -> str:
    if not isinstance(given, str) or ID.fullmatch(given) is None:
        raise BadRequestError("id: give 1 to 64 letters, digits, - or _")
    return given


def _when(fields: Mapping[str, Any], now: int) -> int:
    """Milliseconds since 1970."""
    if ("at" in fields) == ("delay" in fields):
        raise BadRequestError("give one of at and delay")
    name = "at" if "at" in fields else "delay"
    given = fields[name]
    if name == "at" and isinstance(given, str) and NUMBER.fullmatch(given) is None:
        at = _moment(given)
    else:
        at = _seconds(given, name) + (now if name == "delay" else 0)
    _check_ahead(at, now, name)
    return at


def _seconds(given: object, name: str) -> int:
    """Seconds from 0, fractions allowed, as milliseconds."""
    if isinstance(given, str) and NUMBER.fullmatch(given):
        given = float(given)
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not (number and 0 <= given <= LATEST):  # type: ignore[operator]
        kind = (
            "an ISO 8601 time with its zone, or seconds since 1970" if name == "at" else "seconds"
        )
        raise BadRequestError(f"{name}: give {kind}, from 0")
    return int(given * 1000)  # type: ignore[operator]


def _moment(given: str) -> int:
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise BadRequestError("at: give a time with its zone, such as 2026-11-21T10:00:00Z")
    return max(0, int(moment.astimezone(UTC).timestamp() * 1000))


def _check_ahead(at: int, now: int, name: str) -> None:
    if at > now + MAX_AHEAD_SECONDS * 1000:
        raise BadRequestError(
            f"{name}: give a time at most {MAX_AHEAD_SECONDS // 86_400} days ahead"
        )


def _target(given: object, queues: Collection[str]) -> Target:
    match given:
        case {"url": str(url), **rest} if not rest:
            return Target(Kind.URL, url)
        case {"queue": str(name), **rest} if not rest:
            if name not in queues:
                listed = ", ".join(sorted(queues)) or "none"
                raise BadRequestError(f"target: no queue {name[:30]!r}; there are {listed}")
            return Target(Kind.QUEUE, name)
        case {"log": True, **rest} if not rest:
            return Target(Kind.LOG)
        case _:
            raise BadRequestError('target: give {"url": …}, {"queue": …} or {"log": true}')
