"""`api_handler`'s routes for events: three doors to one engine, and the countdown as a badge.

What they answer is in `doors`, imported on use, so that the cold start of a badge is spared it.
"""

from __future__ import annotations

from urllib.parse import unquote

from chalice.app import Blueprint, Request, Response

from chalicelib import telemetry
from chalicelib.aws.authorizer import authorize
from chalicelib.http.responses import ANY_TYPE

# ruff: noqa: PLC0415

blueprint = Blueprint(__name__)


@blueprint.route("/timers", methods=["POST"], content_types=ANY_TYPE, authorizer=authorize)
def post_timer() -> Response:
    """Start a timer; when it elapses, its URL gets a POST."""
    from chalicelib.events import routes

    return routes.start_timer(_begun())


@blueprint.route(
    "/timers/{timer_id}", methods=["GET"], content_types=ANY_TYPE, authorizer=authorize
)
def get_timer(timer_id: str) -> Response:
    """How long a timer still takes, and what has become of it."""
    from chalicelib.events import routes

    _begun()
    return routes.timer(unquote(timer_id))


@blueprint.route(
    "/api/v1/events", methods=["GET", "POST"], content_types=ANY_TYPE, authorizer=authorize
)
def events() -> Response:
    """Accept an event, or list those of a status."""
    from chalicelib.events import routes

    request = _begun()
    return routes.accept(request) if request.method == "POST" else routes.listed(request)


@blueprint.route(
    "/api/v1/events/{event_id}",
    methods=["GET", "DELETE"],
    content_types=ANY_TYPE,
    authorizer=authorize,
)
def event(event_id: str) -> Response:
    """An event as it stands; DELETE cancels it."""
    from chalicelib.events import routes

    do = routes.cancel if _begun().method == "DELETE" else routes.event
    return do(unquote(event_id))


@blueprint.route("/echoAtTime", methods=["POST"], content_types=ANY_TYPE, authorizer=authorize)
def echo_at_time() -> Response:
    """Print a text to the log at a time."""
    from chalicelib.events import routes

    return routes.echo(_begun())


@blueprint.route("/api/v1/events/{event_id}/badge", methods=["GET", "HEAD"], content_types=ANY_TYPE)
def event_badge(event_id: str) -> Response:
    """The countdown of an event, as shields.io's endpoint JSON."""
    from chalicelib.events import routes

    return routes.countdown(_begun(), unquote(event_id))


@blueprint.route(
    "/api/v1/events/{event_id}/badge.svg", methods=["GET", "HEAD"], content_types=ANY_TYPE
)
def event_badge_svg(event_id: str) -> Response:
    """The same as a picture."""
    from chalicelib.events import routes

    return routes.countdown_svg(_begun(), unquote(event_id))


def _begun() -> Request:
    telemetry.begin("api_handler", blueprint.lambda_context)
    return blueprint.current_request
