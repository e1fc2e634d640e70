"""The JSON of an event, and its countdown as a badge."""

from __future__ import annotations

import json
from typing import Any

from chalicelib.badges.badge import PLAIN, Badge
from chalicelib.badges.options import Options
from chalicelib.events.event import Attempt, Event, Status
from chalicelib.http.times import to_iso8601
from chalicelib.units import Milliseconds

LABEL = "event"
COLORS = {
    Status.ACTIVE: "blue",
    Status.SUCCESS: "brightgreen",
    Status.ERROR: "red",
    Status.CANCELLED: "lightgrey",
}
OUTCOMES = {Status.SUCCESS: "fired", Status.ERROR: "failed", Status.CANCELLED: "cancelled"}
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


def badge(event: Event, now: Milliseconds, options: Options = PLAIN) -> Badge:
    """Return the countdown as a badge."""
    message = OUTCOMES.get(event.status) or countdown(event.at - now)
    return Badge.of(LABEL, message, COLORS[event.status], options)


def countdown(milliseconds: Milliseconds) -> str:
    """Return a time left as text: `in 3 days`, `in 47 hours`, and `due now` at the end."""
    seconds = -(-milliseconds // 1000)
    for name, length in UNIT_SECONDS:
        amount = seconds // length
        if amount >= MIN_AMOUNT or (amount == 1 and name == "second"):
            return f"in {amount} {name}{'s' if amount > 1 else ''}"
    return "due now"


def _attempt(attempt: Attempt) -> dict[str, Any]:
    document: dict[str, Any] = {"started": to_iso8601(attempt.started)}
    if attempt.ended:
        document["ended"] = to_iso8601(attempt.ended)
    if attempt.code:
        document["status"] = attempt.code
    if attempt.error:
        document["error"] = attempt.error
    return document
