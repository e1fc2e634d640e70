"""The OpenAPI document: the table of routes, and the descriptions of all features.

The paths, options, HEAD, authentication and most errors follow from the routes. The first request
for the document generates it, and the process keeps it. So no package can have an old one, and no
badge is slower.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chalicelib import VERSION
from chalicelib.events import description as events
from chalicelib.http import errors, guards, openapi
from chalicelib.http.fields import Component, Field, Json, closed, present
from chalicelib.http.query import MAX_PARAMETERS
from chalicelib.http.routing import ANY_OPTIONS, Authentication, Route
from chalicelib.pages import description as views
from chalicelib.pages import owner_description as owners
from chalicelib.wallets import description as wallets

SERVICE = openapi.Section(
    "service",
    "The page, the script of web pages, this document, and the health of the service.",
    {
        "getPage": openapi.Operation(responses={200: openapi.HTML}),
        "getLogos": openapi.Operation(
            responses={
                200: openapi.success(
                    {"type": "object", "additionalProperties": {"type": "string"}},
                    "The logos that a badge draws.",
                    {"go": "M1.8 10.2z"},
                )
            }
        ),
        "getCountScript": openapi.Operation(
            "[Web pages](web-pages.md) has its attributes and elements.",
            {200: {"description": "A script", "content": {"text/javascript": {}}}},
        ),
        "getDescription": openapi.Operation(
            responses={200: openapi.success({"type": "object"}, "OpenAPI 3.1.")}
        ),
        "getHealth": openapi.Operation(
            responses={
                200: openapi.success(closed({"status": {"const": "ok"}}), example={"status": "ok"})
            }
        ),
    },
)
SECTIONS = (*views.SECTIONS, *owners.SECTIONS, events.SECTION, wallets.SECTION, SERVICE)
IGNORED = ", ".join(f"`{name}`" for name in (*guards.IGNORED_OPTIONS, f"{guards.IGNORED_PREFIX}*"))
INFO = {
    "title": "vu-mi",
    "summary": "Live badges for Markdown: a view counter that never loses a view and never counts"
    " one twice.",
    "description": "Badge routes always return 200 with a badge that can be drawn, for an error"
    " too: then it is red and its message says what to give. shields.io and GitHub draw nothing for"
    ' any other status. Every other error is `{"error": {"code", "message"}}`.\n\n'
    "A path that is not described is 404 `not_found`, or 404 `switched_off` if it is one of events"
    " or wallets and the operator has switched these off (`EVENTS=off`, `WALLETS=off`). Paths of"
    " other counters' badges are not described; they are answered if the operator names the"
    " counters in `DROP_IN`. A method"
    " that is not described is 405 `method_not_allowed`, and `Allow` lists the methods. On AWS, API"
    ' Gateway itself refuses some requests, with `{"message"}` and no other header: 401 without a'
    " token, 403 for a token that is malformed or unknown, 413, 429 and 503. On one machine, the"
    " parser refuses malformed heads without a body.\n\n"
    f"A query has at most {MAX_PARAMETERS} parameters. One that the route does not have is refused"
    f" by name, and a badge that refuses it counts no view. {IGNORED} are ignored everywhere,"
    " because they make caches fetch a URL again. On one machine, a head of more than 16 KiB is 431"
    " `head_too_large`. A body needs a `Content-Length`, is 408 `too_slow` if it takes more than"
    " 30 s, and 429 `too_many_requests` if its address sends more than there is room for.\n\n"
    "One machine may limit each client address (an IPv6 address by its /64) and its network: new"
    " ids, claims, renames and requests, and all badges. Over a limit, a badge says so and counts"
    " nothing, and any other route returns 429 `too_many_requests` with `Retry-After`. Scripts of"
    " any site may count views, and read badges, charts, histories and their errors"
    " (`Access-Control-Allow-Origin: *`). Their visitors' browsers can't change anything else:"
    " 403 `cross_site`. If the operator has set `HSTS_SECONDS`, responses have"
    " `Strict-Transport-Security`.",
    "license": {"name": "MIT", "identifier": "MIT"},
    "version": VERSION,
}
SCHEMES = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of 20 to 200 letters, digits, `-` and `_`, which an operator"
        " created. An operator's token is good for every route, a user's for the user's wallet"
        " alone. A revoked token is refused from the next request on, on AWS within 5 minutes.",
    },
    "secret": {
        "type": "http",
        "scheme": "bearer",
        "description": "The badge's secret, from its claim.",
    },
}
HEAD_TOO = "HEAD has the same response without its body, and counts nothing."
CALLERS = {
    Authentication.OPERATOR: "Takes an operator's token only.",
    Authentication.USER: "Takes a user's token only.",
}


def text(routes: Iterable[Route]) -> str:
    """Return the document of the routes as JSON."""
    return json.dumps(document(routes), ensure_ascii=False)


def document(routes: Iterable[Route]) -> Json:
    """Return the document of the routes, without sections that have none of them.

    Raises `ValueError` unless each handler is described.
    """
    described = [*_describe(routes)]
    paths: Json = {}
    for one in described:
        path = paths.setdefault(one.route.path, present(parameters=one.path_parameters))
        path[one.route.method.lower()] = one.to_json()
    tags = {one.section.tag: one.section.words for one in described}
    return {
        "openapi": "3.1.0",
        "info": INFO,
        "servers": [{"url": ".", "description": "The place of this document."}],
        "tags": [{"name": tag, "description": words} for tag, words in tags.items()],
        "paths": paths,
        "components": _components(paths, {"securitySchemes": SCHEMES}),
    }


def _describe(routes: Iterable[Route]) -> Iterator[Described]:
    """Yield the routes in the order of the sections. A handler's second route has a longer name."""
    by_name = defaultdict[str, list[Route]](list)
    for route in routes:
        by_name[_name(route)].append(route)
    for section in SECTIONS:
        for name, operation in section.operations.items():
            for place, route in enumerate(by_name.pop(name, ())):
                suffix = "ByOldPath" if route.is_deprecated else "ByQuery"
                yield Described(name + suffix * bool(place), route, operation, section)
    if by_name:
        raise ValueError(f"no description of {', '.join(sorted(by_name))}")


