"""The readers of the requests that create events, through three endpoints.

The digest of a request identifies it, so that a repeated request creates no second event.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from chalicelib.events.event import ID, Event, Target, TargetKind
from chalicelib.http.bodies import read_fields
from chalicelib.http.errors import BadRequestError, ClientError, TooLargeError
from chalicelib.lazy import lazy
from chalicelib.units import Milliseconds, Seconds, to_milliseconds

if TYPE_CHECKING:
    import ulid
else:
    ulid = lazy("ulid")

MAX_AHEAD_SECONDS = 366 * 86_400
MAX_PAYLOAD_BYTES = 65_536
MAX_TEXT_CHARACTERS = 10_000
EVENT = {"at", "delay", "target", "payload", "id"}
TIMER = {"hours", "minutes", "seconds", "url"}
PART_SECONDS = {"hours": 3_600, "minutes": 60, "seconds": 1}
NUMBER = re.compile(r"[0-9]{1,20}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")
MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
)
"""The accepted form of ISO 8601: a calendar date, a time of day and its zone. The other forms that
`fromisoformat` accepts depend on Python's version."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MAX_SECONDS = 10**11
"""Larger numbers of seconds are replaced by this one, which is too far ahead as well."""
ISO = "at: give a time with its zone, such as 2026-11-21T10:00:00Z"
SINCE_1970 = "give seconds since 1970, such as 1767225600 or 1767225600.5"
UTF_8 = {"utf-8", "us-ascii"}


class UnsupportedTypeError(ClientError):
    """A body is of a type that is not read."""

    status = 415
    code = "unsupported_media_type"


@dataclass(frozen=True, slots=True)
class RequestedEvent:
    """A requested event; `digest` identifies the request."""

    event_id: str
    at: Milliseconds
    target: Target
    payload: str
    digest: str

    def event(self, now: Milliseconds) -> Event:
        """Return the event, accepted at a time."""
        return Event(
            self.event_id, self.at, now, self.target, self.payload, self.digest, next_at=self.at
        )


def read_event(body: bytes, queues: Collection[str], now: Milliseconds) -> RequestedEvent:
    """Read `POST /api/v1/events`. Raises `BadRequestError` and `TooLargeError`."""
    fields = read_fields(body, EVENT)
    payload = "" if "payload" not in fields else _json(fields["payload"])
    if len(payload.encode()) > MAX_PAYLOAD_BYTES:
        raise TooLargeError(f"payload: give at most {MAX_PAYLOAD_BYTES} bytes of JSON")
    return RequestedEvent(
        event_id=_id(fields["id"]) if "id" in fields else str(ulid.ULID()),
        at=_when(fields, now),
        target=_target(fields.get("target"), queues),
        payload=payload,
        digest=_digest(_json(fields)),
    )


def read_timer(body: bytes, now: Milliseconds) -> RequestedEvent:
    """Read `POST /timers`. Raises `BadRequestError`."""
    fields = read_fields(body, TIMER)
    if wrong := [name for name in PART_SECONDS if not _is_whole(fields.get(name))]:
        raise BadRequestError(f"{', '.join(wrong)}: give a whole number from 0")
    seconds = sum(
        min(int(fields[name]), MAX_SECONDS) * length for name, length in PART_SECONDS.items()
    )
    if seconds > MAX_AHEAD_SECONDS:
        raise BadRequestError(f"hours, minutes, seconds: give at most {MAX_AHEAD_SECONDS} seconds")
    url = fields.get("url")
    if not isinstance(url, str):
        raise BadRequestError("url: give the URL that gets a POST")
    event_id = str(ulid.ULID())
    return RequestedEvent(
        event_id, now + to_milliseconds(seconds), Target(TargetKind.URL, url), "", _digest(event_id)
    )


