"""The JSON of an event, and its countdown as a badge."""

from __future__ import annotations

import json
from typing import Any

from chalicelib.badges.options import PLAIN, Badge, Look
from chalicelib.events.event import Attempt, Event, Status
from chalicelib.units import Milliseconds, WholeSeconds, to_iso8601

LABEL = "event"
OUTCOMES = {
    Status.SUCCESS: ("\u2713 fired", "brightgreen"),
    Status.ERROR: ("\u2717 failed", "red"),
    Status.CANCELLED: ("cancelled", "lightgrey"),
}
"""The message and the colour of an event that is done. A glyph tells them apart without colours."""
WARNING = "\u25b2"
WAITING_COLOR, WARNING_COLOR = "blue", "orange"
LATE_SECONDS = 60
"""An event that is due for this long is late: deliveries begin within seconds."""
UNIT_SECONDS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
MIN_AMOUNT = 2
"""A countdown has the largest unit with at least this amount: 2 days, then 47 hours."""


def to_json(event: Event) -> dict[str, Any]:
    """Return an event as JSON, without the fields that have no value."""
    document: dict[str, Any] = {
        "id": event.event_id,
        "status": str(event.status),
        "at": to_iso8601(event.at),
        "created": to_iso8601(event.created),
        "target": event.target.to_json(),
        "attempts": [_attempt(attempt) for attempt in event.attempts],
        "attempt_count": event.tries,
    }
    if event.payload:
        document["payload"] = json.loads(event.payload)
    if event.status is Status.ACTIVE:
        document["next_attempt"] = to_iso8601(event.next_at)
    if event.claim:
        document["claim"] = {"by": event.claim, "until": to_iso8601(event.lease)}
    if event.last_error:
        document["last_error"] = event.last_error
    return document


def timer(event: Event, now: Milliseconds) -> dict[str, Any]:
    """Return an event as a timer: whole seconds until it elapses, at least 0."""
    left = max(0, -(-(event.at - now) // 1000)) if event.status is Status.ACTIVE else 0
    return {"id": event.event_id, "time_left": left, "status": str(event.status)}


def badge(event: Event, now: Milliseconds, options: Look = PLAIN) -> Badge:
    """Return the countdown as a badge."""
    message, color = OUTCOMES.get(event.status) or _describe_active(event, now)
    return options.badge(LABEL, message, color)


def countdown(milliseconds: Milliseconds) -> str:
    """Return a time left as text: `in 3 days`, `in 47 hours`, and `due now` at the end."""
    seconds = -(-milliseconds // 1000)
    return f"in {_duration(seconds)}" if seconds > 0 else "due now"


def _describe_active(event: Event, now: Milliseconds) -> tuple[str, str]:
    left = max(event.at, event.next_at) - now
    tries = event.tries - event.round  # since the last redrive
    if tries > 0 and any(attempt.error for attempt in event.attempts[-tries:]):
        return f"{WARNING} failing, retry {countdown(left)}", WARNING_COLOR
    if left <= -1000 * LATE_SECONDS:
        return f"{WARNING} late by {_duration(-left // 1000)}", WARNING_COLOR
    return countdown(left), WAITING_COLOR


def _duration(seconds: WholeSeconds) -> str:
    """Return a time of a second or more as text, rounded down: `3 days`, `47 hours`."""
    large = (unit for unit in UNIT_SECONDS if seconds >= MIN_AMOUNT * unit[1])
    name, length = next(large, UNIT_SECONDS[-1])
    amount = seconds // length
    return f"{amount} {name}{'s' if amount > 1 else ''}"


def _attempt(attempt: Attempt) -> dict[str, Any]:
    document: dict[str, Any] = {"started": to_iso8601(attempt.started)}
    if attempt.ended:
        document["ended"] = to_iso8601(attempt.ended)
    if attempt.code:
        document["status"] = attempt.code
    if attempt.error:
        document["error"] = attempt.error
    return document