def _name(route: Route) -> str:
    """Return the name of an operation: getViews for get_views, getViewsSvg for its image."""
    first, *others = route.handler.__name__.removesuffix("_svg").split("_")
    form = "Svg" if route.path.endswith(".svg") else ""
    return first + "".join(map(str.capitalize, others)) + form


@dataclass(frozen=True, slots=True)
class Described:
    """A route and its description."""

    name: str
    route: Route
    operation: openapi.Operation
    section: openapi.Section

    @property
    def path_parameters(self) -> list[Component]:
        names = [part[1:-1] for part in self.route.path.split("/") if part.startswith("{")]
        return [_parameter(self.section.path_fields[name], "path", name) for name in names]

    @property
    def parameters(self) -> list[Component]:
        options = self.route.options.fields.values() if self.route.options else ()
        return [_parameter(option, "query", option.name) for option in options]

    def to_json(self) -> Json:
        """Return the operation."""
        operation = self.operation
        return {
            "operationId": self.name,
            "tags": [self.section.tag],
            "summary": (self.route.handler.__doc__ or "").partition("\n")[0].rstrip("."),
            **present(
                description=self._words(),
                deprecated=self.route.is_deprecated,
                security=self._security(),
                parameters=self.parameters,
                requestBody=operation.body and {"required": True, "content": operation.body},
            ),
            "responses": self._responses(),
        }

    def _words(self) -> str:
        only = CALLERS.get(self.route.authentication, "")
        head = HEAD_TOO if self.route.with_head else ""
        return " ".join(filter(None, (self.operation.words, only, head)))

    def _security(self) -> list[Json]:
        if self.route.authentication is not Authentication.NONE:
            return [{"token": []}]
        return [{"secret": []}] if self.operation.has_secret else []

    def _responses(self) -> Json:
        responses: dict[int, Any] = {**self.operation.responses}
        refusals = defaultdict(list)
        for one in (*self.operation.refusals, *self._usual_refusals()):
            refusal = one if isinstance(one, openapi.Refusal) else openapi.Refusal.of(one)
            refusals[refusal.status].append(refusal)
        responses |= {status: openapi.error_response(some) for status, some in refusals.items()}
        return {str(status): responses[status] for status in sorted(responses)}

    def _usual_refusals(self) -> Iterator[openapi.Refusal | type[errors.ClientError]]:
        route, body = self.route, self.operation.body
        yield openapi.TOO_MANY_REQUESTS
        if not route.draws_failures:
            yield from (openapi.INTERNAL, openapi.UNAVAILABLE)
            if body or route.options is not ANY_OPTIONS:
                yield errors.BadRequestError
        if body:
            yield openapi.TOO_LARGE
        if route.writes and not route.from_any_site:
            yield guards.CrossSiteError
        if route.authentication is not Authentication.NONE:
            yield from (errors.UnauthorizedError, errors.ForbiddenError)


def _parameter(declared: Field[Any], place: str, name: str) -> Component:
    parameter = {
        "name": name,
        "in": place,
        "description": declared.words,
        "schema": declared.content,
        **present(required=declared.is_required, example=declared.example),
        **present(allowEmptyValue=place == "query" and declared.ignores_empty),
    }
    return Component("parameters", f"{declared.owner}.{name}".lstrip("."), parameter)


def _components(part: Any, found: Json) -> Json:
    """Add the components to which a part refers. Raises `ValueError` for two with one name."""
    if isinstance(part, Component):
        named = found.setdefault(part.kind, {})
        if named.setdefault(part.name, part.content) != part.content:
            raise ValueError(f"two different components are called {part.kind}/{part.name}")
        _components(part.content, found)
    elif isinstance(part, dict | list | tuple):
        for inner in part.values() if isinstance(part, dict) else part:
            _components(inner, found)
    return found
