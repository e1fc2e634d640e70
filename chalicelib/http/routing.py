"""The table of routes, and the search for the route of a request."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from chalicelib.http import errors
from chalicelib.http.fields import Options

if TYPE_CHECKING:
    from chalicelib.http.messages import Request, Response
    from chalicelib.settings import Feature

Handler: TypeAlias = "Callable[[Request, Any], Response]"
"""A function that takes a request and the resources of its feature, and returns the response."""
FailureHandler: TypeAlias = "Callable[[Exception, Request], Response]"
WRITING_METHODS = {"POST", "PUT", "PATCH", "DELETE"}
ANY_OPTIONS: None = None
"""The options of a page or a file, which reads none, and may have any in a link to it."""
REST = "+}"
"""The end of a parameter that has the rest of a path, as in API Gateway."""


def _to_error(failure: Exception, _: Request) -> Response:
    return errors.to_response(failure)


class Authentication(Enum):
    """The callers that a route allows."""

    NONE = auto()
    """Everybody."""
    OPERATOR = auto()
    """The bearer of an operator's token."""
    USER = auto()
    """The bearer of a user's token."""
    TOKEN = auto()
    """The bearer of any known token; the route itself compares a user's token with its wallet."""


@dataclass(frozen=True)
class Route:
    """A method and a path template, and the function that answers.

    `path` has its parameters in braces: `/api/v1/events/{event_id}`. A parameter is one segment,
    or as the last one, `{path+}`, all segments from there on.
    A route for GET answers HEAD as well if `with_head` is set. `on_failure` answers an exception
    that is being handled, which a route of badges draws. Only if `from_any_site`
    is set, scripts of other sites may read the responses, and send a request of a writing method
    through their visitors' browsers. An operator can switch off the routes of a `feature`.
    `options` declare the parameters of the query; any other one is refused by name, unless the
    route ignores the query (`ANY_OPTIONS`).
    """

    method: str
    path: str
    handler: Handler
    authentication: Authentication = Authentication.NONE
    with_head: bool = False
    on_failure: FailureHandler = _to_error
    from_any_site: bool = False
    feature: Feature | None = None
    options: type[Options] | None = Options
    is_deprecated: bool = False

    @cached_property
    def is_public(self) -> bool:
        """Return whether anybody may call the route."""
        return self.authentication is Authentication.NONE

    @cached_property
    def writes(self) -> bool:
        """Return whether the method is one for changes."""
        return self.method in WRITING_METHODS

    @cached_property
    def is_open(self) -> bool:
        """Return whether no token, no site and no setting decides who may call the route."""
        return self.is_public and not self.writes and self.feature is None

    @cached_property
    def changes_by_secret(self) -> bool:
        """Return whether the route changes a badge for whoever has its secret."""
        return self.writes and self.is_public and not self.from_any_site

    @property
    def draws_failures(self) -> bool:
        """Return whether every response is a badge, which has an error in its text."""
        return self.on_failure is not _to_error

    @property
    def methods(self) -> list[str]:
        """Return the methods that the route answers."""
        return [self.method, "HEAD"] if self.with_head else [self.method]


public_read = partial(Route, "GET", with_head=True, from_any_site=True)
"""A route that everybody may read, scripts of other sites too."""


class Match(NamedTuple):
    """The routes of a path by method, and the values of its parameters, as they were sent."""

    routes: dict[str, Route]
    parameters: Mapping[str, str]


class RouteTable:
    """The routes by path: exact paths first, then templates in their order."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self.routes = tuple(routes)
        self._exact: dict[str, Match] = {}
        self._templates: dict[tuple[str, ...], dict[str, Route]] = {}
        for route in self.routes:
            if "{" in route.path:
                methods = self._templates.setdefault(tuple(route.path.split("/")), {})
            else:
                methods = self._exact.setdefault(route.path, Match({}, {})).routes
            for method in route.methods:
                if method in methods:
                    raise ValueError(f"two routes answer {method} {route.path}")
                methods[method] = route

    def find(self, path: str) -> Match | None:
        """Return the routes of a path, or None if there are none."""
        if (match := self._exact.get(path)) is not None:
            return match
        segments = path.split("/")
        for template, routes in self._templates.items():
            if (parameters := _parameters(template, segments)) is not None:
                return Match(routes, parameters)
        return None


def _parameters(template: tuple[str, ...], segments: list[str]) -> dict[str, str] | None:
    """Return the values of a template's parameters, or None if the path is another one."""
    if template[-1].endswith(REST):
        last = len(template) - 1
        segments = [*segments[:last], "/".join(segments[last:])]
    if len(template) != len(segments):
        return None
    parameters = {}
    for expected, given in zip(template, segments, strict=True):
        if expected.startswith("{"):
            if not given:
                return None
            parameters[expected[1:-1].removesuffix("+")] = given
        elif expected != given:
            return None
    return parameters
