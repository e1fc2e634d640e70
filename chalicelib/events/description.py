"""The description of the routes for events: events, timers and echoes."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha1

from chalicelib.badges.description import always_drawn, badge_operations, json_badge, options_of
from chalicelib.events import delivery, listing, requests, serializers
from chalicelib.events.event import ID, KEPT_SECONDS, Event, Status, Target, TargetKind
from chalicelib.events.requests import MAX_AHEAD_SECONDS
from chalicelib.events.schedule import IdTakenError, TooLateError, UnknownEventError
from chalicelib.http.description import BASE64_URL, MOMENT, NEXT_PAGE
from chalicelib.http.openapi import (
    Component,
    Json,
    Operation,
    Section,
    array,
    enum,
    fields,
    integer,
    json_content,
    link,
    path_parameter,
    query_parameter,
    record,
    schema,
    string,
    success,
)
from chalicelib.outgoing import urls
from chalicelib.settings import QUEUE_NAME

AT_MOST_AHEAD = f"at most {MAX_AHEAD_SECONDS // 86_400} days ahead"
PORTS = " or ".join(map(str, urls.PORTS))
KEPT_DAYS = KEPT_SECONDS // 86_400

EVENT_ID = schema("EventId", string(ID))
STATUS = schema(
    "Status",
    enum(Status),
    "ACTIVE until the event is delivered (SUCCESS), given up (ERROR) or cancelled.",
)
URL = schema(
    "Url",
    string(format="uri", maxLength=urls.MAX_URL_CHARACTERS),
    f"https, port {PORTS}, a public host. The operator may allow others.",
)
ADDRESSES: dict[TargetKind, Component | Json] = {
    TargetKind.URL: URL,
    TargetKind.QUEUE: string(QUEUE_NAME),
    TargetKind.LOG: {"const": True},
}
TARGET = schema(
    "Target",
    {"oneOf": [fields({kind: ADDRESSES[kind]}) for kind in TargetKind]},
    "The place that an event goes to: a URL, a queue that the operator has listed, or the log.",
)
SECONDS_SINCE_1970 = {"type": "number", "minimum": 0}
EVENT_REQUEST = record(
    "EventRequest",
    {"target": TARGET},
    {
        "at": {
            "description": f"ISO 8601 with a zone, or seconds since 1970; {AT_MOST_AHEAD}.",
            "oneOf": [string(format="date-time"), SECONDS_SINCE_1970],
        },
        "delay": {
            "type": "number",
            "minimum": 0,
            "maximum": MAX_AHEAD_SECONDS,
            "description": "Seconds from now.",
        },
        "payload": {
            "description": f"Any JSON of at most {requests.MAX_PAYLOAD_BYTES} bytes, in ASCII with"
            ' escapes. Without a payload, `{"id"}` is sent.'
        },
        "id": EVENT_ID,
    },
    oneOf=[{"required": ["at"]}, {"required": ["delay"]}],
)
PARTS = {
    part: integer(0, MAX_AHEAD_SECONDS // length) for part, length in requests.PART_SECONDS.items()
}
TIMER_REQUEST = record(
    "TimerRequest", PARTS | {"url": URL}, description=f"The sum is {AT_MOST_AHEAD}."
)
NAMED = record("Named", {"id": EVENT_ID})
TIME_LEFT = integer(0, MAX_AHEAD_SECONDS, description="Seconds until it elapses, then 0.")
TIMER = record("Timer", {"id": EVENT_ID, "time_left": TIME_LEFT, "status": STATUS})
ATTEMPT = record(
    "Attempt",
    {"started": MOMENT},
    {
        "ended": MOMENT.reference(description="Missing while it runs, or if its worker was lost."),
        "status": integer(100, 999, description="The status that the URL returned."),
        "error": string(minLength=1),
    },
)
CLAIM = fields({"by": string(), "until": MOMENT}, description="The worker that delivers it now.")
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
        "next_attempt": MOMENT.reference(description="The earliest time, of an active event."),
        "claim": CLAIM,
        "last_error": string(minLength=1),
    },
)
CURSOR = string(BASE64_URL)
EVENTS = record("Events", {"events": array(EVENT, listing.PAGE)}, {"cursor": CURSOR})

SHOW = {"show": link("getEvent", "event_id")}
CANCEL = {"cancel": link("cancelEvent", "event_id")}
NEXT = {"next": link("listEvents", status="$request.query.status", cursor="$response.body#/cursor")}
TEXT = string(minLength=1, maxLength=requests.MAX_TEXT_CHARACTERS)
AS_TIMER = {"timer": link("getTimer", "timer_id")}
AS_BADGE = {"badge": link("getEventBadge", "event_id")}
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
COUNTDOWN = json_badge(
    "Countdown",
    serializers.badge(LAUNCH, NOW),
    "there is no event launch, or it was done long ago",
)
OPTIONS = options_of(serializers.LABEL, "EventLabel")

OPERATIONS = {
    "POST /timers": Operation(
        "startTimer",
        'The body of the POST is `{"id"}`, signed as Standard Webhooks requires. Each request'
        " starts another timer. To be able to retry, create an event with an `id`.",
        body=json_content(TIMER_REQUEST, {"hours": 0, "minutes": 5, "seconds": 30, "url": HOOK}),
        responses={200: success(NAMED, example={"id": TIMER_ID}, links=AS_TIMER | SHOW | CANCEL)},
    ),
    "GET /timers/{timer_id}": Operation(
        "getTimer",
        responses={
            200: success(
                TIMER, example={"id": TIMER_ID, "time_left": 330, "status": str(Status.ACTIVE)}
            )
        },
        refusals=(UnknownEventError,),
    ),
    "GET /api/v1/events": Operation(
        "listEvents",
        "Active events are in the order of their next attempts, others in the order in which they"
        " were done. A page may have fewer events than another, or none; the last one has no"
        " `cursor`. An event whose attempt fails between two pages may be on both. Changes of the"
        " last seconds may be missing.",
        (
            query_parameter("status", STATUS.reference(default=Status.ACTIVE), "Of the events."),
            query_parameter("cursor", CURSOR, NEXT_PAGE),
        ),
        responses={200: success(EVENTS, example={"events": [EVENT_EXAMPLE]}, links=NEXT)},
    ),
    "POST /api/v1/events": Operation(
        "makeEvent",
        "A time in the past means now. The same `id` with the same body is the same event, however"
        " often the request is sent; without an `id`, each request creates another event. A URL"
        f" must be public: https, port {PORTS}, no redirects.",
        body=json_content(EVENT_REQUEST, url=URL_EXAMPLE, log=LOG_EXAMPLE),
        responses={
            200: success(EVENT, "An equal request created it before.", links=SHOW | CANCEL),
            201: success(EVENT, example=EVENT_EXAMPLE, links=SHOW | AS_TIMER | AS_BADGE | CANCEL),
        },
        refusals=(IdTakenError,),
    ),
    "GET /api/v1/events/{event_id}": Operation(
        "getEvent",
        f"Events are kept until {KEPT_DAYS} days after they are done.",
        responses={200: success(EVENT, example=EVENT_EXAMPLE, links=CANCEL)},
        refusals=(UnknownEventError,),
    ),
    "DELETE /api/v1/events/{event_id}": Operation(
        "cancelEvent",
        "A cancelled event can still be read. Cancelling it again changes nothing.",
        responses={200: success(EVENT, example=CANCELLED_EXAMPLE, links=SHOW | AS_BADGE)},
        refusals=(UnknownEventError, TooLateError),
    ),
    "POST /echoAtTime": Operation(
        "echoAtTime",
        "Its id is the SHA-1 of the time in whole milliseconds, a line feed and the text, in UTF-8."
        " So a repeated request changes nothing.",
        (
            query_parameter(
                "ts",
                SECONDS_SINCE_1970,
                f"The time in seconds since 1970, {AT_MOST_AHEAD}; now if none is given. A time in"
                " the past means now.",
                allowEmptyValue=False,
                example=1767225600.5,
            ),
        ),
        {"text/plain": {"schema": TEXT, "example": "hello"}},
        {
            200: success(NAMED, "An equal request was accepted before."),
            201: success(NAMED, example={"id": ECHO_ID}, links=SHOW | CANCEL),
        },
        (IdTakenError, requests.UnsupportedTypeError),
    ),
    **badge_operations(
        "/api/v1/events/{event_id}/badge",
        always_drawn(
            "getEventBadge",
            "The message is `in 3 days`, `due now`, then `\u2713 fired`, `\u2717 failed` or"
            " `cancelled`. An event that waits is `\u25b2 late by 2 minutes` from"
            f" {serializers.LATE_SECONDS} s after its time on, and after a failed attempt"
            " `\u25b2 failing, retry in 5 minutes`. Both are orange.",
            OPTIONS,
            COUNTDOWN,
        ),
    ),
}
PATH_PARAMETERS = (
    path_parameter("timer_id", EVENT_ID, "The id of its start.", TIMER_ID),
    path_parameter("event_id", EVENT_ID, "The id that it was given.", "launch"),
)
SECTIONS = (
    Section(
        "event",
        "Deliver something once, at a time: a POST to a URL, a message to a queue, or a line to the"
        " log. Timers and echoes are events too: every route that shows or cancels an event takes"
        " their ids. The badges need no token.",
        OPERATIONS,
        PATH_PARAMETERS,
    ),
)
