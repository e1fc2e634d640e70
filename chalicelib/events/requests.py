"""The readers of the requests that create events, through three endpoints.

The digest of a request identifies it, so that a repeated request creates no second event.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar

from chalicelib.events.event import ID, Event, Target, TargetKind
from chalicelib.http.errors import BadRequestError, ClientError, TooLargeError
from chalicelib.http.fields import Body, Field, closed, integer, schema, string, text_like
from chalicelib.outgoing import urls
from chalicelib.settings import QUEUE_NAME
from chalicelib.ulids import new_ulid
from chalicelib.units import Milliseconds, to_milliseconds

MAX_AHEAD_SECONDS = 366 * 86_400
AT_MOST_AHEAD = f"at most {MAX_AHEAD_SECONDS // 86_400} days ahead"
MAX_PAYLOAD_BYTES = 65_536
MAX_TEXT_CHARACTERS = 10_000
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
ISO = "give a time with its zone, such as 2026-11-21T10:00:00Z"
SINCE_1970 = "give seconds since 1970, such as 1767225600 or 1767225600.5"
WHOLE = "give a whole number from 0"
UTF_8 = {"utf-8", "us-ascii"}


class UnsupportedTypeError(ClientError):
    """A body is of a type that is not read."""

    status = 415
    code = "unsupported_media_type"


def check_text(content_type: str) -> None:
    """Raise `UnsupportedTypeError` if the type is not text in UTF-8."""
    kind, *parameters = [part.strip() for part in content_type.lower().split(";")]
    charsets = {part[8:].strip('"') for part in parameters if part.startswith("charset=")}
    if not (kind.startswith("text/") and charsets <= UTF_8):
        raise UnsupportedTypeError("give the text as text/plain, in UTF-8")


def _json(value: Any) -> str:
    """Return a value as JSON: equal values, equal texts. Escapes all that is not ASCII."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise BadRequestError("the body has a number that JSON does not know") from None


def _digest(what: str) -> str:
    return hashlib.sha256(what.encode()).hexdigest()


def _number(given: object, wanted: str) -> float:
    if isinstance(given, int | float) and not isinstance(given, bool) and given >= 0:
        return given
    raise ValueError(wanted)


def _seconds(given: object, wanted: str = "give seconds, from 0") -> Milliseconds:
    """Parse seconds from 0, which may have a fraction."""
    return round(min(_number(given, wanted), MAX_SECONDS) * 1000)


def _part(given: object) -> int:
    """Return a whole number from 0; `1.0` is one, as in JSON Schema."""
    number = _number(given, WHOLE)
    if number != number // 1:
        raise ValueError(WHOLE)
    return int(min(number, MAX_SECONDS))


def _payload(given: object) -> str:
    payload = _json(given)
    if len(payload.encode()) > MAX_PAYLOAD_BYTES:
        raise TooLargeError(f"payload: give at most {MAX_PAYLOAD_BYTES} bytes of JSON")
    return payload


def _url(given: object) -> Target:
    if isinstance(given, str):
        return Target(TargetKind.URL, given)
    raise ValueError("give the URL that gets a POST")


def _at(given: object) -> Milliseconds:
    if not isinstance(given, str):
        return _seconds(given, f"{ISO}, or seconds since 1970")
    try:
        moment = datetime.fromisoformat(given) if MOMENT.fullmatch(given) else None
    except ValueError:
        moment = None
    if moment is None:
        raise ValueError(ISO)
    at = (moment - EPOCH) // timedelta(milliseconds=1)
    if at < 0:
        raise ValueError("give a time since 1970")
    return at


def _check_ahead(at: Milliseconds, now: Milliseconds, name: str) -> None:
    if at > now + to_milliseconds(MAX_AHEAD_SECONDS):
        raise BadRequestError(f"{name}: give a time {AT_MOST_AHEAD}")


def _target(given: object) -> Target:
    match given:
        case {"url": str(url), **rest} if not rest:
            return Target(TargetKind.URL, url)
        case {"queue": str(name), **rest} if not rest:
            return Target(TargetKind.QUEUE, name)
        case {"log": True, **rest} if not rest:
            return Target(TargetKind.LOG)
    raise ValueError('give {"url": …}, {"queue": …} or {"log": true}')


