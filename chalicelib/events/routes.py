"""Routes of scheduled events: three endpoints create them, and each has a badge."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from chalicelib.badges.badge import Badge, explain
from chalicelib.badges.options import LOOK, parse
from chalicelib.badges.responses import badge_json, badge_svg, json_failure, svg_failure
from chalicelib.http import responses
from chalicelib.http.errors import BadRequestError, NotFoundError
from chalicelib.http.messages import Request, Response
from chalicelib.http.query import one
from chalicelib.http.routing import Authentication, Route
from chalicelib.lazy import lazy
from chalicelib.resources import Resources
from chalicelib.settings import Feature
from chalicelib.units import Milliseconds, to_milliseconds

if TYPE_CHECKING:
    from chalicelib.events import event, listing, requests, schedule, serializers
    from chalicelib.outgoing import webhooks
else:
    event = lazy("chalicelib.events.event")
    listing = lazy("chalicelib.events.listing")
    requests = lazy("chalicelib.events.requests")
    schedule = lazy("chalicelib.events.schedule")
    serializers = lazy("chalicelib.events.serializers")
    webhooks = lazy("chalicelib.outgoing.webhooks")

LABEL = "event"


def post_event(request: Request, resources: Resources) -> Response:
    """Accept an event; the same request again changes nothing."""
    now = _now(resources)
    wanted = requests.read_event(request.body, resources.settings.event_queues, now)
    accepted = _schedule(wanted, resources, now)
    status = 201 if accepted.is_new else 200
    return responses.json(serializers.to_json(accepted.event), status)


def get_events(request: Request, resources: Resources) -> Response:
    """List the events of a status, a page at a time."""
    status = one(request.query, "status", str, default=str(event.Status.ACTIVE))
    if status not in set(event.Status):
        raise BadRequestError(f"status: give {', '.join(event.Status)}, not {status[:20]!r}")
    cursor = one(request.query, "cursor", str, default="")
    page = listing.read(resources.table, event.Status(status), cursor)
    events = {"events": [serializers.to_json(listed) for listed in page.events]}
    return responses.json({**events, **({"cursor": page.cursor} if page.cursor else {})})


def get_event(request: Request, resources: Resources) -> Response:
    """Answer an event."""
    found = schedule.read(resources.table, request.path_parameters["event_id"])
    return responses.json(serializers.to_json(found))


def delete_event(request: Request, resources: Resources) -> Response:
    """Cancel an event."""
    event_id = request.path_parameters["event_id"]
    cancelled = schedule.cancel(resources.table, resources.claims, event_id, _now(resources))
    return responses.json(serializers.to_json(cancelled))


def post_timer(request: Request, resources: Resources) -> Response:
    """Start a timer; when it elapses, its URL gets a POST."""
    now = _now(resources)
    accepted = _schedule(requests.read_timer(request.body, now), resources, now)
    return responses.json({"id": accepted.event.event_id})


def get_timer(request: Request, resources: Resources) -> Response:
    """Answer how long a timer still takes."""
    found = schedule.read(resources.table, request.path_parameters["timer_id"])
    return responses.json(serializers.timer(found, _now(resources)))


def post_echo(request: Request, resources: Resources) -> Response:
    """Print a text to the log at a time."""
    now = _now(resources)
    requests.check_text(request.headers.get("content-type", "text/plain"))
    ts = one(request.query, "ts", str, default=None, may_be_empty=True)
    accepted = _schedule(requests.read_echo(request.body, ts, now), resources, now)
    return responses.json({"id": accepted.event.event_id}, 201 if accepted.is_new else 200)


def get_badge(request: Request, resources: Resources) -> Response:
    """Answer the countdown of an event as a badge."""
    return badge_json(_badge(request, resources))


def get_badge_svg(request: Request, resources: Resources) -> Response:
    """Answer the countdown of an event as an image."""
    return badge_svg(_badge(request, resources))


def _badge(request: Request, resources: Resources) -> Badge:
    options = parse(request.query)
    found = schedule.read(resources.table, request.path_parameters["event_id"])
    return serializers.badge(found, _now(resources), options)


def _draw_failure(failure: Exception) -> Badge:
    if isinstance(failure, NotFoundError):
        return Badge.error(LABEL, "no such event")
    return Badge.error(LABEL, explain(failure))


def _schedule(
    wanted: requests.RequestedEvent, resources: Resources, now: Milliseconds
) -> schedule.AcceptedEvent:
    """Accept an event; its URL must be allowed now, and is checked again when it is called."""
    if wanted.target.kind is event.TargetKind.URL:
        webhooks.check_webhook(wanted.target.address, resources.settings, resources.resolver)
    return schedule.accept(wanted.event(now), resources.table, resources.delivery_queue, now)


def _now(resources: Resources) -> Milliseconds:
    return to_milliseconds(resources.clock())


OPERATOR = Authentication.OPERATOR
_route = partial(Route, feature=Feature.EVENTS)
ROUTES = (
    _route("POST", "/timers", post_timer, OPERATOR),
    _route("GET", "/timers/{timer_id}", get_timer, OPERATOR),
    _route("GET", "/api/v1/events", get_events, OPERATOR, options=("status", "cursor")),
    _route("POST", "/api/v1/events", post_event, OPERATOR),
    _route("GET", "/api/v1/events/{event_id}", get_event, OPERATOR),
    _route("DELETE", "/api/v1/events/{event_id}", delete_event, OPERATOR),
    _route("POST", "/echoAtTime", post_echo, OPERATOR, options=("ts",)),
    _route(
        "GET",
        "/api/v1/events/{event_id}/badge",
        get_badge,
        with_head=True,
        from_any_site=True,
        on_failure=json_failure(_draw_failure),
        options=LOOK,
    ),
    _route(
        "GET",
        "/api/v1/events/{event_id}/badge.svg",
        get_badge_svg,
        with_head=True,
        from_any_site=True,
        on_failure=svg_failure(_draw_failure),
        options=LOOK,
    ),
)
