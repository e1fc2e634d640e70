"""The description of the routes for events: events, timers and echoes."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha1

from chalicelib.badges.description import badge_operations
from chalicelib.events import delivery, requests, schedule, serializers
from chalicelib.events.event import KEPT_SECONDS, Event, Status, Target, TargetKind
from chalicelib.events.requests import EVENT_ID, MAX_AHEAD_SECONDS, PORTS, TARGET
from chalicelib.events.schedule import IdTakenError, TooLateError, UnknownEventError
from chalicelib.http.fields import Field, array, closed, enum, integer, record, schema, string
from chalicelib.http.openapi import MOMENT, Operation, Section, body_of, success

STATUS = schema(
    "Status",
    enum(Status),
    "ACTIVE until the event is delivered (SUCCESS), given up (ERROR) or cancelled.",
)
NAMED = record("Named", {"id": EVENT_ID})
TIME_LEFT = integer(0, MAX_AHEAD_SECONDS, description="Seconds until it elapses, then 0.")
TIMER = record("Timer", {"id": EVENT_ID, "time_left": TIME_LEFT, "status": STATUS})
ATTEMPT = record(
    "Attempt",
    {"started": MOMENT},
    {
        "ended": MOMENT | {"description": "Missing while it runs, or if its worker was lost."},
        "status": integer(100, 999, description="The status that the URL returned."),
        "error": string(minLength=1),
    },
)
CLAIM = closed({"by": string(), "until": MOMENT}, description="The worker that delivers it now.")
EVENT = record(
    "Event",
    {
        "id": EVENT_ID,
        "status": STATUS,
        "at": MOMENT,
        "created": MOMENT,
        "target": TARGET,
        "attempts": array(ATTEMPT, delivery.MAX_ATTEMPTS_KEPT, description="The latest ones."),
        "attempt_count": integer(),
    },
    {
        "payload": {},
        "next_attempt": MOMENT | {"description": "The earliest time, of an active event."},
        "claim": CLAIM,
        "last_error": string(minLength=1),
    },
)
CURSOR = string("[A-Za-z0-9_-]+")
EVENTS = record("Events", {"events": array(EVENT, schedule.PAGE)}, {"cursor": CURSOR})


TEXT = string(minLength=1, maxLength=requests.MAX_TEXT_CHARACTERS)
HOOK = "https://example.com/hook"
URL_EXAMPLE = {
    "at": "2026-12-24T18:00:00Z",
    "target": {"url": HOOK},
    "payload": {"hello": "world"},
    "id": "launch",
}
LOG_EXAMPLE = {"delay": 60, "target": {"log": True}, "payload": "hello"}
NOW, AT = 1_795_255_200_000, 1_798_135_200_000
LAUNCH = Event(
    "launch",
    at=AT,
    created=NOW,
    target=Target(TargetKind.URL, HOOK),
    payload='{"hello": "world"}',
    request="",
    next_at=AT,
)
EVENT_EXAMPLE = serializers.to_json(LAUNCH)
CANCELLED_EXAMPLE = serializers.to_json(replace(LAUNCH, status=Status.CANCELLED))
TIMER_ID = "01KAJ9Q3V5N8Z2M4T6R7W9XYBC"
ECHO_ID = sha1(b"1767225600500\nhello", usedforsecurity=False).hexdigest()

OPERATIONS = {
    "startTimer": Operation(
        'The body of the POST is `{"id"}`, signed as Standard Webhooks requires. Each request'
        " starts another timer. To be able to retry, create an event with an `id`.",
        {200: success(NAMED, example={"id": TIMER_ID})},
        body=body_of(requests.TimerBody, {"hours": 0, "minutes": 5, "seconds": 30, "url": HOOK}),
    ),
    "getTimer": Operation(
        "",
        {
            200: success(
                TIMER, example={"id": TIMER_ID, "time_left": 330, "status": str(Status.ACTIVE)}
            )
        },
        [UnknownEventError],
    ),
    "listEvents": Operation(
        "Active events are in the order of their next attempts, others in the order in which they"
        " were done. A page may have fewer events than another, or none; the last one has no"
        " `cursor`. An event whose attempt fails between two pages may be on both. Changes of the"
        " last seconds may be missing.",
        {200: success(EVENTS, example={"events": [EVENT_EXAMPLE]})},
    ),
    "makeEvent": Operation(
        "A time in the past means now. The same `id` with the same body is the same event, however"
        " often the request is sent; without an `id`, each request creates another event. A URL"
        f" must be public: https, port {PORTS}, no redirects.",
        {
            200: success(EVENT, "An equal request created it before."),
            201: success(EVENT, example=EVENT_EXAMPLE),
        },
        [IdTakenError],
        body_of(requests.EventBody, url=URL_EXAMPLE, log=LOG_EXAMPLE),
    ),
    "getEvent": Operation(
        f"Events are kept until {KEPT_SECONDS // 86_400} days after they are done.",
        {200: success(EVENT, example=EVENT_EXAMPLE)},
        [UnknownEventError],
    ),
    "cancelEvent": Operation(
        "A cancelled event can still be read. Cancelling it again changes nothing.",
        {200: success(EVENT, example=CANCELLED_EXAMPLE)},
        [UnknownEventError, TooLateError],
    ),
    "echoAtTime": Operation(
        "Its id is the SHA-1 of the time in whole milliseconds, a line feed and the text, in UTF-8."
        " So a repeated request changes nothing.",
        {
            200: success(NAMED, "An equal request was accepted before."),
            201: success(NAMED, example={"id": ECHO_ID}),
        },
        [IdTakenError, requests.UnsupportedTypeError],
        {"text/plain": {"schema": TEXT, "example": "hello"}},
    ),
    **badge_operations(
        "getEventBadge",
        "The message is `in 3 days`, `due now`, then `\u2713 fired`, `\u2717 failed` or"
        " `cancelled`. An event that waits is `\u25b2 late by 2 minutes` from"
        f" {serializers.LATE_SECONDS} s after its time on, and after a failed attempt"
        " `\u25b2 failing, retry in 5 minutes`. Both are orange.",
        serializers.badge(LAUNCH, NOW),
        "there is no event launch, or it was done long ago",
    ),
}
SECTION = Section(
    "event",
    "Deliver something once, at a time: a POST to a URL, a message to a queue, or a line to the"
    " log. Timers and echoes are events too: every route that shows or cancels an event takes"
    " their ids. The badges need no token.",
    OPERATIONS,
    {
        "timer_id": Field(str, EVENT_ID, "The id of its start.", example=TIMER_ID),
        "event_id": Field(str, EVENT_ID, "The id that it was given.", example="launch"),
    },
)
