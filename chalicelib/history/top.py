"""The route of the most viewed ids that begin with a prefix, which counts no view.

One machine reads them from its file. On AWS, each request would read every badge of the prefix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from chalicelib.counting import ids
from chalicelib.http import responses
from chalicelib.http.errors import ClientError
from chalicelib.http.fields import Field, Options, number, string
from chalicelib.http.messages import Request, Response
from chalicelib.http.routing import public_read
from chalicelib.resources import Resources
from chalicelib.units import Seconds

PATH = "/api/v1/views/top"
MAX_LIMIT = 100
MAX_DAYS = 366


class NotPublicError(ClientError):
    """The operator has not made the most viewed ids of this prefix public (`PUBLIC_TOP`)."""

    status = 403
    code = "not_public"


class OneMachineOnlyError(ClientError):
    """The server is on AWS, where each request would read every badge of the prefix."""

    status = 404
    code = "one_machine_only"


class TopQuery(NamedTuple):
    """A request for the `limit` most viewed ids of the latest `days` days, in UTC."""

    prefix: str
    days: int
    limit: int


@dataclass(frozen=True, slots=True)
class TopBadge:
    """A badge by its present name: the number that it shows, and its views in the days."""

    badge_id: str
    count: int
    views: int


class Top(Protocol):
    """The most viewed ids, the first ones first."""

    def is_public(self, prefix: str) -> bool:
        """Return whether everybody may read the most viewed ids of a prefix."""

    def read(self, query: TopQuery, now: Seconds) -> Sequence[TopBadge]:
        """Return badges with views. Raises `BadRequestError` and `StorageError`."""


class TopResources(Resources, Protocol):
    """The resources of the most viewed ids; on AWS, there is no `top`."""

    @property
    def top(self) -> Top | None: ...


def _prefix(given: str | None) -> str:
    if given is None:
        raise ValueError("give the beginning of ids, such as me.example/")
    return ids.normalise(given)


class TopOptions(Options):
    """The options of the most viewed ids."""

    prefix = Field(
        _prefix,
        string(ids.CHARACTERS, minLength=1, maxLength=ids.MAX_CHARACTERS),
        "The beginning of the ids, which `PUBLIC_TOP` must allow.",
        example="me.example/",
    )
    days = number(range(1, MAX_DAYS + 1), "The number of days (UTC), up to today.", 30)
    limit = number(range(1, MAX_LIMIT + 1), "The most ids that are returned.", 10)


def get_top(request: Request, resources: TopResources) -> Response:
    """Return the most viewed ids that begin with a prefix; this counts no view."""
    asked = TopOptions(request.query)
    top = resources.top
    if top is None:
        raise OneMachineOnlyError(
            "the most viewed ids are there on one machine alone: on AWS, each request would read"
            " every badge of the prefix"
        )
    if not top.is_public(asked.prefix):
        raise NotPublicError(
            "the most viewed ids of this prefix are not public here: the operator must add it to"
            " PUBLIC_TOP"
        )
    query = TopQuery(asked.prefix, asked.days, asked.limit)
    found = top.read(query, resources.view_clock())
    return responses.json({"top": [_to_json(badge) for badge in found]})


def _to_json(badge: TopBadge) -> dict[str, object]:
    return {"id": badge.badge_id, "count": badge.count, "views": badge.views}


ROUTES = (public_read(PATH, get_top, options=TopOptions),)
