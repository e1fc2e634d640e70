"""What the doors to events answer, whatever happens."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from chalice.app import Request, Response

from chalicelib import telemetry
from chalicelib.aws import resources
from chalicelib.badges.badge import Reasons
from chalicelib.badges.options import Options, parse, query_of
from chalicelib.badges.picture import picture
from chalicelib.events import listing, requests, schedule, serializers
from chalicelib.events.event import Kind, Status
from chalicelib.events.requests import Wanted
from chalicelib.events.schedule import Accepted
from chalicelib.events.targets import NO_SECRET
from chalicelib.events.webhooks import urls
from chalicelib.http import responses
from chalicelib.http.bodies import BadRequestError, body_of
from chalicelib.http.responses import answer, error, unavailable
from chalicelib.resources import Resources
from chalicelib.storage.errors import StorageError

REFUSALS: tuple[tuple[type[Exception], int, str], ...] = (
    (requests.TooLargeError, 413, "too_large"),
    (requests.UnsupportedTypeError, 415, "unsupported_media_type"),
    (BadRequestError, 400, "bad_request"),
    (listing.BadCursorError, 400, "bad_request"),
    (urls.BadUrlError, 400, "bad_url"),
    (urls.Unreachable, 400, "bad_url"),
    (schedule.UnknownEventError, 404, "not_found"),
    (schedule.IdTakenError, 409, "id_taken"),
    (schedule.TooLateError, 409, "too_late"),
)
"""What is wrong with a request, the status and the code; the first that fits."""
REASONS = Reasons(
    schedule.UnknownEventError,
    "no such event",
    "an event can't be read",
    "a countdown failed",
)


def accept(request: Request) -> Response:
    """`POST /api/v1/events`."""

    def do(use: Resources, now: int) -> Response:
        wanted = requests.read_event(body_of(request), use.settings.event_queues, now)
        accepted = _schedule(use, wanted, now)
        return answer(serializers.document(accepted.event), 201 if accepted.is_new else 200)

    return _answered(do)


def start_timer(request: Request) -> Response:
    """`POST /timers`."""

    def do(use: Resources, now: int) -> Response:
        accepted = _schedule(use, requests.read_timer(body_of(request), now), now)
        return answer({"id": accepted.event.event_id})

    return _answered(do)


def echo(request: Request) -> Response:
    """`POST /echoAtTime`."""

    def do(use: Resources, now: int) -> Response:
        requests.check_text(request.headers.get("content-type", "text/plain"))
        wanted = requests.read_echo(body_of(request), _one(request, "ts"), now)
        accepted = _schedule(use, wanted, now)
        return answer({"id": accepted.event.event_id}, 201 if accepted.is_new else 200)

    return _answered(do)


def listed(request: Request) -> Response:
    """`GET /api/v1/events`."""

    def do(use: Resources, _: int) -> Response:
        status = _one(request, "status") or str(Status.ACTIVE)
        if status not in set(Status):
            raise BadRequestError(f"status: give {', '.join(Status)}, not {status[:20]!r}")
        page = listing.read(use.table, Status(status), _one(request, "cursor") or "")
        told = {"events": [serializers.document(one) for one in page.events]}
        return answer(told | ({"cursor": page.cursor} if page.cursor else {}))

    return _answered(do)


def event(event_id: str) -> Response:
    """`GET /api/v1/events/{id}`."""
    return _answered(
        lambda use, _: answer(serializers.document(schedule.read(use.table, event_id)))
    )


def cancel(event_id: str) -> Response:
    """`DELETE /api/v1/events/{id}`."""
    return _answered(
        lambda use, now: answer(
            serializers.document(schedule.cancel(use.table, use.claims, event_id, now))
        )
    )


def timer(timer_id: str) -> Response:
    """`GET /timers/{id}`."""
    return _answered(
        lambda use, now: answer(serializers.timer(schedule.read(use.table, timer_id), now))
    )


def countdown(request: Request, event_id: str) -> Response:
    """`GET /api/v1/events/{id}/badge`."""
    body, _ = _badge(request, event_id)
    return responses.badge(body)


def countdown_svg(request: Request, event_id: str) -> Response:
    """`GET /api/v1/events/{id}/badge.svg`."""
    return responses.svg(picture(*_badge(request, event_id)))


def _answered(do: Callable[[Resources, int], Response]) -> Response:
    try:
        use = resources.for_timers()
        return do(use, int(use.clock() * 1000))
    except Exception as failure:  # noqa: BLE001  Chalice would answer it in a form of its own
        return _refused(failure)


def _refused(failure: Exception) -> Response:
    for kind, status, code in REFUSALS:
        if isinstance(failure, kind):
            return error(status, code, str(failure))
    telemetry.event(logging.ERROR, "a request about an event failed")
    if isinstance(failure, StorageError):
        return unavailable("the table does not answer: ask again, with the same id")
    return error(500, "internal", "an internal error, see the log")


def _schedule(use: Resources, wanted: Wanted, now: int) -> Accepted:
    """Accept what is wanted; a URL must be one that may be called, now as well as then."""
    if wanted.target.kind is Kind.URL:
        _check_url(use, wanted.target.address)
    return schedule.accept(wanted.event(now), use.table, use.timers_queue, now)


def _check_url(use: Resources, url: str) -> None:
    if use.sender is None:
        raise BadRequestError(f"url: no event can go to one here, for {NO_SECRET}")
    allowed = use.sender.allowed
    urls.permitted(urls.check_url(url, allowed), allowed, use.sender.resolver)


def _badge(request: Request, event_id: str) -> tuple[dict[str, Any], Options]:
    """A badge in any case: shields.io and GitHub draw nothing for a status but 200."""
    try:
        options = parse(query_of(request))
        use = resources.for_timers()
        event = schedule.read(use.table, event_id)
        return serializers.badge(event, int(use.clock() * 1000), options), options
    except Exception as failure:  # noqa: BLE001  a badge is drawn whatever happens
        return serializers.error(REASONS.of(failure)), Options()


def _one(request: Request, name: str) -> str | None:
    """A query parameter that is given once or not at all."""
    values = query_of(request).get(name, [])
    if len(values) > 1:
        raise BadRequestError(f"{name}: give one, not {len(values)}")
    return values[0] if values else None
