"""`api_handler`'s routes for events: three doors to one engine, and the countdown as a badge."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from chalice.app import Blueprint, Response

from chalicelib import resources, telemetry
from chalicelib.authorize import authorize
from chalicelib.ports import StorageError
from chalicelib.resources import TimerResources
from chalicelib.responses import ANY_TYPE, answer, badge, error, svg, unavailable

# ruff: noqa: PLC0415  what only an event needs, the cold start of a badge does not pay for

blueprint = Blueprint(__name__)


@blueprint.route("/timers", methods=["POST"], content_types=ANY_TYPE, authorizer=authorize)
def post_timer() -> Response:
    """Start a timer; when it elapses, its URL gets a POST."""
    return _answered(_start_timer)


@blueprint.route(
    "/timers/{timer_id}", methods=["GET"], content_types=ANY_TYPE, authorizer=authorize
)
def get_timer(timer_id: str) -> Response:
    """How long a timer still takes, and what has become of it."""
    return _answered(lambda use, now: _timer(use, unquote(timer_id), now))


@blueprint.route(
    "/api/v1/events", methods=["GET", "POST"], content_types=ANY_TYPE, authorizer=authorize
)
def events() -> Response:
    """Accept an event, or list those of a status."""
    return _answered(_accept if blueprint.current_request.method == "POST" else _list)


@blueprint.route(
    "/api/v1/events/{event_id}",
    methods=["GET", "DELETE"],
    content_types=ANY_TYPE,
    authorizer=authorize,
)
def event(event_id: str) -> Response:
    """An event as it stands; DELETE cancels it."""
    do = _cancel if blueprint.current_request.method == "DELETE" else _event
    return _answered(lambda use, now: do(use, unquote(event_id), now))


@blueprint.route("/echoAtTime", methods=["POST"], content_types=ANY_TYPE, authorizer=authorize)
def echo_at_time() -> Response:
    """Print a text to the log at a time."""
    return _answered(_echo)


@blueprint.route("/api/v1/events/{event_id}/badge", methods=["GET", "HEAD"], content_types=ANY_TYPE)
def event_badge(event_id: str) -> Response:
    """The countdown of an event, as shields.io's endpoint JSON."""
    return badge(_badge(unquote(event_id)))


@blueprint.route(
    "/api/v1/events/{event_id}/badge.svg", methods=["GET", "HEAD"], content_types=ANY_TYPE
)
def event_badge_svg(event_id: str) -> Response:
    """The same as a picture."""
    from chalicelib.views.options import Options
    from chalicelib.views.picture import picture

    return svg(picture(_badge(unquote(event_id)), Options()))


def _answered(do: Callable[[TimerResources, int], Response]) -> Response:
    telemetry.begin("api_handler", blueprint.lambda_context)
    try:
        use = resources.for_timers()
        return do(use, int(use.clock() * 1000))
    except Exception as failure:  # noqa: BLE001  Chalice would answer it in a form of its own
        return _refused(failure)


def _refused(failure: Exception) -> Response:
    from chalicelib.timers import listing, requests, scheduling, urls

    for kind, status, code in (
        (requests.TooLargeError, 413, "too_large"),
        (requests.UnsupportedTypeError, 415, "unsupported_media_type"),
        (requests.BadRequestError, 400, "bad_request"),
        (listing.BadCursorError, 400, "bad_request"),
        (urls.BadUrlError, 400, "bad_url"),
        (urls.Unreachable, 400, "bad_url"),
        (scheduling.UnknownEventError, 404, "not_found"),
        (scheduling.IdTakenError, 409, "id_taken"),
        (scheduling.TooLateError, 409, "too_late"),
    ):
        if isinstance(failure, kind):
            return error(status, code, str(failure))
    telemetry.event(logging.ERROR, "a request about an event failed")
    if isinstance(failure, StorageError):
        return unavailable("the table does not answer: ask again, with the same id")
    return error(500, "internal", "an internal error, see the log")


