"""The OpenAPI document: the descriptions of all features, joined with the table of routes.

The paths, HEAD, the authentication and most errors follow from the route: an operation states only
its own errors. The first request for the document generates it, and the process keeps it. So
no package can have an old one, and no badge is slower.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any

from chalicelib.events import description as events
from chalicelib.http import description as shared
from chalicelib.http import errors, guards
from chalicelib.http.openapi import Component, Json, Operation, Refusal, Section, error_response
from chalicelib.http.routing import ANY_OPTIONS, Authentication, Route
from chalicelib.pages import description as views
from chalicelib.version import VERSION
from chalicelib.wallets import description as wallets

SECTIONS = (*views.SECTIONS, *events.SECTIONS, *wallets.SECTIONS, *shared.SECTIONS)
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
    "A query has at most 100 parameters. One that the route does not have is refused by name, and a"
    f" badge that refuses it counts no view. {IGNORED} are ignored everywhere, because they make"
    " caches fetch a URL again. On one machine, a head of more than 16 KiB is 431"
    " `head_too_large`. A body needs a `Content-Length`, is 408 `too_slow` if it takes more than"
    " 30 s, and 429 `too_many_requests` if its address sends more than there is memory for.\n\n"
    "One machine may limit each client address (an IPv6 address by its /64) and its network: new"
    " ids, claims, renames and requests. Over a limit, a badge says so and counts nothing, and any"
    " other route returns 429 `too_many_requests` with `Retry-After`. Scripts of any site may"
    " count views, and read badges, charts, histories and their errors"
    " (`Access-Control-Allow-Origin: *`). Their visitors' browsers can't change anything else:"
    " 403 `cross_site`. If the operator has set `HSTS_SECONDS`, responses have"
    " `Strict-Transport-Security`.",
    "license": {"name": "MIT", "identifier": "MIT"},
    "version": VERSION,
}
TOKEN = Component(
    "securitySchemes",
    "token",
    {
        "type": "http",
        "scheme": "bearer",
        "description": "A token of 20 to 200 letters, digits, `-` and `_`, which an operator"
        " created. An operator's token is good for every route, a user's for the user's wallet"
        " alone. A revoked token is refused from the next request on, on AWS within 5 minutes.",
    },
)
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

    Raises `ValueError` unless each route is described with its options.
    """
    by_name = {f"{route.method} {route.path}": route for route in routes}
    sections = [one for one in SECTIONS if not by_name.keys().isdisjoint(one.operations)]
    described = {name for section in sections for name in section.operations}
    if differing := by_name.keys() ^ described:
        raise ValueError(f"no route or no description: {', '.join(sorted(differing))}")
    components = Components()
    paths: Json = {}
    for section in sections:
        for name, operation in section.operations.items():
            route = by_name[name]
            _check_options(route, operation)
            path = paths.setdefault(route.path, _path_item(route, section))
            path[route.method.lower()] = _operation(route, section, operation)
    return {
        "openapi": "3.1.0",
        "info": INFO,
        "servers": [{"url": ".", "description": "The place of this document."}],
        "tags": [{"name": one.tag, "description": one.description} for one in sections],
        "paths": components.resolve(paths),
        "components": components.by_kind,
    }


def _check_options(route: Route, operation: Operation) -> None:
    described = {parameter.content["name"] for parameter in operation.parameters}
    if differing := described ^ {*(route.options or ())}:
        names = ", ".join(sorted(differing))
        raise ValueError(f"{route.path}: only the route or only its description has {names}")


def _path_item(route: Route, section: Section) -> Json:
    known = {parameter.content["name"]: parameter for parameter in section.path_parameters}
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    return {"parameters": [known[name] for name in names]} if names else {}


def _operation(route: Route, section: Section, operation: Operation) -> Json:
    optional = {
        "description": _description(route, operation),
        "deprecated": operation.is_deprecated,
        "security": _security(route, operation),
        "parameters": operation.parameters,
        "requestBody": operation.body and {"required": True, "content": operation.body},
    }
    return {
        "operationId": operation.name,
        "tags": [section.tag],
        "summary": _summary(route),
        **{name: part for name, part in optional.items() if part},
        "responses": _responses(route, operation),
    }


def _summary(route: Route) -> str:
    """Return the first line of the handler's docstring."""
    return (route.handler.__doc__ or route.path).partition("\n")[0].rstrip(".")


def _description(route: Route, operation: Operation) -> str:
    only = CALLERS.get(route.authentication, "")
    head = HEAD_TOO if route.with_head else ""
    return " ".join(filter(None, (operation.description, only, head)))


def _security(route: Route, operation: Operation) -> list[Component]:
    if route.authentication is not Authentication.NONE:
        return [TOKEN]
    return [operation.security] if operation.security else []


def _responses(route: Route, operation: Operation) -> Json:
    responses = {
        status: _success(route, status, response)
        for status, response in operation.responses.items()
    }
    refusals = defaultdict(list)
    for one in (*operation.refusals, *_usual_refusals(route, operation)):
        refusal = one if isinstance(one, Refusal) else Refusal.of(one)
        refusals[refusal.status].append(refusal)
    responses |= {status: error_response(some) for status, some in refusals.items()}
    return {str(status): responses[status] for status in sorted(responses)}


def _success(route: Route, status: int, response: Component | Json) -> Component | Json:
    """Return a response with a description, which OpenAPI requires, and its route's headers."""
    if isinstance(response, Component):
        return response
    headers = response["headers"] | (shared.ANY_ORIGIN if route.from_any_site else {})
    return {"description": HTTPStatus(status).phrase} | response | {"headers": headers}


def _usual_refusals(
    route: Route, operation: Operation
) -> Iterator[Refusal | type[errors.ClientError]]:
    """Return the errors that follow from the route and the request."""
    yield shared.TOO_MANY_REQUESTS
    if operation.can_fail:
        yield from (shared.INTERNAL, shared.UNAVAILABLE)
        if operation.body or route.options is not ANY_OPTIONS:
            yield errors.BadRequestError
    if operation.body:
        yield shared.TOO_LARGE
    if route.writes and not route.from_any_site:
        yield guards.CrossSiteError
    if route.authentication is not Authentication.NONE:
        yield from (errors.UnauthorizedError, errors.ForbiddenError)


class Components:
    """The components that the document refers to, each under its kind and name."""

    def __init__(self) -> None:
        self.by_kind: dict[str, Json] = {}
        self._sources: dict[tuple[str, str], Component] = {}

    def resolve(self, part: Any) -> Any:
        """Return a part of the document with references in place of components."""
        match part:
            case Component(kind="securitySchemes", name=name):  # referred to by name alone
                self._add(part)
                return {name: []}
            case Component():
                return {"$ref": self._add(part)}
            case {"$ref": Component() as component, **more}:
                return {"$ref": self._add(component), **self.resolve(more)}
            case dict():
                return {name: self.resolve(inner) for name, inner in part.items()}
            case list() | tuple():
                return [self.resolve(inner) for inner in part]
        return part

    def _add(self, component: Component) -> str:
        """Return the reference to a component. Raises `ValueError` if another has its name."""
        kind, name = component.kind, component.name
        if self._sources.setdefault((kind, name), component) != component:
            raise ValueError(f"two different components are called {kind}/{name}")
        named = self.by_kind.setdefault(kind, {})
        if name not in named:
            named[name] = self.resolve(component.content)
        return f"#/components/{kind}/{name}"