_id = text_like(ID, "give 1 to 64 letters, digits, - or _")
EVENT_ID = schema("EventId", string(ID))
PORTS = " or ".join(map(str, urls.PORTS))
URL = schema(
    "Url",
    string(format="uri", maxLength=urls.MAX_URL_CHARACTERS),
    f"https, port {PORTS}, a public host. The operator may allow others.",
)
ADDRESSES = {"url": URL, "queue": string(QUEUE_NAME), "log": {"const": True}}
TARGET = schema(
    "Target",
    {"oneOf": [closed({kind: address}) for kind, address in ADDRESSES.items()]},
    "The place that an event goes to: a URL, a queue that the operator has listed, or the log.",
)


class EventBody(Body):
    """A new event, which has one of `at` and `delay`."""

    rules: ClassVar = {"oneOf": [{"required": ["at"]}, {"required": ["delay"]}]}
    target = Field(_target, TARGET)
    at = Field[Milliseconds | None](
        _at,
        {"oneOf": [string(format="date-time"), {"type": "number", "minimum": 0}]},
        f"ISO 8601 with a zone, or seconds since 1970; {AT_MOST_AHEAD}.",
        default=None,
    )
    delay = Field[Milliseconds | None](
        _seconds,
        {"type": "number", "minimum": 0, "maximum": MAX_AHEAD_SECONDS},
        "Seconds from now.",
        default=None,
    )
    payload = Field(
        _payload,
        {},
        f"Any JSON of at most {MAX_PAYLOAD_BYTES} bytes, in ASCII with escapes. Without a payload,"
        ' `{"id"}` is sent.',
        default="",
    )
    event_id = Field(_id, EVENT_ID, name="id", default="")


class TimerBody(Body):
    """A timer. The sum of its parts is at most 366 days."""

    hours = Field(_part, integer(0, MAX_AHEAD_SECONDS // 3_600))
    minutes = Field(_part, integer(0, MAX_AHEAD_SECONDS // 60))
    seconds = Field(_part, integer(0, MAX_AHEAD_SECONDS))
    url = Field(_url, URL)


def read_event(body: bytes, queues: Collection[str], now: Milliseconds) -> Event:
    """Read `POST /api/v1/events`. Raises `BadRequestError` and `TooLargeError`."""
    asked = EventBody(body)
    event_id, at = asked.event_id or new_ulid(now), _when(asked, now)
    target = asked.target
    if target.kind is TargetKind.QUEUE and target.address not in queues:
        listed = ", ".join(sorted(queues)) or "none"
        raise BadRequestError(f"target: no queue {target.address[:30]!r}; there are {listed}")
    request = _digest(_json(asked.given))
    return Event(event_id, at, now, target, asked.payload, request, next_at=at)


def read_timer(body: bytes, now: Milliseconds) -> Event:
    """Read `POST /timers`. Raises `BadRequestError`."""
    asked, event_id = TimerBody(body), new_ulid(now)
    seconds = asked.hours * 3_600 + asked.minutes * 60 + asked.seconds
    if seconds > MAX_AHEAD_SECONDS:
        raise BadRequestError(f"hours, minutes, seconds: give at most {MAX_AHEAD_SECONDS} seconds")
    at = now + to_milliseconds(seconds)
    return Event(event_id, at, now, asked.url, "", _digest(event_id), next_at=at)


def _when(asked: EventBody, now: Milliseconds) -> Milliseconds:
    if asked.at is not None and asked.delay is None:
        name, at = "at", asked.at
    elif asked.delay is not None and asked.at is None:
        name, at = "delay", now + asked.delay
    else:
        raise BadRequestError("give one of at and delay")
    _check_ahead(at, now, name)
    return at


def read_echo(body: bytes, ts: str | None, now: Milliseconds) -> Event:
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
    at = now if ts is None else _seconds(float(ts))
    _check_ahead(at, now, "ts")
    name = f"{at}\n{said}".encode(errors="surrogatepass")
    event_id = hashlib.sha1(name, usedforsecurity=False).hexdigest()
    target, request = Target(TargetKind.LOG), _digest(event_id)
    return Event(event_id, at, now, target, _json(said), request, next_at=at)