def _accept(use: TimerResources, now: int) -> Response:
    from chalicelib.timers import requests, showing

    wanted = requests.read_event(_body(), use.settings.event_queues, now)
    accepted = _schedule(use, wanted, now)
    return answer(showing.document(accepted.event), 201 if accepted.is_new else 200)


def _start_timer(use: TimerResources, now: int) -> Response:
    from chalicelib.timers import requests

    return answer({"id": _schedule(use, requests.read_timer(_body(), now), now).event.event_id})


def _echo(use: TimerResources, now: int) -> Response:
    from chalicelib.timers import requests

    requests.check_text(blueprint.current_request.headers.get("content-type", "text/plain"))
    accepted = _schedule(use, requests.read_echo(_body(), _one("ts"), now), now)
    return answer({"id": accepted.event.event_id}, 201 if accepted.is_new else 200)


def _schedule(use: TimerResources, wanted: Any, now: int) -> Any:
    """Accept what is wanted; a URL must be one that may be called, now as well as then."""
    from chalicelib.timers import scheduling
    from chalicelib.timers.event import Kind

    if wanted.target.kind is Kind.URL:
        _check_url(use, wanted.target.address)
    return scheduling.accept(wanted.event(now), use.table, use.timers_queue, now)


def _check_url(use: TimerResources, url: str) -> None:
    from chalicelib.timers import requests, urls
    from chalicelib.timers.delivering import NO_SECRET

    if use.sender is None:
        raise requests.BadRequestError(f"url: no event can go to one here, for {NO_SECRET}")
    allowed = use.sender.allowed
    urls.permitted(urls.check_url(url, allowed), allowed, use.sender.resolver)


def _list(use: TimerResources, _: int) -> Response:
    from chalicelib.timers import listing, requests, showing
    from chalicelib.timers.event import Status

    status = _one("status") or str(Status.ACTIVE)
    if status not in set(Status):
        raise requests.BadRequestError(f"status: give {', '.join(Status)}, not {status[:20]!r}")
    page = listing.read(use.table, Status(status), _one("cursor") or "")
    told = {"events": [showing.document(one) for one in page.events]}
    return answer(told | ({"cursor": page.cursor} if page.cursor else {}))


def _event(use: TimerResources, event_id: str, _: int) -> Response:
    from chalicelib.timers import scheduling, showing

    return answer(showing.document(scheduling.read(use.table, event_id)))


def _cancel(use: TimerResources, event_id: str, now: int) -> Response:
    from chalicelib.timers import scheduling, showing

    return answer(showing.document(scheduling.cancel(use.table, event_id, now)))


def _timer(use: TimerResources, timer_id: str, now: int) -> Response:
    from chalicelib.timers import scheduling, showing

    return answer(showing.timer(scheduling.read(use.table, timer_id), now))


def _badge(event_id: str) -> dict[str, Any]:
    """A badge in any case: shields.io and GitHub draw nothing for a status but 200."""
    from chalicelib.timers import scheduling, showing

    telemetry.begin("api_handler", blueprint.lambda_context)
    try:
        use = resources.for_timers()
        return showing.badge(scheduling.read(use.table, event_id), int(use.clock() * 1000))
    except scheduling.UnknownEventError:
        return showing.error("no such event")
    except StorageError:
        telemetry.event(logging.ERROR, "an event can't be read")
        return showing.error("unavailable: try again")
    except Exception:  # noqa: BLE001  a badge is drawn whatever happens
        telemetry.event(logging.ERROR, "a countdown failed")
        return showing.error("out of order: try again")


def _body() -> bytes:
    body = blueprint.current_request.raw_body
    return body if isinstance(body, bytes) else body.encode()


def _one(name: str) -> str | None:
    """A query parameter that is given once or not at all."""
    from chalicelib.timers import requests

    query = blueprint.current_request.to_original_event().get("multiValueQueryStringParameters")
    values = (query or {}).get(name, [])
    if len(values) > 1:
        raise requests.BadRequestError(f"{name}: give one, not {len(values)}")
    return values[0] if values else None
