"""Routes of scheduled events: three endpoints create them, and each has a badge."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Protocol

from chalicelib.badges.options import Badge, Look
from chalicelib.badges.responses import badge_route, explain, respond
from chalicelib.http import responses
from chalicelib.http.errors import NotFoundError
from chalicelib.http.fields import NEXT_PAGE, Field, Options, choice, string
from chalicelib.http.messages import Change, Request, Response
from chalicelib.http.routing import Authentication, Route
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.settings import Feature
from chalicelib.units import Milliseconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.concurrency import MapParallel
    from chalicelib.events import event, requests, schedule, serializers
    from chalicelib.events.event import Claims
    from chalicelib.events.sender import Sender
    from chalicelib.outgoing import webhooks
    from chalicelib.outgoing.urls import Resolver
    from chalicelib.storage.ports import Queue
else:
    event = lazy("chalicelib.events.event")
    requests = lazy("chalicelib.events.requests")
    schedule = lazy("chalicelib.events.schedule")
    serializers = lazy("chalicelib.events.serializers")
    webhooks = lazy("chalicelib.outgoing.webhooks")


class EventResources(Resources, Protocol):
    """The resources of the routes and the consumers of events."""

    @property
    def map_parallel(self) -> MapParallel: ...
    @property
    def delivery_queue(self) -> Queue: ...
    @property
    def distribution_queue(self) -> Queue: ...
    @property
    def claims(self) -> Claims: ...
    @property
    def resolver(self) -> Resolver:
        """Return the resolver of the host names in the URLs of new events."""

    @property
    def sender(self) -> Sender | None:
        """Return the sender of webhooks, or None without a secret to sign them with."""

    def event_queue(self, name: str) -> Queue | None:
        """Return the queue for events that the operator has listed under this name."""


class ListOptions(Options):
    """The options of the list of events."""

    status = choice(lambda: [*event.Status], "Of the events.", "ACTIVE")
    cursor = Field(str, string("[A-Za-z0-9_-]+"), NEXT_PAGE, default="")


class EchoOptions(Options):
    """The option of an echo."""

    ts = Field[str | None](
        str,
        {"type": "number", "minimum": 0},
        "The time in seconds since 1970, at most 366 days ahead; now if none is given. A time in"
        " the past means now.",
        default=None,
        example=1767225600.5,
        may_be_empty=True,
    )


def make_event(request: Request, resources: EventResources) -> Response:
    """Accept an event; the same request again changes nothing."""
    now = _now(resources)
    wanted = requests.read_event(request.body, resources.settings.event_queues, now)
    accepted = _schedule(wanted, resources, now)
    status = 201 if accepted.is_new else 200
    return responses.json(serializers.to_json(accepted.event), status, change=_change(accepted))


def list_events(request: Request, resources: EventResources) -> Response:
    """List the events of a status, a page at a time."""
    asked = ListOptions(request.query)
    page, cursor = schedule.read_page(resources.table, event.Status(asked.status), asked.cursor)
    events = {"events": [serializers.to_json(listed) for listed in page]}
    return responses.json({**events, **({"cursor": cursor} if cursor else {})})


def get_event(request: Request, resources: EventResources) -> Response:
    """Return an event."""
    found = schedule.read(resources.table, request.path_parameters["event_id"])
    return responses.json(serializers.to_json(found))


def cancel_event(request: Request, resources: EventResources) -> Response:
    """Cancel an event."""
    event_id = request.path_parameters["event_id"]
    before = {"status": schedule.read(resources.table, event_id).status}
    cancelled = schedule.cancel(resources.table, resources.claims, event_id, _now(resources))
    return responses.json(serializers.to_json(cancelled), change=Change(event_id, before))


def start_timer(request: Request, resources: EventResources) -> Response:
    """Start a timer; when it elapses, its URL gets a POST."""
    now = _now(resources)
    accepted = _schedule(requests.read_timer(request.body, now), resources, now)
    return responses.json({"id": accepted.event.event_id}, change=_change(accepted))


def get_timer(request: Request, resources: EventResources) -> Response:
    """Return how long a timer still takes."""
    found = schedule.read(resources.table, request.path_parameters["timer_id"])
    return responses.json(serializers.timer(found, _now(resources)))


def echo_at_time(request: Request, resources: EventResources) -> Response:
    """Print a text to the log at a time."""
    now = _now(resources)
    requests.check_text(request.headers.get("content-type", "text/plain"))
    ts = EchoOptions(request.query).ts
    accepted = _schedule(requests.read_echo(request.body, ts, now), resources, now)
    status = 201 if accepted.is_new else 200
    return responses.json({"id": accepted.event.event_id}, status, change=_change(accepted))


def get_event_badge(request: Request, resources: EventResources) -> Response:
    """Return the countdown of an event as a badge."""
    look = Look(request.query)
    found = schedule.read(resources.table, request.path_parameters["event_id"])
    return respond(serializers.badge(found, _now(resources), look), request)


def _draw_failure(failure: Exception) -> Badge:
    if isinstance(failure, NotFoundError):
        return Badge.error(serializers.LABEL, "no such event")
    return Badge.error(serializers.LABEL, explain(failure))


def _schedule(
    wanted: event.Event, resources: EventResources, now: Milliseconds
) -> schedule.AcceptedEvent:
    """Accept an event; its URL must be allowed now, and is checked again when it is called."""
    if wanted.target.kind is event.TargetKind.URL:
        webhooks.check_webhook(wanted.target.address, resources.settings, resources.resolver)
    return schedule.accept(wanted, resources.table, resources.delivery_queue, now)


def _change(accepted: schedule.AcceptedEvent) -> Change:
    before = None if accepted.is_new else {"status": accepted.event.status}
    return Change(accepted.event.event_id, before)


def _now(resources: EventResources) -> Milliseconds:
    return to_milliseconds(resources.clock())


OPERATOR = Authentication.OPERATOR
_route = partial(Route, feature=Feature.EVENTS)
_badge = badge_route(get_event_badge, _draw_failure, options=Look, feature=Feature.EVENTS)
ROUTES = (
    _route("POST", "/timers", start_timer, OPERATOR),
    _route("GET", "/timers/{timer_id}", get_timer, OPERATOR),
    _route("GET", "/api/v1/events", list_events, OPERATOR, options=ListOptions),
    _route("POST", "/api/v1/events", make_event, OPERATOR),
    _route("GET", "/api/v1/events/{event_id}", get_event, OPERATOR),
    _route("DELETE", "/api/v1/events/{event_id}", cancel_event, OPERATOR),
    _route("POST", "/echoAtTime", echo_at_time, OPERATOR, options=EchoOptions),
    *(_badge(path=f"/api/v1/events/{{event_id}}/badge{form}") for form in ("", ".svg")),
)
