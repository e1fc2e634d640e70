"""An event as its owner sees it, and its countdown as a badge."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from chalicelib.badges import badge as badges
from chalicelib.badges.options import Options
from chalicelib.events.event import Attempt, Event, Status

LABEL = "event"
COLORS = {
    Status.ACTIVE: "blue",
    Status.SUCCESS: "brightgreen",
    Status.ERROR: "red",
    Status.CANCELLED: "lightgrey",
}
SAID = {Status.SUCCESS: "fired", Status.ERROR: "failed", Status.CANCELLED: "cancelled"}
UNITS = (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1))
ENOUGH = 2
"""From so many of a unit on it is the unit to tell: 47 hours, then 2 days."""


def document(event: Event) -> dict[str, Any]:
    """All there is to know of an event; what it has not is left out."""
    told: dict[str, Any] = {
        "id": event.event_id,
        "status": str(event.status),
        "at": moment(event.at),
        "created": moment(event.created),
        "target": event.target.document(),
        "attempts": [_attempt(attempt) for attempt in event.attempts],
        "attempt_count": event.tries,
    }
    if event.payload:
        told["payload"] = json.loads(event.payload)
    if event.status is Status.ACTIVE:
        told["next_attempt"] = moment(event.next_at)
    if event.claim:
        told["claim"] = {"by": event.claim, "until": moment(event.lease)}
    if event.last_error:
        told["last_error"] = event.last_error
    return told


def timer(event: Event, now: int) -> dict[str, Any]:
    """An event as a timer: whole seconds until it elapses, never below 0."""
    left = max(0, -(-(event.at - now) // 1000)) if event.status is Status.ACTIVE else 0
    return {"id": event.event_id, "time_left": left, "status": str(event.status)}


def moment(milliseconds: int) -> str:
    """A time in UTC, as ISO 8601 has it."""
    when = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def badge(event: Event, now: int, options: Options = badges.PLAIN) -> dict[str, Any]:
    """The countdown as shields.io's endpoint JSON, as it is wanted."""
    message = SAID.get(event.status) or countdown(event.at - now)
    return badges.told(LABEL, message, COLORS[event.status], options)


def error(reason: str) -> dict[str, Any]:
    """A badge that says what is wrong."""
    return badges.error(reason) | {"label": LABEL}


def countdown(milliseconds: int) -> str:
    """How long until then: `in 3 days`, `in 47 hours`; `due now` from then on."""
    seconds = -(-milliseconds // 1000)
    for name, length in UNITS:
        amount = seconds // length
        if amount >= ENOUGH or (amount == 1 and name == "second"):
            return f"in {amount} {name}{'s' if amount > 1 else ''}"
    return "due now"


def _attempt(attempt: Attempt) -> dict[str, Any]:
    told: dict[str, Any] = {"started": moment(attempt.started)}
    if attempt.ended:
        told["ended"] = moment(attempt.ended)
    if attempt.code:
        told["status"] = attempt.code
    if attempt.error:
        told["error"] = attempt.error
    return told