def read_echo(body: bytes, ts: str | None, now: Milliseconds) -> RequestedEvent:
    """Read `POST /echoAtTime`. Raises `BadRequestError` and `TooLargeError`.

    The event's id is the SHA-1 of the milliseconds in decimal, a line feed and the text.
    """
    try:
        said = body.decode()
    except UnicodeDecodeError:
        raise BadRequestError("the body must be text in UTF-8") from None
    if not said:
        raise BadRequestError("the body is empty: give the text to print")
    if len(said) > MAX_TEXT_CHARACTERS:
        raise TooLargeError(
            f"the body has {len(said)} characters: give at most {MAX_TEXT_CHARACTERS}"
        )
    if ts is not None and NUMBER.fullmatch(ts) is None:
        raise BadRequestError(f"ts: {SINCE_1970}")
    at = now if ts is None else _milliseconds(float(ts))
    _check_ahead(at, now, "ts")
    name = f"{at}\n{said}".encode(errors="surrogatepass")
    event_id = hashlib.sha1(name, usedforsecurity=False).hexdigest()
    return RequestedEvent(event_id, at, Target(TargetKind.LOG), _json(said), _digest(event_id))


def check_text(content_type: str) -> None:
    """Raise `UnsupportedTypeError` if the type is not text in UTF-8."""
    kind, *parameters = [part.strip() for part in content_type.lower().split(";")]
    charsets = {part[8:].strip('"') for part in parameters if part.startswith("charset=")}
    if not (kind.startswith("text/") and charsets <= UTF_8):
        raise UnsupportedTypeError("give the text as text/plain, in UTF-8")


def _is_whole(part: object) -> bool:
    """Return whether a value is a whole number from 0; `1.0` is one, as in JSON Schema."""
    number = isinstance(part, int | float) and not isinstance(part, bool)
    return number and part >= 0 and part == part // 1  # type: ignore[operator]


def _json(value: Any) -> str:
    """Return a value as JSON: equal values, equal texts. Escapes all that is not ASCII."""
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


def _when(fields: Mapping[str, Any], now: Milliseconds) -> Milliseconds:
    """Return the time of the event."""
    if ("at" in fields) == ("delay" in fields):
        raise BadRequestError("give one of at and delay")
    if "delay" in fields:
        name, at = "delay", now + _seconds(fields["delay"], "delay: give seconds, from 0")
    elif isinstance(fields["at"], str):
        name, at = "at", _moment(fields["at"])
    else:
        name, at = "at", _seconds(fields["at"], f"{ISO}, or seconds since 1970")
    _check_ahead(at, now, name)
    return at


def _seconds(given: object, wanted: str) -> Milliseconds:
    """Parse seconds from 0, which may have a fraction."""
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not (number and given >= 0):  # type: ignore[operator]
        raise BadRequestError(wanted)
    return _milliseconds(given)  # type: ignore[arg-type]


def _milliseconds(seconds: Seconds) -> Milliseconds:
    return round(min(seconds, MAX_SECONDS) * 1000)


def _moment(given: str) -> Milliseconds:
    """Parse a time, rounded down."""
    try:
        moment = datetime.fromisoformat(given) if MOMENT.fullmatch(given) else None
    except ValueError:
        moment = None
    if moment is None:
        raise BadRequestError(ISO)
    at = (moment - EPOCH) // timedelta(milliseconds=1)
    if at < 0:
        raise BadRequestError("at: give a time since 1970")
    return at


def _check_ahead(at: Milliseconds, now: Milliseconds, name: str) -> None:
    if at > now + to_milliseconds(MAX_AHEAD_SECONDS):
        raise BadRequestError(
            f"{name}: give a time at most {MAX_AHEAD_SECONDS // 86_400} days ahead"
        )


def _target(given: object, queues: Collection[str]) -> Target:
    match given:
        case {"url": str(url), **rest} if not rest:
            return Target(TargetKind.URL, url)
        case {"queue": str(name), **rest} if not rest:
            if name not in queues:
                listed = ", ".join(sorted(queues)) or "none"
                raise BadRequestError(f"target: no queue {name[:30]!r}; there are {listed}")
            return Target(TargetKind.QUEUE, name)
        case {"log": True, **rest} if not rest:
            return Target(TargetKind.LOG)
        case _:
            raise BadRequestError('target: give {"url": …}, {"queue": …} or {"log": true}')
