"""The JSON of an event, the time left of a timer, and the countdown on a badge."""

from __future__ import annotations

from dataclasses import replace

import pytest

from chalicelib.badges.options import Badge
from chalicelib.events import serializers
from chalicelib.events.event import Attempt, Status, Target, TargetKind
from simulation.scheduled_events import AT, an_event

NOON = "2026-03-14T12:00:00.000Z"
DAY, HOUR, MINUTE, SECOND = 86_400_000, 3_600_000, 60_000, 1_000


def test_an_active_event_has_its_next_attempt() -> None:
    assert serializers.to_json(replace(an_event(), next_at=AT + 1)) == {
        "id": "e",
        "status": "ACTIVE",
        "at": NOON,
        "created": NOON,
        "target": {"log": True},
        "attempts": [],
        "attempt_count": 0,
        "payload": "hello",
        "next_attempt": "2026-03-14T12:00:00.001Z",
    }


@pytest.mark.parametrize(
    ("status", "said", "color"),
    [
        (Status.SUCCESS, "\u2713 fired", "brightgreen"),
        (Status.ERROR, "\u2717 failed", "red"),
        (Status.CANCELLED, "cancelled", "lightgrey"),
    ],
)
def test_a_finished_event_says_so_has_no_time_left_and_no_missing_attributes(
    status: Status, said: str, color: str
) -> None:
    """A cancelled timer has not elapsed, but never will."""
    event = replace(an_event(at=AT + DAY), status=status, payload="")
    assert serializers.to_json(event).keys() == {
        "id", "status", "at", "created", "target", "attempts", "attempt_count",
    }  # fmt: skip
    assert serializers.timer(event, AT) == {"id": "e", "time_left": 0, "status": str(status)}
    assert serializers.badge(event, AT) == Badge("event", said, color)


def test_attempts_are_in_order_and_the_last_error_and_the_worker_are_separate() -> None:
    attempts = (Attempt(AT, AT + 1, 500, "status 500"), Attempt(AT, AT + 1, 204), Attempt(AT))
    event = replace(an_event(), attempts=attempts, tries=7, claim="worker", lease=AT + MINUTE)
    shown = serializers.to_json(
        replace(event, payload="null", target=Target(TargetKind.QUEUE, "mails"))
    )
    ended = {"started": NOON, "ended": "2026-03-14T12:00:00.001Z"}
    assert shown["attempts"] == [
        ended | {"status": 500, "error": "status 500"},
        ended | {"status": 204},
        {"started": NOON},
    ]
    assert (shown["last_error"], shown["attempt_count"]) == ("status 500", 7)
    assert shown["claim"] == {"by": "worker", "until": "2026-03-14T12:01:00.000Z"}
    assert (shown["payload"], shown["target"]) == (None, {"queue": "mails"})


@pytest.mark.parametrize(
    ("ahead", "left"), [(-5_000, 0), (-1, 0), (0, 0), (1, 1), (1_000, 1), (1_001, 2), (DAY, 86_400)]
)
def test_the_time_left_of_a_timer_is_whole_seconds_and_never_below_0(ahead: int, left: int) -> None:
    assert serializers.timer(an_event(at=AT + ahead), AT) == {
        "id": "e",
        "time_left": left,
        "status": "ACTIVE",
    }


@pytest.mark.parametrize(
    ("ahead", "said", "color"),
    [
        (4 * DAY - SECOND, "in 3 days", "blue"),
        (2 * DAY, "in 2 days", "blue"),
        (2 * DAY - SECOND, "in 47 hours", "blue"),
        (2 * HOUR, "in 2 hours", "blue"),
        (2 * MINUTE, "in 2 minutes", "blue"),
        (2 * MINUTE - SECOND, "in 119 seconds", "blue"),
        (SECOND + 1, "in 2 seconds", "blue"),
        (SECOND, "in 1 second", "blue"),
        (1, "in 1 second", "blue"),
        (0, "due now", "blue"),
        (1 - MINUTE, "due now", "blue"),
        (-MINUTE, "\u25b2 late by 60 seconds", "orange"),
        (-2 * MINUTE, "\u25b2 late by 2 minutes", "orange"),
        (1 - 3 * DAY, "\u25b2 late by 2 days", "orange"),
    ],
)
def test_a_countdown_has_the_largest_unit_with_two_or_more_until_the_event_is_late(
    ahead: int, said: str, color: str
) -> None:
    assert serializers.badge(an_event(at=AT + ahead), AT) == Badge("event", said, color)


FAILED, RUNNING = Attempt(AT, AT + 1, 500, "status 500"), Attempt(AT + MINUTE)


@pytest.mark.parametrize(
    ("attempts", "left", "said", "color"),
    [
        ((FAILED,), 5 * MINUTE, "\u25b2 failing, retry in 5 minutes", "orange"),
        ((FAILED, RUNNING), 5 * MINUTE, "\u25b2 failing, retry in 5 minutes", "orange"),
        ((RUNNING,), 5 * MINUTE, "in 5 minutes", "blue"),
        ((FAILED,), SECOND, "\u25b2 failing, retry in 1 second", "orange"),
        ((FAILED,), -DAY, "\u25b2 failing, retry due now", "orange"),
    ],
)
def test_a_failing_event_says_when_the_next_attempt_is_and_is_not_late(
    attempts: tuple[Attempt, ...], left: int, said: str, color: str
) -> None:
    next_at, tries = AT + left, len(attempts)
    event = replace(an_event(at=AT - DAY), attempts=attempts, tries=tries, next_at=next_at)
    assert serializers.badge(event, AT) == Badge("event", said, color)


def test_attempts_before_a_redrive_are_not_failures_of_the_new_round() -> None:
    event = replace(an_event(), attempts=(FAILED,), tries=1, round=1, next_at=AT + DAY)
    assert serializers.badge(event, AT + DAY).message == "due now"
    running = replace(event, attempts=(FAILED, RUNNING), tries=2)
    assert serializers.badge(running, AT + DAY).message == "due now"
    failed = replace(event, attempts=(FAILED, FAILED), tries=2, next_at=AT + 2 * DAY)
    assert serializers.badge(failed, AT + DAY).message == "\u25b2 failing, retry in 24 hours"
